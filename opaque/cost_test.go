package opaque_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memkv"
)

func TestEveryCallCostsTheRoundTripsThatItsCommentPromises(t *testing.T) {
	ctx := t.Context()
	for _, kept := range []struct {
		name string
		noID bool
		ids  int64
	}{{"without the index of all ids", true, 0}, {"with the index of all ids", false, 2}} {
		t.Run(kept.name, func(t *testing.T) {
			kv := &counter{KV: memkv.New(memkv.Options{})}
			c := open(t, kv, opaque.Options{NoIDs: kept.noID})
			cost := func(what string, want int64, fn func() error) {
				t.Helper()
				before := kv.trips.Load()
				require.NoError(t, fn(), what)
				require.Equal(t, want, kv.trips.Load()-before, what)
			}
			update := func(id string, fn func(*Account)) func() error {
				return func() error {
					_, err := c.Update(ctx, id, func(a *Account) error {
						fn(a)
						return nil
					})
					return err
				}
			}
			cost("create, no index value", 2+kept.ids, func() error { return c.Create(ctx, Account{ID: "a0"}) })
			cost("create, one list", 4+kept.ids, func() error { return c.Create(ctx, Account{ID: "a1", Status: "new"}) })
			cost("create, one list that is there", 4+kept.ids, func() error { return c.Create(ctx, Account{ID: "a2", Status: "new"}) })
			cost("create, one claim", 3+kept.ids, func() error { return c.Create(ctx, Account{ID: "a3", Email: "a3@x"}) })
			cost("put, new, one list", 5+kept.ids, func() error { return c.Put(ctx, Account{ID: "a4", Status: "new"}) })
			cost("update, one list changed", 6, update("a1", func(a *Account) { a.Status = "old" }))
			cost("update, one claim changed", 5, update("a3", func(a *Account) { a.Email = "b3@x" }))
			cost("update, no index value changed", 2, update("a1", func(a *Account) { a.N++ }))
			cost("put of the same index values", 2, func() error { return c.Put(ctx, Account{ID: "a1", Status: "old", N: 7}) })
			cost("get", 1, func() error { _, err := c.Get(ctx, "a1"); return err })
			cost("find", 2, func() error {
				require.Equal(t, []string{"a2", "a4"}, ids(t, c, ByStatus.Is("new")))
				return nil
			})
			cost("one", 2, func() error { _, err := c.One(ctx, ByEmail.Is("B3@x")); return err })
			cost("delete, one list", 4+kept.ids, func() error { return c.Delete(ctx, "a2") })
			cost("delete, one claim", 4+kept.ids, func() error { return c.Delete(ctx, "a3") })
			cost("delete of nothing", 1, func() error { return c.Delete(ctx, "a3") })
			requireClean(t, c)
		})
	}
}
