package lua

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Retry bounds how long a call waits for a server that did not run it, and how long it looks for the outcome of a write
// whose reply was lost. The zero value of a field takes its default.
type Retry struct {
	Budget     time.Duration // from the first attempt to the last, default 30 s; negative: one attempt
	MinBackoff time.Duration // the first pause, default 2 ms; it doubles and is jittered
	MaxBackoff time.Duration // the longest pause, default 250 ms
}

func (r Retry) withDefaults() Retry {
	if r.Budget == 0 {
		r.Budget = 30 * time.Second
	}
	if r.MinBackoff <= 0 {
		r.MinBackoff = 2 * time.Millisecond
	}
	if r.MaxBackoff < r.MinBackoff {
		r.MaxBackoff = max(250*time.Millisecond, r.MinBackoff)
	}
	return r
}

// Pause waits before attempt n (counted from 1) of a loop, with full jitter, or until ctx is done.
func (r Retry) Pause(ctx context.Context, n int) error {
	r = r.withDefaults()
	d := r.MaxBackoff
	if n < 16 {
		d = min(d, r.MinBackoff<<(n-1))
	}
	timer := time.NewTimer(d/2 + rand.N(d/2+1)) //nolint:gosec // jitter
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Attempt tells an observer about a call that is going to be repeated.
type Attempt struct {
	Script string // apply, find, ..., or the plain command: get, mget
	N      int    // attempts so far
	Err    error  // why
}

// Runner sends the scripts to one server, Sentinel set or cluster. It is safe for concurrent use and holds no data.
type Runner struct {
	rdb     redis.UniversalClient
	retry   Retry
	onRetry func(Attempt)
	plainRO atomic.Bool // the server has no EVALSHA_RO: read scripts go out as EVALSHA
	noLook  atomic.Bool // the user may not run what Look sends
	reads   *reads      // nil: nothing is shared
}

// NewRunner gives a Runner over rdb. onRetry may be nil.
func NewRunner(rdb redis.UniversalClient, retry Retry, onRetry func(Attempt)) *Runner {
	return &Runner{rdb: rdb, retry: retry.withDefaults(), onRetry: onRetry}
}

// Retry is the policy in force, with its defaults filled in.
func (r *Runner) Retry() Retry { return r.retry }

// once sends a script one time: EVALSHA, and after NOSCRIPT one EVAL with the source. Never LOAD and EVALSHA: an ASK
// target or a fresh primary would miss again.
func (r *Runner) once(ctx context.Context, s *script, keys []string, args []any) (any, error) {
	eval, evalsha := "eval", "evalsha"
	ro := s.reads && !r.plainRO.Load()
	if ro {
		eval, evalsha = "eval_ro", "evalsha_ro"
	}
	send := r.process
	if s.reads {
		send = r.read
	}
	reply, err := send(ctx, call(evalsha, s.sha, keys, args))
	if err != nil && hasCode(err, "NOSCRIPT") {
		reply, err = send(ctx, call(eval, s.source, keys, args))
	}
	if ro && err != nil && refusesReadOnly(err) {
		r.plainRO.Store(true)
		return r.once(ctx, s, keys, args)
	}
	return reply, err
}

// call is the command that runs a script.
func call(name, text string, keys []string, args []any) []any {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, name, text, len(keys))
	for i := range keys {
		all = append(all, &keys[i])
	}
	return append(all, args...)
}

// process sends one command, never twice by itself. A nil reply is nil.
func (r *Runner) process(ctx context.Context, args []any) (any, error) {
	cmd := command{redis.NewCmd(ctx, args...)}
	err := Await(ctx, func() error { return r.rdb.Process(ctx, cmd) })
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, err // cmd may still be on its way
	}
	return cmd.Result()
}

// run repeats a script until the server has run it, ctx is done or the budget is spent. args is asked before every
// attempt whether an earlier one may have been applied. The error of a write that may have been applied matches
// ErrUnknown.
func (r *Runner) run(ctx context.Context, s *script, keys []string, args func(resent bool) []any) ([]any, error) {
	reply, err := r.repeat(ctx, "script "+s.name, s.name, s.reads, func(resent bool) (any, error) {
		return r.once(ctx, s, keys, args(resent))
	})
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("lockstep: script %s: unexpected reply %T", s.name, reply)
	}
	return list, nil
}

// plain repeats one command that only reads, as run does.
func (r *Runner) plain(ctx context.Context, args ...any) (any, error) {
	name, _ := args[0].(string)
	return r.repeat(ctx, name, name, true, func(bool) (any, error) { return r.read(ctx, args) })
}

// repeat calls once until it has an answer. harmless says that a call that was perhaps made may be made again, and that
// its outcome is never unknown.
func (r *Runner) repeat(
	ctx context.Context, what, name string, harmless bool, once func(resent bool) (any, error),
) (any, error) {
	deadline := time.Now().Add(r.retry.Budget)
	sent := false
	var last error
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return nil, fail(what, sent, ended(ctx, last))
		}
		reply, err := once(sent)
		if err == nil {
			return reply, nil
		}
		f, cause := judge(err)
		last = cause
		if f == maybe && !harmless && !neverSent(ctx, err) {
			sent = true
		}
		if f == refused || (time.Now().After(deadline) || r.retry.Budget < 0) {
			return nil, fail(what, sent, last)
		}
		if ctx.Err() != nil {
			return nil, fail(what, sent, ended(ctx, last))
		}
		if r.onRetry != nil {
			r.onRetry(Attempt{Script: name, N: n, Err: err})
		}
		if err := r.retry.Pause(ctx, n); err != nil {
			return nil, fail(what, sent, ended(ctx, last))
		}
	}
}

// fail names what was called and says of a write that may have been applied that it may.
func fail(what string, sent bool, err error) error {
	if sent {
		return fmt.Errorf("%w: %s: %w", ErrUnknown, what, err)
	}
	return fmt.Errorf("lockstep: %s: %w", what, err)
}

// neverSent reports a context that was over before the client had a connection to write to.
func neverSent(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (err == context.Canceled || err == context.DeadlineExceeded) //nolint:errorlint // only the bare error of the pool
}

func hasCode(err error, code string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), code)
}

// refusesReadOnly reports a server that has no EVALSHA_RO, or, as miniredis, one that takes TIME for a write there.
func refusesReadOnly(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	text := reply.Error()
	return strings.HasPrefix(text, "ERR unknown command") || strings.Contains(text, "Write commands are not allowed in read-only scripts")
}
