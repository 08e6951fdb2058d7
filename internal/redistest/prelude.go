package redistest

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed prelude.lua
var preludeSource string

// prelude is the prelude as one line.
var prelude = oneLine(preludeSource)

// Checked makes a client fail every script that is not strict about its keys
// (guarantee G3). A server alone does not: even a cluster accepts an
// undeclared key that happens to lie in the right slot.
//
// EVAL, EVAL_RO, EVALSHA and EVALSHA_RO, alone or in a pipeline, are sent as
// EVAL or EVAL_RO with a prelude before the script. The script then fails with
// an error that holds
//
//   - "which is not in KEYS", if redis.call or redis.pcall is given a key that
//     was not declared; command and key are named, odd bytes and % of the key
//     as \ddd;
//   - "is not classified", if the prelude does not know where a command has
//     its keys: add the command to prelude.lua;
//   - "at most a key and 1000", if one call has more than 1002 arguments, the
//     command name included.
//
// The refused call does not reach the data, what the script wrote before it
// stays. A refusal is final: a script that swallows it with Lua's pcall fails
// at its end.
//
// sources gives the scripts that EVALSHA may name, by the SHA-1 of their text
// in lower case; it is asked at each call and may be nil if there are none. An
// unknown one is an error, and NOSCRIPT does not occur. The caller's command
// receives its reply itself, so its type does not matter and its NoRetry is
// kept.
func Checked(rdb redis.UniversalClient, sources func() map[string]string) {
	rdb.AddHook(checkHook{sources})
}

type checkHook struct{ sources func() map[string]string }

func (h checkHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return next(ctx, network, addr)
	}
}

func (h checkHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		checked, err := h.rewrite(cmd)
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, checked)
	}
}

func (h checkHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		checked := make([]redis.Cmder, len(cmds))
		for i, cmd := range cmds {
			var err error
			if checked[i], err = h.rewrite(cmd); err != nil {
				for _, c := range cmds {
					c.SetErr(err) // nothing was sent
				}
				return err
			}
		}
		return next(ctx, checked)
	}
}

// rewrite returns the command to send instead of cmd: cmd itself if it is no
// script.
func (h checkHook) rewrite(cmd redis.Cmder) (redis.Cmder, error) {
	name := cmd.Name()
	plain := strings.Replace(name, "evalsha", "eval", 1)
	if plain != "eval" && plain != "eval_ro" {
		return cmd, nil
	}
	args := cmd.Args()
	if len(args) < 2 {
		return cmd, nil
	}
	source, err := text(args[1])
	if err != nil {
		return nil, err
	}
	if plain != name {
		sha, known := source, false
		if h.sources != nil {
			source, known = h.sources()[strings.ToLower(sha)]
		}
		if !known {
			return nil, fmt.Errorf("redistest: %s of %s, a script that the test did not name", name, sha)
		}
	}
	if strings.HasPrefix(source, "#!") {
		return nil, fmt.Errorf("redistest: a script with a %q line is not supported",
			strings.SplitN(source, "\n", 2)[0])
	}
	return checkedCmd{cmd, append([]any{plain, wrap(source)}, args[2:]...)}, nil
}

// checkedCmd is a command that sends other words than the one it embeds and
// leaves the rest to it: its reply, its error, its slot, its policy.
type checkedCmd struct {
	redis.Cmder
	args []any
}

func (c checkedCmd) Name() string       { return c.args[0].(string) }
func (c checkedCmd) FullName() string   { return c.Name() }
func (c checkedCmd) Args() []any        { return c.args }
func (c checkedCmd) Clone() redis.Cmder { return checkedCmd{c.Cmder.Clone(), c.args} }

// wrap puts the prelude around a script without moving its lines.
func wrap(source string) string {
	return prelude + " return checked(function(...) " + source + "\nend)"
}

// oneLine drops the comment lines of a Lua text and joins the rest.
func oneLine(source string) string {
	var kept []string
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, " ")
}

func text(arg any) (string, error) {
	switch v := arg.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	default:
		return "", fmt.Errorf("redistest: a script given as %T", arg)
	}
}
