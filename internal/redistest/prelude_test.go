package redistest

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// once is a command of the kind that the library sends.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// checkedClient returns a client under the prelude that knows these scripts.
func checkedClient(t *testing.T, s *Server, scripts ...string) redis.UniversalClient {
	sources := map[string]string{}
	for _, script := range scripts {
		sources[redis.NewScript(script).Hash()] = script
	}
	rdb := s.Client(t)
	Checked(rdb, func() map[string]string { return sources })
	return rdb
}

func TestAScriptThatTouchesAnUndeclaredKeyFails(t *testing.T) {
	cases := map[string]struct{ script, want string }{
		"call":            {`return redis.call('GET', 'odd')`, `GET of "odd", which is not in KEYS`},
		"pcall":           {`return redis.pcall('SET', 'odd', '1')`, `SET of "odd", which is not in KEYS`},
		"lower case":      {`return redis.call('sadd', 'odd', '1')`, `SADD of "odd", which is not in KEYS`},
		"later key":       {`return redis.call('DEL', KEYS[1], 'odd')`, `DEL of "odd", which is not in KEYS`},
		"key of a pair":   {`return redis.call('MSET', KEYS[1], 'x', 'odd', 'y')`, `MSET of "odd", which is not in KEYS`},
		"a local name":    {`local c = redis.call return c('GET', 'odd')`, `GET of "odd", which is not in KEYS`},
		"a number":        {`return redis.call('GET', 7)`, `GET of "7", which is not in KEYS`},
		"built from KEYS": {`return redis.call('GET', KEYS[1] .. ':x')`, `GET of "{k}1:x", which is not in KEYS`},
		"added to KEYS":   {`KEYS[3] = 'odd' return redis.call('GET', 'odd')`, `GET of "odd", which is not in KEYS`},
		"odd bytes":       {`return redis.call('GET', 'a%3A\0\255\n"')`, `GET of "a\0373A\000\255\010"", which is not in KEYS`},
		"swallowed": {
			`pcall(redis.call, 'GET', 'odd') pcall(redis.call, 'GET', 'two') return 'fine'`,
			`GET of "odd", which is not in KEYS`,
		},
		"unclassified": {`return redis.call('XADD', KEYS[1], '*', 'f', 'v')`, `"XADD" is not classified`},
		"too many": {
			`local a = {} for i = 1, 1001 do a[i] = i end return redis.call('SADD', KEYS[1], unpack(a))`,
			`SADD with 1002 arguments, at most a key and 1000`,
		},
	}
	Each(t, func(t *testing.T, s *Server) {
		rdb := checkedClient(t, s)
		for name, c := range cases {
			err := rdb.Eval(t.Context(), c.script, []string{"{k}1", "{k}2"}).Err()
			require.ErrorContains(t, err, c.want, name)
		}
		require.Empty(t, s.Keys(t), "a refused call does nothing")
	})
}

func TestAStrictScriptWorksAsWithoutTheCheck(t *testing.T) {
	// Every script runs on a checked and on a plain client and must answer the
	// same, errors included.
	scripts := []string{
		`return redis.call('SET', KEYS[1], ARGV[1])`,
		`return redis.call('GET', KEYS[1])`,
		`return redis.call('EXISTS', KEYS[1], KEYS[2])`,
		`return redis.call('MGET', KEYS[1], KEYS[2])`,
		`return redis.call('MSET', KEYS[1], 'no key', KEYS[1], 'odd')`,
		`return redis.call('PING')`,
		`return #redis.call('TIME')`,
		`local a = {} for i = 1, 1000 do a[i] = i end return redis.call('SADD', KEYS[2], unpack(a))`,
		`return redis.call('SCARD', KEYS[2])`,
		`return redis.call('UNLINK', KEYS[1], KEYS[2])`,
		`return {1, 'two', {3, false}, redis.status_reply('FINE')}`,
		`return redis.error_reply('CODE of my own')`,
		`return redis.pcall('INCRBY', KEYS[1], 'x').err ~= nil`,
		`return redis.sha1hex('')`,
		`redis.log(redis.LOG_DEBUG, 'quiet')`,
		`return`,
		"-- a comment before\nreturn 5 -- and after",
		"local n = 0\nfor i = 1, 3 do if i == 2 then n = i end end\nreturn n;",
		`local function f(...) return select('#', ...) end return f(1, nil, nil)`,
		`return ARGV[1]`,
		`return select('#', ...)`,
	}
	Each(t, func(t *testing.T, s *Server) {
		checked, plain := checkedClient(t, s), s.Client(t)
		keys := []string{"{k}1", "{k}2"}
		for _, script := range scripts {
			before := Snapshot(t, plain)
			want, wantErr := plain.Eval(t.Context(), script, keys, "a\x00b").Result()
			after := Snapshot(t, plain)
			restore(t, s, plain, before)
			got, gotErr := checked.Eval(t.Context(), script, keys, "a\x00b").Result()
			require.Equal(t, want, got, script)
			if wantErr == nil {
				require.NoError(t, gotErr, script)
			} else {
				require.EqualError(t, gotErr, wantErr.Error(), script)
			}
			require.Empty(t, Diff(after, Snapshot(t, plain)), script)
		}
	})
}

// restore puts strings and sets back to what they were.
func restore(t *testing.T, s *Server, rdb redis.UniversalClient, to map[string]Entry) {
	t.Helper()
	s.Flush(t)
	for key, e := range to {
		if e.Type == "string" {
			require.NoError(t, rdb.Set(t.Context(), key, e.Value, 0).Err())
			continue
		}
		for m := range e.Elements {
			require.NoError(t, rdb.SAdd(t.Context(), key, m).Err())
		}
	}
}

