// Package opaquetest holds a store against the contract of opaque.KV. Whoever writes an adapter runs Conformance in its
// tests: what passes keeps its indexes right under package opaque.
package opaquetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/opaque"
)

// Harness says how to get at the store under test. Every test asks Open once.
type Harness struct {
	// Open gives a client of an empty store that the test shares with nobody.
	Open func(t testing.TB) Target
}

// Target is one store and what the suite may do with it. Functions that are nil leave out the tests that need them, aloud.
type Target struct {
	// KV is a client. It must be safe for concurrent use.
	KV opaque.KV
	// Second gives another client of the same store.
	Second func(t testing.TB) opaque.KV
	// Restart restarts the server, which may lose what it held, under the open clients.
	Restart func(t testing.TB)
	// Advance lets at least d pass on the clock of the store. Without it the suite waits in real time.
	Advance func(d time.Duration)
}

// Conformance runs the suite.
func Conformance(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, at Target)
	}{
		{"an absent key is not found", absent},
		{"add never overwrites", addOnce},
		{"the token of every write is good for the next", chain},
		{"equal bytes written again have another token", sameBytes},
		{"a value that came back does not bring its token back", aba},
		{"a key that was deleted and written again has another token", recreated},
		{"a late swap is refused", lateSwap},
		{"a late delete is refused", lateDelete},
		{"a delete names the value it removes", conditionalDelete},
		{"an empty token is refused", emptyToken},
		{"reading does not move the token", readings},
		{"a token is good in the client that got it, or refused", foreignToken},
		{"of many adds one wins", racingAdds},
		{"of many swaps of one token one wins", racingSwaps},
		{"a lifetime ends, and a swap renews or removes it", lifetimes},
		{"a lifetime of months is not taken for a date", longLifetime},
		{"a lifetime in the past is over", pastLifetime},
		{"an oversized value is refused and the old one stays", oversized},
		{"keys are taken as they are, or refused", keyRules},
		{"any bytes come back as they were", anyBytes},
		{"many keys come back in order", many},
		{"a token does not outlive a restart", restarted},
		{"an ended context sends nothing", endedContext},
		{"a value handed in may be changed afterwards", ownBytes},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, h.Open(t)) })
	}
}

var forever time.Time

func mustAdd(t *testing.T, kv opaque.KV, k, v string) opaque.Token {
	t.Helper()
	token, err := kv.Add(t.Context(), k, []byte(v), forever)
	require.NoError(t, err)
	require.NotEmpty(t, token, "add gives a token")
	return token
}

func mustSwap(t *testing.T, kv opaque.KV, k, v string, token opaque.Token) opaque.Token {
	t.Helper()
	next, err := kv.Swap(t.Context(), k, []byte(v), forever, token)
	require.NoError(t, err)
	require.NotEmpty(t, next, "swap gives a token")
	return next
}

func mustGet(t *testing.T, kv opaque.KV, k string) opaque.Item {
	t.Helper()
	item, err := kv.Get(t.Context(), k)
	require.NoError(t, err)
	require.NotEmpty(t, item.Token, "get gives a token")
	return item
}

func requireValue(t *testing.T, kv opaque.KV, k, want string) {
	t.Helper()
	require.Equal(t, want, string(mustGet(t, kv, k).Value))
}

// requireMoved holds an error against what a swap or delete with a token of the past may answer.
func requireMoved(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for _, sentinel := range []error{opaque.ErrChanged, opaque.ErrNotFound} {
		if errorIs(err, sentinel) {
			return
		}
	}
	require.ErrorIs(t, err, opaque.ErrChanged)
}

func absent(t *testing.T, at Target) {
	_, err := at.KV.Get(t.Context(), "k")
	require.ErrorIs(t, err, opaque.ErrNotFound)
	token := mustAdd(t, at.KV, "other", "v")
	_, err = at.KV.Swap(t.Context(), "k", []byte("v"), forever, token)
	requireMoved(t, err)
	requireMoved(t, at.KV.Delete(t.Context(), "k", token))
	_, err = at.KV.Get(t.Context(), "k")
	require.ErrorIs(t, err, opaque.ErrNotFound)
}

