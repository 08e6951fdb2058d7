package lua

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestAnErrorOfTheServerIsJudgedByWhatItDidToTheCall(t *testing.T) {
	for text, want := range map[string]struct {
		fate  fate
		cause error
	}{
		"MOVED 1234 10.0.0.1:6379":                                                         {notApplied, ErrUnavailable},
		"ASK 1234 10.0.0.1:6379":                                                           {notApplied, ErrUnavailable},
		"TRYAGAIN Multiple keys request during rehashing of slot":                          {notApplied, ErrUnavailable},
		"CLUSTERDOWN The cluster is down":                                                  {notApplied, ErrUnavailable},
		"LOADING Redis is loading the dataset in memory":                                   {notApplied, ErrUnavailable},
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": {notApplied, ErrUnavailable},
		"NOREPLICAS Not enough good replicas to write.":                                    {notApplied, ErrUnavailable},
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.": {
			notApplied, ErrUnavailable,
		},
		"READONLY You can't write against a read only replica.":                                    {notApplied, ErrReadOnly},
		"READONLY You can't write against a read only replica. script: 4f1e, on @user_script:208.": {notApplied, ErrReadOnly},
		"READONLY":                          {notApplied, ErrReadOnly},
		"ERR max number of clients reached": {notApplied, ErrUnavailable},

		"OOM command not allowed when used memory > 'maxmemory'.": {refused, ErrOutOfMemory},
		"OOM command not allowed when used memory > 'maxmemory'. script: 4f1e, on @user_script:208.": {
			refused, ErrOutOfMemory,
		},
		"NOPERM this user has no permissions to run the 'evalsha' command":                 {refused, ErrDenied},
		"NOPERM User bob has no permissions to access one of the keys used as arguments":   {refused, ErrDenied},
		"ERR ACL failure in script: User bob has no permissions to run the 'zadd' command": {refused, ErrDenied},
		"ERR The user executing the script can't run this command or subcommand script: 4f1e, on @user_script:1.": {
			refused, ErrDenied,
		},
		"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments": {
			refused, ErrDenied,
		},
		"NOAUTH Authentication required.":                        {refused, ErrDenied},
		"WRONGPASS invalid username-password pair":               {refused, ErrDenied},
		"MISCONF Redis is configured to save RDB snapshots, but": {refused, ErrUnavailable},
		"NOSCRIPT No matching script. Please use EVAL.":          {refused, ErrUnavailable},
		"ERR Error running script (call to f_4f1e): @user_script:208: @user_script: 208: -OOM command not allowed when used memory > 'maxmemory'.": {
			refused, ErrOutOfMemory,
		},
		"ERR Error running script (call to f_4f1e): @user_script:208: @user_script: 208: -READONLY You can't write against a read only replica.": {
			notApplied, ErrReadOnly,
		},
		"ERR Error running script (call to f_4f1e): @user_script:1: @user_script: 1: -NOPERM User bob has no permissions": {
			refused, ErrDenied,
		},
		"ERR Error running script (call to f_4f1e): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand": {
			refused, ErrDenied,
		},
		"ERR Error running script (call to f_4f1e): @user_script:1: @user_script: 1: -MISCONF Errors writing to the AOF file": {
			refused, ErrUnavailable,
		},
		"BUSYGROUP Consumer Group name already exists": {refused, nil},
		"ASKING is no error":                           {refused, nil},
		"ERR syntax error":                             {refused, nil},
	} {
		for _, err := range []error{serverError(text), fmt.Errorf("wrapped: %w", serverError(text))} {
			f, cause := judge(err)
			require.Equal(t, want.fate, f, text)
			require.ErrorIs(t, cause, err, "the cause is kept")
			if want.cause != nil {
				require.ErrorIs(t, cause, want.cause, text)
				continue
			}
			for _, sentinel := range []error{ErrUnavailable, ErrReadOnly, ErrOutOfMemory, ErrDenied, ErrUnknown} {
				require.NotErrorIs(t, cause, sentinel, text)
			}
		}
	}
}

func TestAnErrorOfTheConnectionIsJudgedByWhetherTheCallCanHaveArrived(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want fate
	}{
		"dial":            {&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, notApplied},
		"wrapped dial":    {fmt.Errorf("node: %w", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), notApplied},
		"pool timeout":    {redis.ErrPoolTimeout, notApplied},
		"pool exhausted":  {redis.ErrPoolExhausted, notApplied},
		"client closed":   {redis.ErrClosed, refused},
		"hung up":         {io.EOF, maybe},
		"half a reply":    {io.ErrUnexpectedEOF, maybe},
		"reset":           {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, maybe},
		"broken pipe":     {&net.OpError{Op: "write", Err: syscall.EPIPE}, maybe},
		"timeout":         {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, maybe},
		"context expired": {context.DeadlineExceeded, maybe},
		"cancelled":       {context.Canceled, maybe},
		"something else":  {errTest, maybe},
	} {
		f, cause := judge(c.err)
		require.Equal(t, c.want, f, name)
		require.ErrorIs(t, cause, ErrUnavailable, name)
		require.ErrorIs(t, cause, c.err, name)
	}
	require.NoError(t, Judge(nil))
	require.ErrorIs(t, Judge(io.EOF), ErrUnavailable)
}

func TestATypedErrorMatchesItsSentinelAndSaysWhatWasFound(t *testing.T) {
	for _, c := range []struct {
		err      error
		sentinel error
		text     string
	}{
		{&KeyTypeError{Key: "k", Found: "list"}, ErrKeyType, `"k" is a list`},
		{&SchemaError{Generation: 2, Min: 3}, ErrSchema, "generation 2, the store wants at least 3"},
	} {
		require.ErrorIs(t, fmt.Errorf("op: %w", c.err), c.sentinel)
		require.NotErrorIs(t, c.err, ErrUnknown)
		require.ErrorContains(t, c.err, c.text)
	}
	require.ErrorContains(t, &StateError{State: "building"}, "building")
	require.False(t, errors.Is(&StateError{}, ErrSchema))
}
