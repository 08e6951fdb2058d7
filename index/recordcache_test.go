package index

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/lua"
)

// stored is a call that has written a record of so many bytes.
func stored(id string, size int) *batchPlan {
	call := written(id, "sstatus.1:new")
	call.writes[0].value = make([]byte, size)
	return call
}

func TestARecordCacheStaysWithinItsBytes(t *testing.T) {
	const bytes = 64 << 10
	r := newRecordCache(bytes)
	held := func() (sum int) {
		for id, m := range r.held {
			sum += cachedRecordBytes + len(id) + len(m.value)
		}
		return sum
	}
	for i := range 5_000 {
		id := fmt.Sprint("id", i)
		r.learn(stored(id, i%300))
		require.Equal(t, held(), r.used)
		require.LessOrEqual(t, r.used, bytes)
		require.Contains(t, r.held, id)
	}
	require.Greater(t, r.used, bytes*9/10, "the room is used")

	_, ok := r.take("id4999")
	require.True(t, ok)
	_, ok = r.take("id4999")
	require.False(t, ok, "who takes it will be the one to write it")

	r.learn(stored("huge", maxCachedRecord))
	require.NotContains(t, r.held, "huge")

	// What was deleted, and what was not written, is forgotten.
	for _, end := range []func(w *write){func(w *write) { w.mode = lua.Delete }, func(w *write) { w.applied = false }} {
		r.learn(stored("x", 10))
		require.Contains(t, r.held, "x")
		call := stored("x", 10)
		end(call.writes[0])
		r.learn(call)
		require.NotContains(t, r.held, "x")
	}
	require.Equal(t, held(), r.used)

	var none *recordCache
	none.learn(stored("x", 10))
	_, ok = none.take("x")
	require.False(t, ok)
	require.Nil(t, newRecordCache(-1))
}
