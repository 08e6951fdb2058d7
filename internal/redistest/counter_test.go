package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestTheCounterCountsTripsAndCommands(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		rdb := s.Client(t)
		c := Count(rdb)
		ctx := t.Context()

		require.NoError(t, rdb.Set(ctx, "{x}a", "1", 0).Err())
		require.Equal(t, 1, c.Trips(), "the set-up of the connection is not counted")

		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Get(ctx, "{x}a")
			p.Get(ctx, "{x}a")
			p.Do(ctx, "SADD", "{x}s", "m")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 2, c.Trips())
		require.Equal(t, map[string]int{"set": 1, "get": 2, "sadd": 1}, c.Commands())

		_, err = rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "{x}a")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 3, c.Trips())
		require.Equal(t, 1, c.Commands()["incr"])

		c.Commands()["get"] = 99 // a copy
		require.Equal(t, 2, c.Commands()["get"])
		c.Reset()
		require.Zero(t, c.Trips())
		require.Empty(t, c.Commands())
	})
}

func TestACounterBeforeTheCheckSeesWhatTheCallerSent(t *testing.T) {
	ctx := t.Context()
	const source = `return 1`
	script := redis.NewScript(source)
	rdb := Mini(t).Client(t)
	outer := Count(rdb)
	Checked(rdb, func() map[string]string { return map[string]string{script.Hash(): source} })
	inner := Count(rdb)
	require.NoError(t, script.EvalSha(ctx, rdb, nil).Err())
	require.Equal(t, map[string]int{"evalsha": 1}, outer.Commands())
	require.Equal(t, map[string]int{"eval": 1}, inner.Commands())
}