func addOnce(t *testing.T, at Target) {
	mustAdd(t, at.KV, "k", "first")
	_, err := at.KV.Add(t.Context(), "k", []byte("second"), forever)
	require.ErrorIs(t, err, opaque.ErrExists)
	requireValue(t, at.KV, "k", "first")
}

func chain(t *testing.T, at Target) {
	token := mustAdd(t, at.KV, "k", "0")
	for n := 1; n < 20; n++ {
		token = mustSwap(t, at.KV, "k", fmt.Sprint(n), token)
	}
	requireValue(t, at.KV, "k", "19")
	mustSwap(t, at.KV, "k", "by the token of a reading", mustGet(t, at.KV, "k").Token)
	require.NoError(t, at.KV.Delete(t.Context(), "k", mustGet(t, at.KV, "k").Token))
	_, err := at.KV.Get(t.Context(), "k")
	require.ErrorIs(t, err, opaque.ErrNotFound)
}

func sameBytes(t *testing.T, at Target) {
	before := mustAdd(t, at.KV, "k", "same")
	mustSwap(t, at.KV, "k", "same", before)
	_, err := at.KV.Swap(t.Context(), "k", []byte("late"), forever, before)
	require.ErrorIs(t, err, opaque.ErrChanged)
	requireValue(t, at.KV, "k", "same")
}

func aba(t *testing.T, at Target) {
	mustAdd(t, at.KV, "k", "a")
	first := mustGet(t, at.KV, "k").Token
	token := mustSwap(t, at.KV, "k", "b", first)
	mustSwap(t, at.KV, "k", "a", token)
	_, err := at.KV.Swap(t.Context(), "k", []byte("late"), forever, first)
	require.ErrorIs(t, err, opaque.ErrChanged)
	require.ErrorIs(t, at.KV.Delete(t.Context(), "k", first), opaque.ErrChanged)
	requireValue(t, at.KV, "k", "a")
}

func recreated(t *testing.T, at Target) {
	first := mustAdd(t, at.KV, "k", "a")
	require.NoError(t, at.KV.Delete(t.Context(), "k", first))
	mustAdd(t, at.KV, "k", "a")
	_, err := at.KV.Swap(t.Context(), "k", []byte("late"), forever, first)
	require.ErrorIs(t, err, opaque.ErrChanged)
	require.ErrorIs(t, at.KV.Delete(t.Context(), "k", first), opaque.ErrChanged)
	requireValue(t, at.KV, "k", "a")
}

func lateSwap(t *testing.T, at Target) {
	token := mustAdd(t, at.KV, "k", "a")
	mustSwap(t, at.KV, "k", "b", token)
	_, err := at.KV.Swap(t.Context(), "k", []byte("late"), forever, token)
	require.ErrorIs(t, err, opaque.ErrChanged)
	requireValue(t, at.KV, "k", "b")
	require.NoError(t, at.KV.Delete(t.Context(), "k", mustGet(t, at.KV, "k").Token))
	_, err = at.KV.Swap(t.Context(), "k", []byte("late"), forever, token)
	requireMoved(t, err)
	_, err = at.KV.Get(t.Context(), "k")
	require.ErrorIs(t, err, opaque.ErrNotFound, "a swap never creates")
}

func lateDelete(t *testing.T, at Target) {
	token := mustAdd(t, at.KV, "k", "a")
	mustSwap(t, at.KV, "k", "b", token)
	require.ErrorIs(t, at.KV.Delete(t.Context(), "k", token), opaque.ErrChanged)
	requireValue(t, at.KV, "k", "b")
}

func conditionalDelete(t *testing.T, at Target) {
	token := mustAdd(t, at.KV, "k", "a")
	other := mustAdd(t, at.KV, "other", "b")
	require.ErrorIs(t, at.KV.Delete(t.Context(), "k", other), opaque.ErrChanged)
	require.NoError(t, at.KV.Delete(t.Context(), "k", token))
	requireMoved(t, at.KV.Delete(t.Context(), "k", token))
	mustAdd(t, at.KV, "k", "add works after a delete")
	requireValue(t, at.KV, "other", "b")
}

