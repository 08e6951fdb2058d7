package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// fill writes one key of each type, spread over the slots.
func fill(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, rdb.Set(ctx, "string", "a\x00\xff", 0).Err())
	require.NoError(t, rdb.Set(ctx, "empty", "", time.Minute).Err())
	require.NoError(t, rdb.SAdd(ctx, "set", "b", "a").Err())
	require.NoError(t, rdb.HSet(ctx, "hash", "f", "1", "g", "").Err())
	require.NoError(t, rdb.ZAdd(ctx, "zset", redis.Z{Score: 1.5, Member: "m"}, redis.Z{Score: -3, Member: "n"}).Err())
	require.NoError(t, rdb.RPush(ctx, "list", "x", "y").Err())
}

func TestASnapshotHoldsTheContentsOfEveryKey(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		rdb := s.Client(t)
		fill(t, rdb)
		snap := Snapshot(t, rdb)
		require.Len(t, snap, 6)
		require.Equal(t, "a\x00\xff", snap["string"].Value)
		require.Negative(t, snap["string"].PTTL)
		require.Equal(t, "string", snap["empty"].Type)
		require.InDelta(t, time.Minute, snap["empty"].PTTL, float64(5*time.Second))
		require.Equal(t, map[string]string{"a": "", "b": ""}, snap["set"].Elements)
		require.Equal(t, map[string]string{"f": "1", "g": ""}, snap["hash"].Elements)
		require.Equal(t, map[string]string{"m": "1.5", "n": "-3"}, snap["zset"].Elements)
		require.Equal(t, map[string]string{"0": "x", "1": "y"}, snap["list"].Elements)
	})
}

func TestASnapshotOfAHugeSetIsWhole(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		rdb := s.Client(t)
		const n = 5000
		zs := make([]redis.Z, n)
		for i := range zs {
			zs[i] = redis.Z{Score: float64(i), Member: i}
		}
		require.NoError(t, rdb.ZAdd(t.Context(), "zset", zs...).Err())
		require.Len(t, Snapshot(t, rdb)["zset"].Elements, n)
	})
}

func TestNothingChangedMeansNoDiff(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		rdb := s.Client(t)
		fill(t, rdb)
		before := Snapshot(t, rdb)
		for range 20 { // reads alone, while the lifetimes run down
			require.NoError(t, rdb.SRandMember(t.Context(), "set").Err())
		}
		require.Empty(t, Diff(before, Snapshot(t, rdb)))
	})
}

func TestEveryChangeIsInTheDiff(t *testing.T) {
	changes := map[string]struct {
		change func(rdb redis.UniversalClient) error
		want   string
	}{
		"a new key": {
			func(rdb redis.UniversalClient) error { return rdb.Set(t.Context(), "new", "v", 0).Err() },
			`"new" appeared: string "v", for ever`,
		},
		"a lost key": {
			func(rdb redis.UniversalClient) error { return rdb.Del(t.Context(), "set").Err() },
			`"set" is gone: set "a" "b", for ever`,
		},
		"another type": {
			func(rdb redis.UniversalClient) error { return rdb.Set(t.Context(), "set", "v", 0).Err() },
			`"set" changed: set "a" "b", for ever, now string "v", for ever`,
		},
		"another value": {
			func(rdb redis.UniversalClient) error { return rdb.Set(t.Context(), "string", "b", 0).Err() },
			`"string": value "a\x00\xff", now "b"`,
		},
		"a new member": {
			func(rdb redis.UniversalClient) error { return rdb.SAdd(t.Context(), "set", "c").Err() },
			`"set": "c" appeared`,
		},
		"a lost field": {
			func(rdb redis.UniversalClient) error { return rdb.HDel(t.Context(), "hash", "f").Err() },
			`"hash": "f"="1" is gone`,
		},
		"another score": {
			func(rdb redis.UniversalClient) error { return rdb.ZIncrBy(t.Context(), "zset", 1, "m").Err() },
			`"zset": "m"="1.5", now "2.5"`,
		},
		"another order": {
			func(rdb redis.UniversalClient) error { return rdb.LSet(t.Context(), "list", 1, "z").Err() },
			`"list": "1"="y", now "z"`,
		},
		"a new lifetime": {
			func(rdb redis.UniversalClient) error { return rdb.Expire(t.Context(), "string", time.Hour).Err() },
			`"string": for ever, now for `,
		},
		"a lost lifetime": {
			func(rdb redis.UniversalClient) error { return rdb.Persist(t.Context(), "empty").Err() },
			`now for ever`,
		},
		"a longer lifetime": {
			func(rdb redis.UniversalClient) error { return rdb.PExpire(t.Context(), "empty", 61*time.Second).Err() },
			`"empty": for `,
		},
		"a shorter lifetime": {
			func(rdb redis.UniversalClient) error { return rdb.PExpire(t.Context(), "empty", 30*time.Second).Err() },
			`"empty": for `,
		},
	}
	Each(t, func(t *testing.T, s *Server) {
		rdb := s.Client(t)
		for name, c := range changes {
			s.Flush(t)
			fill(t, rdb)
			before := Snapshot(t, rdb)
			require.NoError(t, c.change(rdb), name)
			diff := Diff(before, Snapshot(t, rdb))
			require.Len(t, diff, 1, name)
			require.Contains(t, diff[0], c.want, name)
		}
	})
}
