package lua

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/gather"
)

// pipelined is how many commands go out together at most: what shares a round trip waits for all of it.
const pipelined = 32

// reads shares the round trips of commands that only read.
type reads = gather.Gatherer[*asked]

// asked is one command with what came of it.
type asked struct {
	args  []any
	reply any
	err   error
}

// ShareReads lets concurrent callers share pipelines for what only reads, once limit calls are on their way; negative:
// never, as before the first call.
func (r *Runner) ShareReads(limit int) { r.reads = gather.New(limit, pipelined, r.pipeline) }

// read sends one command that only reads, alone or in a pipeline with those of other callers.
func (r *Runner) read(ctx context.Context, args []any) (any, error) {
	if r.reads == nil {
		return r.process(ctx, args)
	}
	a := &asked{args: args}
	if r.reads.Submit(ctx, a, nil) != gather.Ended {
		return nil, context.Cause(ctx)
	}
	return a.reply, a.err
}

// pipeline sends commands in one round trip.
func (r *Runner) pipeline(ctx context.Context, all []*asked) {
	if len(all) == 1 {
		all[0].reply, all[0].err = r.process(ctx, all[0].args)
		return
	}
	cmds := make([]*redis.Cmd, len(all))
	pipe := r.rdb.Pipeline()
	for i, a := range all {
		cmds[i] = redis.NewCmd(ctx, a.args...)
		_ = pipe.Process(ctx, cmds[i]) // queues it
	}
	left := Await(ctx, func() error {
		_, _ = pipe.Exec(ctx) // each command has its error
		return nil
	})
	for i, a := range all {
		if left != nil {
			a.err = left // cmds may still be on their way
			continue
		}
		if a.reply, a.err = cmds[i].Result(); errors.Is(a.err, redis.Nil) {
			a.reply, a.err = nil, nil
		}
	}
}
