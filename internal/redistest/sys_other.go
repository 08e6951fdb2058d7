//go:build !unix

package redistest

import (
	"errors"
	"os"
	"syscall"
)

var errNoPause = errors.New("processes cannot be paused on this system")

func dieWithParent() *syscall.SysProcAttr { return nil }

func pause(*os.Process) error  { return errNoPause }
func resume(*os.Process) error { return errNoPause }
