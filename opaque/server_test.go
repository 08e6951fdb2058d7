package opaque_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memcachekv"
	"github.com/lockstep-go/lockstep/opaque/rediskv"
)

const patience = 30 * time.Second

// eachServer runs a test on Redis and on memcached. connect gives a client of its own each time.
func eachServer(t *testing.T, fn func(t *testing.T, connect func() opaque.KV)) {
	t.Run("redis", func(t *testing.T) {
		s := redistest.Redis(t)
		fn(t, func() opaque.KV { return rediskv.New(s.Client(t)) })
	})
	t.Run("memcached", func(t *testing.T) {
		s := redistest.Memcached(t, "-M")
		fn(t, func() opaque.KV { return memcached(t, s) })
	})
}

func memcached(t testing.TB, s *redistest.Server) *memcachekv.Store {
	kv := memcachekv.New(s.Addr)
	t.Cleanup(func() { require.NoError(t, kv.Close()) })
	return kv
}

// defineAs is the entity of these tests under another owner, in a keyspace of its own.
func defineAs(owner string, o ...func(*index.Options[Account])) *index.Entity[Account] {
	opts := index.Options[Account]{
		ID: func(a Account) string { return a.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[Account]{ByStatus, ByEmail, ByTag},
	}
	for _, set := range o {
		set(&opts)
	}
	return index.Define(owner, "account", opts)
}

// crasher is a client that crashes after a number of writes and reads: nothing of it reaches the server any more.
type crasher struct {
	opaque.KV
	left  int
	armed bool
}

func (c *crasher) step() bool {
	if !c.armed {
		return true
	}
	c.left--
	return c.left >= 0
}

func (c *crasher) Get(ctx context.Context, k string) (opaque.Item, error) {
	if !c.step() {
		return opaque.Item{}, opaque.ErrUnavailable
	}
	return c.KV.Get(ctx, k)
}

func (c *crasher) Add(ctx context.Context, k string, v []byte, expires time.Time) (opaque.Token, error) {
	if !c.step() {
		return "", opaque.ErrUnavailable
	}
	return c.KV.Add(ctx, k, v, expires)
}

func (c *crasher) Swap(ctx context.Context, k string, v []byte, expires time.Time, t opaque.Token) (opaque.Token, error) {
	if !c.step() {
		return "", opaque.ErrUnavailable
	}
	return c.KV.Swap(ctx, k, v, expires, t)
}

func (c *crasher) Delete(ctx context.Context, k string, t opaque.Token) error {
	if !c.step() {
		return opaque.ErrUnavailable
	}
	return c.KV.Delete(ctx, k, t)
}
