package index

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// written is a call that has written a record with an entry.
func written(id, entry string) *batchPlan {
	return &batchPlan{
		ApplyCall: lua.ApplyCall{Records: []lua.ApplyRecord{{ID: id, Entries: entry}}},
		writes:    []*write{{id: id, mode: lua.Put, applied: true}},
	}
}

// hinted is what a cache tells about a record, nil if it knows nothing.
func hinted(r *rowCache, id string) []plan.Token {
	w := &write{id: id, rounds: 1}
	r.hint([]*write{w})
	return w.assumed
}

func TestARowCacheStaysWithinItsBytesAndForgetsWhatIsNotUsed(t *testing.T) {
	const bytes = 64 << 10
	r := newRowCache(bytes)
	held := func() (sum int) {
		for _, entries := range []map[uint64]string{r.young, r.old} {
			for _, e := range entries {
				sum += cachedRowBytes + len(e)
			}
		}
		return sum
	}
	for i := range 10_000 {
		id := fmt.Sprint("id", i)
		r.learn(written(id, "sstatus.1:"+id))
		require.Equal(t, []plan.Token{plan.Token("sstatus.1:" + id)}, hinted(r, id))
		require.NotNil(t, hinted(r, "id0"), "what is used stays")
	}
	require.LessOrEqual(t, held(), bytes)
	require.Greater(t, held(), bytes/3, "the room is used")
	require.Nil(t, hinted(r, "id1"))
	require.Nil(t, hinted(r, "id5000"))

	// Equal entries are kept once: many more records fit.
	r = newRowCache(bytes)
	for i := range bytes / 2 / cachedRowBytes {
		r.learn(written(fmt.Sprint("id", i), "sstatus.1:"+strings.Repeat("x", 100)))
	}
	require.NotNil(t, hinted(r, "id0"))

	r.learn(written("huge", "sstatus.1:"+strings.Repeat("x", bytes)))
	require.Nil(t, hinted(r, "huge"), "what is larger than all of it is not kept")
	require.NotNil(t, hinted(r, "id1"), "and takes nothing's place")
}

func TestARowCacheForgetsWhatWasDeletedOrFailed(t *testing.T) {
	r := newRowCache(1 << 10)
	for _, end := range []write{{id: "a", mode: lua.Delete, applied: true}, {id: "a", mode: lua.Put}} {
		r.learn(written("a", "sstatus.1:new"))
		require.NotNil(t, hinted(r, "a"))
		call := written("a", "sstatus.1:old")
		call.writes[0] = &end
		r.learn(call)
		require.Nil(t, hinted(r, "a"))
	}
}

func TestARowCacheSaysNothingToWhoKnowsMore(t *testing.T) {
	r := newRowCache(1 << 10)
	r.learn(written("a", "sstatus.1:new"))
	for _, w := range []*write{{id: "a", rounds: 2}, {id: "a", rounds: 1, token: true}} {
		r.hint([]*write{w})
		require.Nil(t, w.assumed)
	}
	var none *rowCache
	require.Equal(t, none, newRowCache(-1))
	none.learn(written("a", "sstatus.1:new"))
	require.Nil(t, hinted(none, "a"))
}
