package lua

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// found reads every page under a value and gives the ids, sorted, and how many were hidden as due.
func (w *world) found(key string, page int) (ids []string, hidden int64) {
	w.t.Helper()
	for cursor, n := "0", 0; ; n++ {
		reply, err := w.r.Find(w.ctx, FindCall{
			Meta: meta, Expiry: expiry, Entries: key, State: "index:status.1", Cursor: cursor, Page: page,
		})
		require.NoError(w.t, err)
		require.Less(w.t, n, 10_000, "a scan that does not end")
		ids = append(ids, reply.IDs...)
		hidden += reply.Hidden
		if cursor = reply.Cursor; cursor == "0" {
			slices.Sort(ids)
			return slices.Compact(ids), hidden
		}
	}
}

func (w *world) count(keys ...string) int64 {
	w.t.Helper()
	n, err := w.r.Count(w.ctx, meta, expiry, "index:status.1", keys)
	require.NoError(w.t, err)
	return n
}

func TestAQueryReadsALargeSetInPagesAndASmallOneWhole(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		var all []change
		var want []string
		for i := range 1500 {
			id := fmt.Sprintf("id%05d", i)
			want = append(want, id)
			all = append(all, change{id: id, in: newUser})
		}
		w.written(all...)
		for _, page := range []int{100, 1000, 1500, 5000} {
			ids, hidden := w.found(statusOf+"new:v1", page)
			require.Equal(t, want, ids, page)
			require.Zero(t, hidden)
		}
		require.EqualValues(t, 1500, w.count(statusOf+"new:v1"))
		require.EqualValues(t, 1500, w.count(statusOf+"new:v1", statusOf+"none:v1"))
		ids, _ := w.found(statusOf+"none:v1", 100)
		require.Empty(t, ids)
		require.Zero(t, w.count(statusOf+"none:v1"))
		require.Zero(t, w.count(), "no values, no records")
	})
}

func TestWhatIsDueIsNeitherFoundNorCounted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		// The notes are moved into the past by hand, so the records are still there: the oracle has nothing against them.
		w.verified()
		var all []change
		var past []redis.Z
		for i := range 2500 {
			id := fmt.Sprintf("id%05d", i)
			all = append(all, change{id: id, in: newUser, lifetime: "3600000"})
			if i%2 == 0 {
				past = append(past, redis.Z{Score: 1, Member: id})
			}
		}
		w.written(all...)
		w.written(change{id: "forever", in: newUser})
		require.NoError(t, w.rdb.ZAdd(w.ctx, expiry, past...).Err())
		for _, page := range []int{100, 5000} {
			ids, hidden := w.found(statusOf+"new:v1", page)
			require.Len(t, ids, 1251)
			require.Contains(t, ids, "forever")
			require.NotContains(t, ids, "id00000")
			require.GreaterOrEqual(t, hidden, int64(1250))
		}
		require.EqualValues(t, 1251, w.count(statusOf+"new:v1", statusOf+"old:v1"))
	})
}

func TestAnIndexThatIsNotReadyAnswersNeitherIdsNorCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		w := newWorld(t, s)
		query := func(field string) (errs []error) {
			_, err := w.r.Find(w.ctx, FindCall{Meta: meta, Expiry: expiry, Entries: statusOf + "new:v1", State: field, Cursor: "0", Page: 10})
			_, err2 := w.r.Count(w.ctx, meta, expiry, field, []string{statusOf + "new:v1"})
			return []error{err, err2}
		}
		for _, err := range query("index:status.1") {
			require.ErrorIs(t, err, ErrNotEntered)
		}
		require.NoError(t, w.enter(1, Building, []string{"index:status.1"}))
		for field, state := range map[string]string{"index:status.1": "building", "index:other.1": "", "index:status.2": ""} {
			for _, err := range query(field) {
				var typed *StateError
				require.ErrorAs(t, err, &typed)
				require.Equal(t, state, typed.State)
			}
		}
		require.NoError(t, w.rdb.HSet(w.ctx, meta, "index:status.1", "ready").Err())
		for _, err := range query("index:status.1") {
			require.NoError(t, err)
		}
	})
}

func TestAForeignValueAtAKeyEndsAQueryWithItsNameAndType(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.written(change{id: "a", in: newUser, lifetime: "3600000"})
		for _, key := range []string{expiry, statusOf + "new:v1", record("a"), manifest, meta} {
			require.NoError(t, w.rdb.Del(w.ctx, key).Err())
			require.NoError(t, w.rdb.RPush(w.ctx, key, "x").Err())
			_, find := w.r.Find(w.ctx, FindCall{Meta: meta, Expiry: expiry, Entries: statusOf + "new:v1", State: "index:status.1", Cursor: "0", Page: 10})
			_, count := w.r.Count(w.ctx, meta, expiry, "index:status.1", []string{statusOf + "new:v1"})
			loaded, _, read := w.r.Read(w.ctx, meta, manifest, []string{record("a")}, []string{"a"}, false)
			errs := []error{find, count}
			switch key {
			case record("a"):
				require.NoError(t, read, "a foreign record is nothing to the others of a call")
				require.Equal(t, "list", loaded[0].Foreign)
				continue
			case manifest:
				errs = []error{read}
			case meta:
				errs = append(errs, read)
			}
			for _, err := range errs {
				var typed *KeyTypeError
				require.ErrorAs(t, err, &typed, key)
				require.Equal(t, KeyTypeError{Key: key, Found: "list"}, *typed)
			}
			if key == expiry {
				require.NoError(t, w.rdb.Del(w.ctx, expiry).Err())
			}
		}
	})
}

func TestReadGivesRecordsAndRowsInTheOrderAskedFor(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.written(change{id: "a", writeID: "write001", in: newUser}, change{id: "c", writeID: "write003", lifetime: "3600000"})
		require.NoError(t, w.rdb.HSet(w.ctx, manifest, "rowonly", "write009"+"1").Err())
		require.NoError(t, w.rdb.Set(w.ctx, record("valueonly"), "", 0).Err())
		ids := []string{"c", "none", "a", "rowonly", "valueonly", "a"}
		keys := make([]string, len(ids))
		for i, id := range ids {
			keys[i] = record(id)
		}
		got, seq, err := w.r.Read(w.ctx, meta, manifest, keys, ids, true)
		require.NoError(t, err)
		require.EqualValues(t, 1, seq)
		require.Len(t, got, len(ids))
		require.Equal(t, `{"ID":"c","In":null}`, got[0].Value)
		require.InDelta(t, time.Hour, got[0].TTL, float64(10*time.Second))
		require.Equal(t, Loaded{TTL: -1}, got[1])
		require.Equal(t, Loaded{
			Row: "write0011\nsstatus.1:new", HasRow: true, Value: `{"ID":"a","In":["status.1:new"]}`, HasValue: true, TTL: -1,
		}, got[2])
		require.Equal(t, Loaded{Row: "write0091", HasRow: true, TTL: -1}, got[3])
		require.Equal(t, Loaded{HasValue: true, TTL: -1}, got[4], "an empty record is a record")
		require.Equal(t, got[2], got[5])

		got, _, err = w.r.Read(w.ctx, meta, manifest, keys[:1], ids[:1], false)
		require.NoError(t, err)
		require.Equal(t, `{"ID":"c","In":null}`, got[0].Value)
		require.EqualValues(t, -1, got[0].TTL, "nobody asked for it")
	})
}
