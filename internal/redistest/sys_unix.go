//go:build unix && !linux

package redistest

import (
	"os"
	"syscall"
)

// dieWithParent has no equivalent here: a killed test process leaves its
// children behind, a finished one does not.
func dieWithParent() *syscall.SysProcAttr { return nil }

func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
