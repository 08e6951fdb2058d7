package lua

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// aWrite sends one apply of one record.
func aWrite(ctx context.Context, r *Runner) error {
	_, err := r.Apply(ctx, ApplyCall{
		Meta: "m", Manifest: "f", Expiry: "e", Generation: 1, Seen: 41,
		Records: []ApplyRecord{{Key: "k", ID: "a", WriteID: "12345678", Mode: Put, Value: []byte("v"), Lifetime: Forever}},
	})
	return err
}

// aRead sends one script that may go to a replica.
func aRead(ctx context.Context, r *Runner) error {
	_, err := r.Count(ctx, "m", "e", "index:a.1", []string{"s"})
	return err
}

func TestAServerThatNeverKnowsTheScriptIsAskedOnceMoreAndNoFurther(t *testing.T) {
	f := newFake(t, func(int, []string) string { return "-NOSCRIPT No matching script. Please use EVAL.\r\n" })
	r := NewRunner(f.client(t), patient, nil)
	err := aWrite(t.Context(), r)
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotErrorIs(t, err, ErrUnknown, "nothing was run")
	require.ErrorContains(t, err, "NOSCRIPT")
	require.Equal(t, map[string]int{"evalsha": 1, "eval": 1}, f.sent())

	require.ErrorIs(t, aRead(t.Context(), r), ErrUnavailable)
	require.Equal(t, map[string]int{"evalsha": 1, "eval": 1, "evalsha_ro": 1, "eval_ro": 1}, f.sent())
}

func TestAnEmptyScriptCacheCostsOneEvalWithTheSameArguments(t *testing.T) {
	f := newFake(t, func(_ int, args []string) string {
		if args[0] == "evalsha" {
			return "-NOSCRIPT No matching script.\r\n"
		}
		return okReply
	})
	require.NoError(t, aWrite(t.Context(), NewRunner(f.client(t), patient, nil)))
	require.Equal(t, map[string]int{"evalsha": 1, "eval": 1}, f.sent())
	require.Equal(t, f.args(1), f.args(2))
	require.Equal(t, applyScript.sha, f.calls[0][1])
	require.Equal(t, applyScript.source, f.calls[1][1])
}

func TestAServerThatRecoversInTimeIsWaitedFor(t *testing.T) {
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"BUSY Redis is busy running a script.", "TRYAGAIN Multiple keys request during rehashing of slot",
		"CLUSTERDOWN Hash slot not served", "NOREPLICAS Not enough good replicas to write.", "MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1",
	} {
		f := newFake(t, func(n int, _ []string) string {
			if n <= 3 {
				return "-" + text + "\r\n"
			}
			return okReply
		})
		var seen []Attempt
		err := aWrite(t.Context(), NewRunner(f.client(t), patient, func(a Attempt) { seen = append(seen, a) }))
		require.NoError(t, err, text)
		require.Equal(t, map[string]int{"evalsha": 4}, f.sent(), text)
		require.Len(t, seen, 3, text)
		for i, a := range seen {
			require.Equal(t, "apply", a.Script)
			require.Equal(t, i+1, a.N)
			require.ErrorContains(t, a.Err, text)
			require.Empty(t, f.args(i + 2)[2], "not applied: the repeat needs no floor")
		}
	}
}

func TestAServerThatDoesNotRecoverEndsTheCallWithItsCause(t *testing.T) {
	for text, want := range map[string]error{
		"LOADING Redis is loading the dataset in memory":        ErrUnavailable,
		"BUSY Redis is busy running a script.":                  ErrUnavailable,
		"TRYAGAIN Multiple keys request during rehashing":       ErrUnavailable,
		"READONLY You can't write against a read only replica.": ErrReadOnly,
	} {
		f := newFake(t, func(int, []string) string { return "-" + text + "\r\n" })
		start := time.Now()
		err := aWrite(t.Context(), NewRunner(f.client(t), quick, nil))
		require.ErrorIs(t, err, want)
		require.NotErrorIs(t, err, ErrUnknown)
		require.ErrorContains(t, err, "script apply")
		require.Greater(t, f.sent()["evalsha"], 1, text)
		require.Less(t, time.Since(start), 5*time.Second)

		f = newFake(t, func(int, []string) string { return "-" + text + "\r\n" })
		require.ErrorIs(t, aWrite(t.Context(), NewRunner(f.client(t), Retry{Budget: -1}, nil)), want)
		require.Equal(t, 1, f.sent()["evalsha"], "a negative budget is one attempt")
	}
}

func TestARefusalIsNotRepeated(t *testing.T) {
	for text, want := range map[string]error{
		"OOM command not allowed when used memory > 'maxmemory'.": ErrOutOfMemory,
		"NOPERM this user has no permissions":                     ErrDenied,
		"ERR something of a script":                               nil,
	} {
		f := newFake(t, func(int, []string) string { return "-" + text + "\r\n" })
		err := aWrite(t.Context(), NewRunner(f.client(t), patient, nil))
		require.ErrorContains(t, err, text)
		if want != nil {
			require.ErrorIs(t, err, want)
		}
		require.Equal(t, 1, f.sent()["evalsha"])
	}
}

func TestAServerWithoutReadOnlyScriptsIsAskedOnlyOnce(t *testing.T) {
	for _, text := range []string{
		"ERR unknown command 'EVALSHA_RO', with args beginning with: ", "ERR unknown command `evalsha_ro`",
	} {
		f := newFake(t, func(_ int, args []string) string {
			if strings.HasSuffix(args[0], "_ro") {
				return "-" + text + "\r\n"
			}
			return okReply
		})
		r := NewRunner(f.client(t), patient, nil)
		require.NoError(t, aRead(t.Context(), r))
		require.NoError(t, aRead(t.Context(), r))
		require.Equal(t, map[string]int{"evalsha_ro": 1, "evalsha": 2}, f.sent())
	}
}