func emptyToken(t *testing.T, at Target) {
	mustAdd(t, at.KV, "k", "a")
	for _, k := range []string{"k", "absent"} {
		_, err := at.KV.Swap(t.Context(), k, []byte("b"), forever, "")
		require.ErrorIs(t, err, opaque.ErrNoToken)
		require.ErrorIs(t, at.KV.Delete(t.Context(), k, ""), opaque.ErrNoToken)
	}
	requireValue(t, at.KV, "k", "a")
	_, err := at.KV.Get(t.Context(), "absent")
	require.ErrorIs(t, err, opaque.ErrNotFound)
	_, err = at.KV.Swap(t.Context(), "k", []byte("b"), forever, "no token of this store")
	requireMoved(t, err)
	requireMoved(t, at.KV.Delete(t.Context(), "k", "no token of this store"))
	requireValue(t, at.KV, "k", "a")
}

func readings(t *testing.T, at Target) {
	token := mustAdd(t, at.KV, "k", "a")
	for range 3 {
		mustGet(t, at.KV, "k")
	}
	mustSwap(t, at.KV, "k", "b", token)
}

func foreignToken(t *testing.T, at Target) {
	if at.Second == nil {
		t.Skip("the harness has no second client")
	}
	other := at.Second(t)
	token := mustAdd(t, at.KV, "k", "a")
	requireValue(t, other, "k", "a")
	if _, err := other.Swap(t.Context(), "k", []byte("b"), forever, token); err != nil {
		require.ErrorIs(t, err, opaque.ErrChanged)
		requireValue(t, other, "k", "a")
	}
	theirs := mustGet(t, other, "k").Token
	mustSwap(t, other, "k", "c", theirs)
	_, err := at.KV.Swap(t.Context(), "k", []byte("late"), forever, token)
	require.ErrorIs(t, err, opaque.ErrChanged)
	requireValue(t, at.KV, "k", "c")
}

func racingAdds(t *testing.T, at Target) {
	var won atomic.Int32
	together(16, func(n int) {
		_, err := at.KV.Add(t.Context(), "k", []byte(fmt.Sprint(n)), forever)
		if err == nil {
			won.Add(1)
		} else if !errorIs(err, opaque.ErrExists) {
			t.Errorf("add: %v", err)
		}
	})
	require.EqualValues(t, 1, won.Load())
}

func racingSwaps(t *testing.T, at Target) {
	token := mustAdd(t, at.KV, "k", "0")
	var won atomic.Int32
	together(16, func(n int) {
		_, err := at.KV.Swap(t.Context(), "k", []byte(fmt.Sprint(n)), forever, token)
		if err == nil {
			won.Add(1)
		} else if !errorIs(err, opaque.ErrChanged) {
			t.Errorf("swap: %v", err)
		}
	})
	require.EqualValues(t, 1, won.Load())
}

func endedContext(t *testing.T, at Target) {
	token := mustAdd(t, at.KV, "k", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := at.KV.Add(ctx, "new", []byte("b"), forever)
	require.Error(t, err)
	_, err = at.KV.Swap(ctx, "k", []byte("b"), forever, token)
	require.Error(t, err)
	require.Error(t, at.KV.Delete(ctx, "k", token))
	requireValue(t, at.KV, "k", "a")
	_, err = at.KV.Get(t.Context(), "new")
	require.ErrorIs(t, err, opaque.ErrNotFound)
}

func ownBytes(t *testing.T, at Target) {
	value := []byte("before")
	_, err := at.KV.Add(t.Context(), "k", value, forever)
	require.NoError(t, err)
	copy(value, "after!")
	requireValue(t, at.KV, "k", "before")
	got := mustGet(t, at.KV, "k").Value
	copy(got, "after!")
	requireValue(t, at.KV, "k", "before")
}

// together runs fn n times at once and waits for all.
func together(n int, fn func(n int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

func anyBytes(t *testing.T, at Target) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, v := range []string{string(all), "\r\nEND\r\n", "\x00", strings.Repeat("x", 100_000)} {
		k := fmt.Sprintf("k%d", i)
		mustAdd(t, at.KV, k, v)
		requireValue(t, at.KV, k, v)
	}
}
