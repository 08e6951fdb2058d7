package lua

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestALookGivesWhatReadGivesAndLeavesTheRestToIt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, rdb := t.Context(), s.Client(t)
		const meta, manifest = "{t}meta", "{t}manifest"
		r := NewRunner(rdb, Retry{}, nil)
		look := func(ids ...string) ([]Loaded, int64, bool) {
			keys := make([]string, len(ids))
			for i, id := range ids {
				keys[i] = "{t}" + id
			}
			return r.Look(ctx, meta, manifest, keys, ids)
		}
		require.NoError(t, rdb.HSet(ctx, meta, "seq", 7).Err())
		require.NoError(t, rdb.HSet(ctx, manifest, "a", "row of a", "gone", "row of what is gone").Err())
		require.NoError(t, rdb.MSet(ctx, "{t}a", "A", "{t}rowless", "").Err())
		require.NoError(t, rdb.SAdd(ctx, "{t}foreign", "m").Err())

		trips := redistest.Count(rdb)
		got, seq, ok := look("a", "rowless")
		require.True(t, ok)
		require.Equal(t, 1, trips.Trips())
		require.EqualValues(t, 7, seq)
		read, _, err := r.Read(ctx, meta, manifest, []string{"{t}a", "{t}rowless"}, []string{"a", "rowless"}, false)
		require.NoError(t, err)
		require.Equal(t, read, got)

		for _, id := range []string{"gone", "nobody", "foreign"} {
			_, _, ok := look("a", id)
			require.False(t, ok, id)
		}
		require.NoError(t, rdb.Del(ctx, manifest).Err())
		require.NoError(t, rdb.Set(ctx, manifest, "foreign", 0).Err())
		_, _, ok = look("a")
		require.False(t, ok, "a foreign manifest")
	})
}

func TestAUserWithoutMultiIsAskedOnce(t *testing.T) {
	s := redistest.Redis(t)
	ctx, rdb := t.Context(), s.Client(t)
	require.NoError(t, rdb.HSet(ctx, "meta", "seq", 7).Err())
	require.NoError(t, rdb.Set(ctx, "a", "A", 0).Err())
	require.NoError(t, rdb.Do(ctx, "ACL", "SETUSER", "default", "+@all", "-multi").Err())
	r := NewRunner(rdb, Retry{}, nil)
	trips := redistest.Count(rdb)
	for range 3 {
		_, _, ok := r.Look(ctx, "meta", "manifest", []string{"a"}, []string{"a"})
		require.False(t, ok)
	}
	require.Equal(t, 1, trips.Trips())
}