func TestAWriteWithoutAnyReplyIsUnknownAndARepeatTellsTheServerSo(t *testing.T) {
	f := newFake(t, func(int, []string) string { return "" })
	err := aWrite(t.Context(), NewRunner(f.client(t), quick, nil))
	require.ErrorIs(t, err, ErrUnknown)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, io.EOF)
	require.Greater(t, f.sent()["evalsha"], 1)
	require.Empty(t, f.args(1)[2], "the first attempt has no floor")
	require.Equal(t, "41", f.args(2)[2], "a repeat carries the counter seen before the first")
	require.Equal(t, f.args(1)[3:], f.args(2)[3:], "and the same write id")
}

func TestALostReplyStaysInMindWhenLaterAttemptsAreRefused(t *testing.T) {
	f := newFake(t, func(n int, _ []string) string {
		if n == 1 {
			return ""
		}
		return "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
	})
	err := aWrite(t.Context(), NewRunner(f.client(t), patient, nil))
	require.ErrorIs(t, err, ErrUnknown, "the first attempt may have been applied")
	require.ErrorIs(t, err, ErrOutOfMemory)
}

func TestAReadWithoutAReplyIsRepeatedAndNeverUnknown(t *testing.T) {
	f := newFake(t, func(n int, _ []string) string {
		if n < 3 {
			return ""
		}
		return okReply
	})
	require.NoError(t, aRead(t.Context(), NewRunner(f.client(t), patient, nil)))

	f = newFake(t, func(int, []string) string { return "" })
	err := aRead(t.Context(), NewRunner(f.client(t), quick, nil))
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotErrorIs(t, err, ErrUnknown)
}

func TestAContextThatEndsBeforeSendingLeavesNoDoubt(t *testing.T) {
	f := newFake(t, func(int, []string) string { return okReply })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTest)
	err := aWrite(ctx, NewRunner(f.client(t), patient, nil))
	require.ErrorIs(t, err, errTest)
	require.NotErrorIs(t, err, ErrUnknown)
	require.Empty(t, f.sent())
}

func TestAContextThatEndsWhileWaitingForAConnectionLeavesNoDoubt(t *testing.T) {
	f := newFake(t, func(int, []string) string { return okReply })
	rdb := f.client(t)
	busy := rdb.(*redis.Client).Conn() // the only connection of the pool
	defer func() { require.NoError(t, busy.Close()) }()
	require.Error(t, busy.Ping(t.Context()).Err(), "the fake knows scripts only, but the connection is taken")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := aWrite(ctx, NewRunner(rdb, patient, nil))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, ErrUnknown)
	require.Empty(t, f.sent())
}

func TestAContextThatEndsBetweenAttemptsKeepsBothReasons(t *testing.T) {
	for answer, unknown := range map[string]bool{"-LOADING Redis is loading\r\n": false, "": true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		f := newFake(t, func(int, []string) string { return answer })
		err := aWrite(ctx, NewRunner(f.client(t), patient, func(Attempt) { cancel(errTest) }))
		require.ErrorIs(t, err, errTest)
		require.ErrorIs(t, err, ErrUnavailable)
		require.Equal(t, unknown, isUnknown(err), answer)
		require.Equal(t, 1, f.sent()["evalsha"])
	}
}

func isUnknown(err error) bool { return strings.Contains(err.Error(), ErrUnknown.Error()) }

func TestAServerThatIsGoneLeavesNoDoubt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	rdb := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
	defer rdb.Close()
	err = aWrite(t.Context(), NewRunner(rdb, quick, nil))
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotErrorIs(t, err, ErrUnknown, "a call that was never sent was not applied")
}

func TestAReplyThatNoScriptGivesIsAnErrorAndNoPanic(t *testing.T) {
	for _, raw := range []string{
		"*0\r\n", "$-1\r\n", ":7\r\n", "+OK\r\n", "*1\r\n*0\r\n", "*1\r\n$2\r\nok\r\n", "*1\r\n$4\r\ntype\r\n",
		"*3\r\n$4\r\ntype\r\n$2\r\n99\r\n$4\r\nlist\r\n", "*2\r\n$1\r\nx\r\n$-1\r\n",
	} {
		f := newFake(t, func(int, []string) string { return raw })
		r := NewRunner(f.client(t), patient, nil)
		for name, call := range wrappers {
			err := call(t.Context(), r)
			if raw != "*1\r\n$2\r\nok\r\n" {
				require.Error(t, err, "%s: %q", name, raw)
				continue
			}
			if err != nil {
				require.ErrorContains(t, err, "unexpected reply", "%s: %q", name, raw)
			}
		}
	}
}

func TestTheDefaultsOfThePolicy(t *testing.T) {
	want := Retry{Budget: 30 * time.Second, MinBackoff: 2 * time.Millisecond, MaxBackoff: 250 * time.Millisecond}
	require.Equal(t, want, NewRunner(nil, Retry{}, nil).Retry())
	require.Equal(t, time.Second, NewRunner(nil, Retry{MinBackoff: time.Second}, nil).Retry().MaxBackoff)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTest)
	for _, n := range []int{1, 15, 16, 64, 1 << 20} {
		require.ErrorIs(t, Retry{MinBackoff: time.Hour}.Pause(ctx, n), errTest, strconv.Itoa(n))
	}
}
