package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	startBudget   = 20 * time.Second
	startAttempts = 10
	pollEvery     = 2 * time.Millisecond
)

// errPortTaken means that somebody else took the port between the moment it
// was found free and the moment the child bound it.
var errPortTaken = errors.New("port taken")

// process is a server that runs as a child: one program, one port, one
// directory, and over time one or more children.
type process struct {
	path string
	addr string
	dir  string
	args []string
	// probe returns the process id of the server that answers at addr, 0 if
	// the server does not tell. An error means not ready yet.
	probe func(addr string) (pid int, err error)

	mu    sync.Mutex
	child *child
}

// launch starts the program bin on a free port of the loopback interface and
// has it killed when the test ends. args gives the command line for a port and
// a directory; it is asked again when the port was lost to somebody else.
func launch(
	t testing.TB, bin string, args func(port, dir string) []string, probe func(addr string) (int, error),
) *process {
	t.Helper()
	p := &process{path: lookPath(t, bin), dir: t.TempDir(), probe: probe}
	var err error
	for range startAttempts {
		port := freePort(t)
		p.addr = net.JoinHostPort("127.0.0.1", port)
		p.args = args(port, p.dir)
		if err = p.start(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() {
		if out := p.kill(); out != "" {
			t.Errorf("redistest: %s ended on its own\n%s", bin, out)
		}
	})
	return p
}

// start runs a child and waits until it answers.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := spawn(p.path, p.args, filepath.Join(p.dir, "output.log"))
	if err != nil {
		return err
	}
	deadline := time.NewTimer(startBudget)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		pid, probeErr := p.probe(p.addr)
		switch {
		case probeErr == nil && (pid == 0 || pid == c.cmd.Process.Pid):
			p.child = c
			return nil
		case probeErr == nil:
			c.kill()
			return fmt.Errorf("%w: process %d answers at %s", errPortTaken, pid, p.addr)
		}
		select {
		case <-c.done:
			out := c.output()
			if strings.Contains(out, "Address already in use") {
				return fmt.Errorf("%w: %s\n%s", errPortTaken, p.addr, out)
			}
			return fmt.Errorf("%s %q ended at its start: %w\n%s", p.path, p.args, c.err, out)
		case <-deadline.C:
			c.kill()
			return fmt.Errorf("%s %q does not answer after %s: %w\n%s",
				p.path, p.args, startBudget, probeErr, c.output())
		case <-tick.C:
		}
	}
}

// restart kills the child and starts another one with the same command line.
func (p *process) restart() error {
	p.kill()
	var err error
	poll(startBudget, func() bool {
		err = p.start()
		return !errors.Is(err, errPortTaken)
	})
	return err
}

// kill ends the child, waits until it is gone and is fine with one that is not
// running. If the child had already crashed, its output is returned.
func (p *process) kill() (crash string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		return ""
	}
	select {
	case <-p.child.done:
		if p.child.err != nil {
			crash = fmt.Sprintf("%v\n%s", p.child.err, p.child.output())
		}
	default:
		p.child.kill()
	}
	p.child = nil
	return crash
}

// signal hands the running child to fn.
func (p *process) signal(fn func(*os.Process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		return os.ErrProcessDone
	}
	return fn(p.child.cmd.Process)
}

// child is one run of a program.
type child struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the child is gone and reaped
	err  error         // its end; readable once done is closed
}

// spawn starts a child whose output goes to the file log.
func spawn(path string, args []string, log string) (*child, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	c := &child{cmd: exec.Command(path, args...), log: log, done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// The kernel ties the child to the thread that forked it, not to the
		// process. Left to itself the runtime may end that thread at any time,
		// so it is held here until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return c, nil
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // fails only if the child is gone, which is what is wanted
	<-c.done
}

func (c *child) output() string {
	out, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// poll asks done until it says yes or the budget is spent, and returns whether
// it said yes.
func poll(budget time.Duration, done func() bool) bool {
	deadline := time.NewTimer(budget)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			return false
		case <-tick.C:
		}
	}
	return true
}

// freePort returns a port of the loopback interface that is free right now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: no free port: %v", err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return port
}

// install says, for each program, how to get it.
var install = map[string]string{
	"redis-server": "apt-get install redis-server, or brew install redis",
	"memcached":    "apt-get install memcached, or brew install memcached",
}

// lookPath finds a program. One that is missing fails the test in CI, where
// nothing may be left out in silence, and skips it elsewhere, aloud.
func lookPath(t testing.TB, bin string) string {
	t.Helper()
	path, err := exec.LookPath(bin)
	if err == nil {
		return path
	}
	msg := fmt.Sprintf("%s needs %s, which is not installed (%s)", t.Name(), bin, install[bin])
	if os.Getenv("CI") == "true" {
		t.Fatalf("redistest: %s", msg)
	}
	fmt.Fprintf(os.Stderr, "redistest: SKIPPED: %s\n", msg)
	t.Skip(msg)
	return ""
}
