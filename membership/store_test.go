package membership_test

import (
	"encoding/json"
	"iter"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at begins every key of a partition below, written out by hand.
const at = "acme:shop:item:{item}:"

// store is an entity type on one server, with what its keys must be written out by hand.
type store[T any] struct {
	*index.Collection[T]
	t   *testing.T
	s   *redistest.Server
	rdb redis.UniversalClient
}

// open opens records of T with indexes and has the brute-force check at the end find nothing. keys gives the index keys
// that a record must be in, behind the prefix and before the version; ids the segments of ids that are not their own.
func open[T any](t *testing.T, s *redistest.Server, id func(T) string, keys func(T) []string, ids map[string]string, ix ...index.Index[T]) store[T] {
	t.Helper()
	rdb := s.Client(t)
	redistest.Checked(rdb, lua.Sources)
	c, err := index.Open(t.Context(), rdb, index.Define("acme:shop", "item", index.Options[T]{
		ID: id, Version: 1, Lifetime: index.Forever, Indexes: ix,
	}))
	require.NoError(t, err)
	t.Cleanup(func() {
		redistest.Oracle[T]{
			Prefix: "acme:shop:item:", Version: 1, ID: id,
			Decode: func(raw string) (rec T, err error) {
				err = json.Unmarshal([]byte(raw), &rec)
				return rec, err
			},
			Expect: func(rec T) map[string]string {
				want := map[string]string{}
				for _, k := range keys(rec) {
					want[at+k+":v1"] = ""
				}
				return want
			},
			RecordKey: func(id string) string {
				if segment, odd := ids[id]; odd {
					return at + segment + ":v1"
				}
				return at + id + ":v1"
			},
		}.Verify(t, rdb)
	})
	return store[T]{c, t, s, rdb}
}

func (s store[T]) put(recs ...T) {
	s.t.Helper()
	for _, rec := range recs {
		require.NoError(s.t, s.Put(s.t.Context(), rec))
	}
}

// ids are the ids under a condition, sorted, which counting and loading must agree with.
func (s store[T]) ids(cond index.Condition[T]) []string {
	s.t.Helper()
	ids := all(s.t, s.IDs(s.t.Context(), cond))
	slices.Sort(ids)
	n, err := s.Count(s.t.Context(), cond)
	require.NoError(s.t, err)
	require.EqualValues(s.t, len(ids), n, "count and ids")
	require.Len(s.t, all(s.t, s.Find(s.t.Context(), cond)), len(ids), "records and ids")
	return ids
}

// unchanged fails the test if fn changes anything on the server.
func (s store[T]) unchanged(fn func()) {
	s.t.Helper()
	before := redistest.Snapshot(s.t, s.rdb)
	fn()
	require.Empty(s.t, redistest.Diff(before, redistest.Snapshot(s.t, s.rdb)))
}

// mentions are the keys that name an id, as a record, a member or a field.
func (s store[T]) mentions(id string) (out []string) {
	s.t.Helper()
	for k, e := range redistest.Snapshot(s.t, s.rdb) {
		if _, ok := e.Elements[id]; ok {
			out = append(out, k)
		}
	}
	k, err := s.RecordKey(id)
	require.NoError(s.t, err)
	if n := s.rdb.Exists(s.t.Context(), k).Val(); n > 0 {
		out = append(out, k)
	}
	return out
}

func all[V any](t *testing.T, seq iter.Seq2[V, error]) []V {
	t.Helper()
	out := []V{}
	for v, err := range seq {
		require.NoError(t, err)
		out = append(out, v)
	}
	return out
}
