package memcachekv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memcachekv"
	"github.com/lockstep-go/lockstep/opaque/opaquetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t testing.TB, s *redistest.Server) *memcachekv.Store {
	kv := memcachekv.New(s.Addr)
	t.Cleanup(func() { require.NoError(t, kv.Close()) })
	return kv
}

func TestMemcachedKeepsTheContract(t *testing.T) {
	opaquetest.Conformance(t, opaquetest.Harness{Open: func(t testing.TB) opaquetest.Target {
		s := redistest.Memcached(t)
		return opaquetest.Target{
			KV:      client(t, s),
			Second:  func(t testing.TB) opaque.KV { return client(t, s) },
			Restart: func(t testing.TB) { s.Restart(t) },
		}
	}})
}

func TestAServerWithFullMemoryKeepsTheOldValueAndDeletesStillWork(t *testing.T) {
	s := redistest.Memcached(t, "-M", "-m", "8")
	kv := client(t, s)
	ctx := t.Context()
	token, err := kv.Add(ctx, "k", make([]byte, 300), forever)
	require.NoError(t, err)
	fill(t, kv)
	_, err = kv.Swap(ctx, "k", make([]byte, 250), forever, token)
	require.ErrorIs(t, err, opaque.ErrOutOfMemory)
	item, err := kv.Get(ctx, "k")
	require.NoError(t, err)
	require.Len(t, item.Value, 300)
	require.NoError(t, kv.Delete(ctx, "k", token))
}

func TestATokenOfAnotherConnectionIsRefusedWithoutAskingTheServer(t *testing.T) {
	s := redistest.Memcached(t)
	kv, other := client(t, s), client(t, s)
	ctx := t.Context()
	for range memcachekv.DefaultConns {
		_, err := other.Get(ctx, "absent")
		require.ErrorIs(t, err, opaque.ErrNotFound)
	}
	_, err := kv.Add(ctx, "first", []byte("a"), forever)
	require.NoError(t, err)
	token, err := kv.Add(ctx, "k", []byte("a"), forever)
	require.NoError(t, err)
	s.Restart(t)
	// The new server issues the same numbers again, for values of its own.
	require.Eventually(t, func() bool {
		_, err := other.Add(ctx, "k", []byte("x"), forever)
		return err == nil
	}, patience, tick)
	for range 20 {
		_, err = kv.Swap(ctx, "k", []byte("late"), forever, token)
		require.Error(t, err)
		require.NotErrorIs(t, err, opaque.ErrNotFound)
	}
	require.ErrorIs(t, err, opaque.ErrChanged)
	item, err := other.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "x", string(item.Value))
}
