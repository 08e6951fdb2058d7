package opaque_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/opaque"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Account is the entity of these tests.
type Account struct {
	ID     string   `json:"id"`
	Status string   `json:"status,omitempty"`
	Email  string   `json:"email,omitempty"`
	Phone  string   `json:"phone,omitempty"`
	Tags   []string `json:"tags,omitempty"`
	N      int      `json:"n,omitempty"`
}

var (
	ByStatus = membership.Sparse("status", func(a Account) (string, bool) { return a.Status, a.Status != "" })
	ByEmail  = membership.Unique("email", func(a Account) (string, bool) { return a.Email, a.Email != "" }, membership.Fold)
	ByPhone  = membership.Unique("phone", func(a Account) (string, bool) { return a.Phone, a.Phone != "" })
	ByTag    = membership.Multi("tag", func(a Account) []string { return a.Tags })
	Accounts = define(index.Forever)
)

func define(lifetime time.Duration) *index.Entity[Account] {
	return index.Define("acme", "account", index.Options[Account]{
		ID: func(a Account) string { return a.ID }, Version: 1, Lifetime: lifetime,
		Indexes: []index.Index[Account]{ByStatus, ByEmail, ByPhone, ByTag},
	})
}

func open(t testing.TB, kv opaque.KV, o ...opaque.Options) *opaque.Collection[Account] {
	t.Helper()
	c, err := opaque.Open(t.Context(), kv, Accounts, o...)
	require.NoError(t, err)
	return c
}

// ids are the ids of the records that a condition finds, sorted.
func ids(t testing.TB, c *opaque.Collection[Account], cond index.Condition[Account]) []string {
	t.Helper()
	out := []string{}
	for a, err := range c.Find(context.WithoutCancel(t.Context()), cond) {
		require.NoError(t, err)
		out = append(out, a.ID)
	}
	slices.Sort(out)
	return out
}

// requireClean holds everything that a store lists against the records.
func requireClean(t testing.TB, c *opaque.Collection[Account]) {
	t.Helper()
	r, err := c.Verify(context.WithoutCancel(t.Context()), opaque.RunOptions{})
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.True(t, r.Clean(), "%+v", r)
}

// counter counts the round trips of a store: a read of many keys is one.
type counter struct {
	opaque.KV
	trips atomic.Int64
}

func (c *counter) Get(ctx context.Context, k string) (opaque.Item, error) {
	c.trips.Add(1)
	return c.KV.Get(ctx, k)
}

func (c *counter) GetMany(ctx context.Context, keys []string) ([]opaque.Item, error) {
	if batch, ok := c.KV.(opaque.BatchGetter); ok {
		c.trips.Add(1)
		return batch.GetMany(ctx, keys)
	}
	c.trips.Add(1)
	out := make([]opaque.Item, len(keys))
	for i, k := range keys {
		if item, err := c.KV.Get(ctx, k); err == nil {
			out[i] = item
		}
	}
	return out, nil
}

func (c *counter) Add(ctx context.Context, k string, v []byte, expires time.Time) (opaque.Token, error) {
	c.trips.Add(1)
	return c.KV.Add(ctx, k, v, expires)
}

func (c *counter) Swap(ctx context.Context, k string, v []byte, expires time.Time, t opaque.Token) (opaque.Token, error) {
	c.trips.Add(1)
	return c.KV.Swap(ctx, k, v, expires, t)
}

func (c *counter) Delete(ctx context.Context, k string, t opaque.Token) error {
	c.trips.Add(1)
	return c.KV.Delete(ctx, k, t)
}
