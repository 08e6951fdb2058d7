package opaquetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/opaque"
)

func errorIs(err, target error) bool { return errors.Is(err, target) }

// patience bounds every wait for something that has to happen.
const patience = 15 * time.Second

// gone waits until a key is absent.
func (at Target) gone(t *testing.T, k string, life time.Duration) {
	t.Helper()
	if at.Advance != nil {
		at.Advance(life + time.Second)
		_, err := at.KV.Get(t.Context(), k)
		require.ErrorIs(t, err, opaque.ErrNotFound)
		return
	}
	require.Eventually(t, func() bool {
		_, err := at.KV.Get(t.Context(), k)
		return errors.Is(err, opaque.ErrNotFound)
	}, life+patience, 5*time.Millisecond)
}

// maxTried bounds the values that the suite writes.
const maxTried = 16 << 20

func limitsOf(t *testing.T, kv opaque.KV) opaque.Limits {
	t.Helper()
	l, err := kv.Limits(t.Context())
	require.NoError(t, err)
	return l
}

func lifetimes(t *testing.T, at Target) {
	short := max(time.Second, limitsOf(t, at.KV).MinLifetime)
	soon := time.Now().Add(short)
	_, err := at.KV.Add(t.Context(), "mortal", []byte("a"), soon)
	require.NoError(t, err)
	token, err := at.KV.Add(t.Context(), "saved", []byte("a"), soon)
	require.NoError(t, err)
	_, err = at.KV.Swap(t.Context(), "saved", []byte("b"), forever, token)
	require.NoError(t, err)
	token = mustAdd(t, at.KV, "doomed", "a")
	token, err = at.KV.Swap(t.Context(), "doomed", []byte("b"), soon, token)
	require.NoError(t, err)

	at.gone(t, "mortal", short)
	_, err = at.KV.Swap(t.Context(), "doomed", []byte("late"), forever, token)
	if err == nil {
		// The store had not come to it yet.
		requireValue(t, at.KV, "doomed", "late")
	} else {
		requireMoved(t, err)
	}
	requireValue(t, at.KV, "saved", "b")
	mustAdd(t, at.KV, "mortal", "again")
}

func longLifetime(t *testing.T, at Target) {
	for _, days := range []int{29, 30, 31, 365} {
		k := fmt.Sprintf("k%d", days)
		_, err := at.KV.Add(t.Context(), k, []byte("a"), time.Now().AddDate(0, 0, days))
		require.NoError(t, err)
		requireValue(t, at.KV, k, "a")
		item := mustGet(t, at.KV, k)
		_, err = at.KV.Swap(t.Context(), k, []byte("b"), time.Now().AddDate(0, 0, days), item.Token)
		require.NoError(t, err)
		requireValue(t, at.KV, k, "b")
	}
}

func pastLifetime(t *testing.T, at Target) {
	if _, err := at.KV.Add(t.Context(), "k", []byte("a"), time.Now().Add(-time.Hour)); err == nil {
		_, err = at.KV.Get(t.Context(), "k")
		require.ErrorIs(t, err, opaque.ErrNotFound)
	}
	token := mustAdd(t, at.KV, "k", "b")
	if _, err := at.KV.Swap(t.Context(), "k", []byte("c"), time.Now().Add(-time.Hour), token); err == nil {
		_, err = at.KV.Get(t.Context(), "k")
		require.ErrorIs(t, err, opaque.ErrNotFound)
	}
}

