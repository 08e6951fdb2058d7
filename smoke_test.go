package lockstep_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/membership"
)

type acct struct {
	ID     string
	Status string
	Email  string
	Tags   []string
}

func TestSmoke(t *testing.T) {
	by := membership.New("status", func(a acct) string { return a.Status })
	tag := membership.Multi("tag", func(a acct) []string { return a.Tags })
	mail := membership.Unique("email", func(a acct) (string, bool) { return a.Email, a.Email != "" }, membership.Fold)
	e := index.Define("acme:billing", "account", index.Options[acct]{ID: func(a acct) string { return a.ID }, Version: 1, Lifetime: index.Forever, Indexes: []index.Index[acct]{by, tag, mail}})
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		rdb := s.Client(t)
		redistest.Checked(rdb, lua.Sources)
		c, err := index.Open(ctx, rdb, e)
		require.NoError(t, err)
		require.NoError(t, c.Put(ctx, acct{"a", "new", "A@x", []string{"p", "q"}}))
		require.NoError(t, c.Put(ctx, acct{"b", "new", "B@x", []string{"p", "p"}}))
		require.ErrorIs(t, c.Put(ctx, acct{"c", "new", "a@X", nil}), index.ErrConflict)
		require.NoError(t, c.Put(ctx, acct{"a", "old", "A@x", []string{"q"}}))
		n, err := c.Count(ctx, by.Is("new"))
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		got, err := c.One(ctx, mail.Is("a@x"))
		require.NoError(t, err)
		require.Equal(t, "old", got.Status)
		_, err = c.Update(ctx, "b", func(a *acct) error { a.Status = "old"; return nil })
		require.NoError(t, err)
		for a, err := range c.Find(ctx, by.In("old", "new")) {
			require.NoError(t, err)
			t.Log(a)
		}
		for k, v := range redistest.Snapshot(t, rdb) {
			t.Logf("%q %v", k, v)
		}
		require.NoError(t, c.Delete(ctx, "a"))
		require.NoError(t, c.Put(ctx, acct{"c", "new", "a@X", nil}))
		out, err := c.PutMany(ctx, []acct{{"c", "new", "c@x", nil}, {"d", "x", "a@x", nil}, {"d", "y", "a@x", nil}})
		require.NoError(t, err)
		t.Log(out)
		_, err = c.DeleteMany(ctx, []string{"b", "c", "d", "e"})
		require.NoError(t, err)
		for k, v := range redistest.Snapshot(t, rdb) {
			t.Logf("%q %v", k, v)
		}
	})
}
