package redistest

import (
	"context"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Mutant makes a client run other scripts than it was asked for: EVALSHA and EVALSHA_RO of a script that sources names,
// by its SHA-1, are sent as EVAL and EVAL_RO of the text given there. It is for tests that take a safeguard out of a
// script and expect to be caught.
func Mutant(rdb redis.UniversalClient, sources map[string]string) {
	rdb.AddHook(mutantHook{sources})
}

type mutantHook struct{ sources map[string]string }

func (h mutantHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h mutantHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h mutantHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		name, args := cmd.Name(), cmd.Args()
		if (name != "evalsha" && name != "evalsha_ro") || len(args) < 2 {
			return next(ctx, cmd)
		}
		sha, _ := args[1].(string)
		source, known := h.sources[sha]
		if !known {
			return next(ctx, cmd)
		}
		plain := strings.Replace(name, "evalsha", "eval", 1)
		return next(ctx, checkedCmd{cmd, append([]any{plain, source}, args[2:]...)})
	}
}
