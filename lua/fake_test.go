package lua

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a server that answers script calls as the test wants: with a line of the protocol, or by hanging up for "".
type fake struct {
	addr   string
	answer func(n int, args []string) string // n counts script calls, from 1

	mu    sync.Mutex
	calls [][]string
}

// okReply is {'ok', 1, 1}.
const okReply = "*3\r\n$2\r\nok\r\n$1\r\n1\r\n:1\r\n"

func newFake(t *testing.T, answer func(n int, args []string) string) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fake{addr: l.Addr().String(), answer: answer}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait() // the clients were closed before: cleanups run in reverse
	})
	return f
}

func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		out := "-ERR unknown command '" + args[0] + "'\r\n"
		if strings.HasPrefix(args[0], "eval") {
			f.mu.Lock()
			f.calls = append(f.calls, args)
			n := len(f.calls)
			f.mu.Unlock()
			if out = f.answer(n, args); out == "" {
				return
			}
		}
		if _, err := io.WriteString(conn, out); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
	}
	n, err := number()
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := number()
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	args[0] = strings.ToLower(args[0])
	return args, nil
}

// sent are the script calls that arrived, by command.
func (f *fake) sent() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]int{}
	for _, c := range f.calls {
		out[c[0]]++
	}
	return out
}

// args is what call n carried after its keys.
func (f *fake) args(n int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls[n-1]
	keys, _ := strconv.Atoi(c[2])
	return c[3+keys:]
}

func (f *fake) client(t *testing.T) redis.UniversalClient {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: f.addr, DisableIdentity: true, ContextTimeoutEnabled: true, Protocol: 2, PoolSize: 1,
		MinRetryBackoff: time.Millisecond, MaxRetryBackoff: time.Millisecond,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	return rdb
}

// quick is a policy under which a test that waits for the end of the budget takes no time.
var quick = Retry{Budget: 30 * time.Millisecond, MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond}

// patient is a policy whose budget no test reaches.
var patient = Retry{Budget: time.Minute, MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond}

// serverError is an error reply as the client gives it.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

// fault lets a test stand between the client and the server: step n is given call n of a script and decides whether it is
// sent and what comes back. Calls beyond the steps pass.
type fault struct {
	mu    sync.Mutex
	steps []func(send func() error) error
	calls int
}

func (f *fault) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *fault) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *fault) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		send := func() error { return next(ctx, cmd) }
		f.mu.Lock()
		f.calls++
		var step func(func() error) error
		if len(f.steps) > 0 {
			step, f.steps = f.steps[0], f.steps[1:]
		}
		f.mu.Unlock()
		if step == nil {
			return send()
		}
		err := step(send)
		cmd.SetErr(err)
		return err
	}
}

// lostAfter is a step whose reply is lost although the server ran the call.
func lostAfter(send func() error) error {
	if err := send(); err != nil {
		return fmt.Errorf("not run after all: %w", err)
	}
	return io.EOF
}

// lostBefore is a step that the server never sees, which the client cannot know; meanwhile something else happens.
func lostBefore(meanwhile func()) func(func() error) error {
	return func(func() error) error {
		if meanwhile != nil {
			meanwhile()
		}
		return io.EOF
	}
}

var errTest = errors.New("the test's own cause")
