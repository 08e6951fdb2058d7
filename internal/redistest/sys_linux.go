package redistest

import (
	"os"
	"syscall"
)

// dieWithParent has the kernel kill the child when the thread that forked it
// ends. The caller keeps that thread for the child's whole life.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