func oversized(t *testing.T, at Target) {
	limit := limitsOf(t, at.KV).MaxValue
	if limit == 0 {
		t.Skip("the store has no limit")
	}
	if limit > maxTried {
		t.Skipf("the limit of %d bytes is more than the suite writes", limit)
	}
	token := mustAdd(t, at.KV, "k", "old")
	large := make([]byte, max(2<<20, 2*limit))
	_, err := at.KV.Swap(t.Context(), "k", large, forever, token)
	require.ErrorIs(t, err, opaque.ErrTooLarge)
	requireValue(t, at.KV, "k", "old")
	_, err = at.KV.Add(t.Context(), "new", large, forever)
	require.ErrorIs(t, err, opaque.ErrTooLarge)
	_, err = at.KV.Get(t.Context(), "new")
	require.ErrorIs(t, err, opaque.ErrNotFound)
	mustSwap(t, at.KV, "k", "still good", token)

	most := strings.Repeat("x", limit)
	mustAdd(t, at.KV, "most", most)
	requireValue(t, at.KV, "most", most)
	_, err = at.KV.Add(t.Context(), "more", []byte(most+"x"), forever)
	require.ErrorIs(t, err, opaque.ErrTooLarge)
}

func keyRules(t *testing.T, at Target) {
	rules := limitsOf(t, at.KV).Keys
	longest := strings.Repeat("k", rules.MaxKey())
	mustAdd(t, at.KV, longest, "a")
	requireValue(t, at.KV, longest, "a")

	bad := []string{"", longest + "k"}
	if rules == key.Memcached {
		bad = append(bad, "a b", "a\r\nb", "a\tb", "a\x00b", "a\x7fb")
	}
	for _, k := range bad {
		_, err := at.KV.Get(t.Context(), k)
		require.ErrorIs(t, err, opaque.ErrBadKey, "%.20q", k)
		_, err = at.KV.Add(t.Context(), k, []byte("a"), forever)
		require.ErrorIs(t, err, opaque.ErrBadKey, "%.20q", k)
		_, err = at.KV.Swap(t.Context(), k, []byte("a"), forever, "1")
		require.ErrorIs(t, err, opaque.ErrBadKey, "%.20q", k)
		require.ErrorIs(t, at.KV.Delete(t.Context(), k, "1"), opaque.ErrBadKey, "%.20q", k)
	}
	requireValue(t, at.KV, longest, "a")
}

func many(t *testing.T, at Target) {
	batch, ok := at.KV.(opaque.BatchGetter)
	if !ok {
		t.Skip("the store reads one key at a time")
	}
	var keys []string
	for i := range 300 {
		k := fmt.Sprintf("k%d", i)
		keys = append(keys, k)
		if i%3 != 0 {
			mustAdd(t, at.KV, k, "value of "+k)
		}
	}
	items, err := batch.GetMany(t.Context(), keys)
	require.NoError(t, err)
	require.Len(t, items, len(keys))
	for i, item := range items {
		if i%3 == 0 {
			require.Empty(t, item.Token, keys[i])
			continue
		}
		require.Equal(t, "value of "+keys[i], string(item.Value))
		require.NotEmpty(t, item.Token)
	}
	mustSwap(t, at.KV, "k1", "by the token of a batch", items[1].Token)
	items, err = batch.GetMany(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, items)
}

// restarted gives a store the chance to issue the same tokens again, for other values.
func restarted(t *testing.T, at Target) {
	if at.Restart == nil {
		t.Skip("the harness has no restart")
	}
	tokens := map[string]opaque.Token{}
	for i := range 5 {
		k := fmt.Sprintf("k%d", i)
		tokens[k] = mustAdd(t, at.KV, k, "before")
	}
	at.Restart(t)
	for i := range 5 {
		k := fmt.Sprintf("k%d", i)
		require.Eventually(t, func() bool {
			item, err := at.KV.Get(t.Context(), k)
			if err == nil {
				// A store that kept its data: the value goes on, under the old token or another.
				_, err = at.KV.Swap(t.Context(), k, []byte("after"), forever, item.Token)
			} else if errors.Is(err, opaque.ErrNotFound) {
				_, err = at.KV.Add(t.Context(), k, []byte("after"), forever)
			}
			return err == nil
		}, patience, 5*time.Millisecond)
	}
	for k, token := range tokens {
		_, err := at.KV.Swap(t.Context(), k, []byte("late"), forever, token)
		require.ErrorIs(t, err, opaque.ErrChanged)
		require.ErrorIs(t, at.KV.Delete(t.Context(), k, token), opaque.ErrChanged)
		requireValue(t, at.KV, k, "after")
	}
}