func TestAllFourWaysToRunAScriptAreChecked(t *testing.T) {
	const good, bad = `return redis.call('GET', KEYS[1])`, `return redis.call('GET', 'odd')`
	Each(t, func(t *testing.T, s *Server) {
		rdb := checkedClient(t, s, good, bad)
		ctx := t.Context()
		require.NoError(t, rdb.Set(ctx, "k", "v", 0).Err())
		run := map[string]func(script string) *redis.Cmd{
			"EVAL":    func(src string) *redis.Cmd { return rdb.Eval(ctx, src, []string{"k"}) },
			"EVAL_RO": func(src string) *redis.Cmd { return rdb.EvalRO(ctx, src, []string{"k"}) },
			"EVALSHA": func(src string) *redis.Cmd {
				return rdb.EvalSha(ctx, redis.NewScript(src).Hash(), []string{"k"})
			},
			"EVALSHA_RO": func(src string) *redis.Cmd {
				return rdb.EvalShaRO(ctx, strings.ToUpper(redis.NewScript(src).Hash()), []string{"k"})
			},
			"in capitals, as bytes": func(src string) *redis.Cmd { return rdb.Do(ctx, "EVAL", []byte(src), 1, "k") },
		}
		for name, eval := range run {
			require.Equal(t, "v", eval(good).Val(), name)
			require.ErrorContains(t, eval(bad).Err(), "not in KEYS", name)
		}
		err := rdb.EvalRO(ctx, `return redis.call('SET', KEYS[1], 'w')`, []string{"k"}).Err()
		require.ErrorContains(t, err, "read-only", "EVAL_RO is still read-only")

		err = rdb.EvalSha(ctx, strings.Repeat("0", 40), []string{"k"}).Err()
		require.ErrorContains(t, err, "a script that the test did not name")
		err = rdb.Eval(ctx, "#!lua flags=no-writes\nreturn 1", []string{"k"}).Err()
		require.ErrorContains(t, err, `a script with a "#!lua flags=no-writes" line`)
		require.ErrorContains(t, rdb.Do(ctx, "EVAL", 5, 0).Err(), "a script given as int")
	})
}

func TestPipelinedScriptsAreChecked(t *testing.T) {
	const good, bad = `return redis.call('GET', KEYS[1])`, `return redis.call('GET', 'odd')`
	Each(t, func(t *testing.T, s *Server) {
		rdb := checkedClient(t, s, good, bad)
		ctx := t.Context()
		require.NoError(t, rdb.Set(ctx, "k", "v", 0).Err())
		for name, pipelined := range map[string]func(func(redis.Pipeliner) error) ([]redis.Cmder, error){
			"pipeline":    func(fn func(redis.Pipeliner) error) ([]redis.Cmder, error) { return rdb.Pipelined(ctx, fn) },
			"transaction": func(fn func(redis.Pipeliner) error) ([]redis.Cmder, error) { return rdb.TxPipelined(ctx, fn) },
		} {
			var get *redis.StringCmd
			var first, second *redis.Cmd
			_, err := pipelined(func(p redis.Pipeliner) error {
				get = p.Get(ctx, "k")
				first = p.EvalSha(ctx, redis.NewScript(good).Hash(), []string{"k"})
				second = p.EvalSha(ctx, redis.NewScript(bad).Hash(), []string{"k"})
				return nil
			})
			require.ErrorContains(t, err, "not in KEYS", name)
			require.Equal(t, "v", get.Val(), name)
			require.Equal(t, "v", first.Val(), name)
			require.NoError(t, first.Err(), name)
			require.ErrorContains(t, second.Err(), "not in KEYS", name)

			_, err = pipelined(func(p redis.Pipeliner) error {
				get = p.Get(ctx, "k")
				first = p.EvalSha(ctx, strings.Repeat("0", 40), []string{"k"})
				return nil
			})
			require.ErrorContains(t, err, "did not name", name)
			require.ErrorContains(t, get.Err(), "did not name", "nothing was sent")
		}
	})
}

func TestAnyTypeOfCommandReceivesItsReply(t *testing.T) {
	const script = `return {KEYS[1], 'x'}`
	Each(t, func(t *testing.T, s *Server) {
		rdb := checkedClient(t, s, script)
		ctx := t.Context()
		sha := redis.NewScript(script).Hash()

		own := once{redis.NewCmd(ctx, "evalsha", sha, 1, "k")}
		require.NoError(t, rdb.Process(ctx, own))
		require.Equal(t, []any{"k", "x"}, own.Val())
		require.Equal(t, []any{"evalsha", sha, 1, "k"}, own.Args(), "the caller's command is left as it was")

		typed := redis.NewStringSliceCmd(ctx, "evalsha", sha, 1, "k")
		pipe := rdb.Pipeline()
		require.NoError(t, pipe.Process(ctx, typed))
		_, err := pipe.Exec(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"k", "x"}, typed.Val())

		rewritten, err := checkHook{func() map[string]string { return map[string]string{sha: script} }}.rewrite(own)
		require.NoError(t, err)
		require.True(t, rewritten.NoRetry())
		require.Equal(t, "eval", rewritten.Name())

		require.Equal(t, int64(7), rdb.Eval(ctx, `return 7`, nil).Val(), "no key at all")
	})
}

func TestAnErrorNamesTheScriptsOwnLine(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		rdb := checkedClient(t, s)
		for name, script := range map[string]string{
			"its own error": "local x = 1\n\nerror('mine')",
			"a refusal":     "local x = 1\n\nredis.call('GET', 'odd')",
		} {
			err := rdb.Eval(t.Context(), script, []string{"k"}).Err()
			require.ErrorContains(t, err, ":3:", name)
		}
	})
}
