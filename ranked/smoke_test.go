package ranked_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/ranked"
)

type ev struct {
	ID, Net string
	At      time.Time
	N       int64
	Name    string
}

func TestSmoke(t *testing.T) {
	recent := ranked.New("recent", func(e ev) time.Time { return e.At }, ranked.Keep(10))
	exact := ranked.Exact("exact", func(e ev) int64 { return e.N })
	name := ranked.Exact("name", func(e ev) string { return e.Name }, ranked.LowestFirst(), ranked.Keep(5))
	byNet := ranked.Within(func(e ev) string { return e.Net }, ranked.New("net", func(e ev) int64 { return e.N }, ranked.Keep(3), ranked.Slack(0)))
	e := index.Define("acme", "ev", index.Options[ev]{
		ID: func(e ev) string { return e.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[ev]{recent, exact, name, byNet},
	})
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		rdb := s.Client(t)
		redistest.Checked(rdb, lua.Sources)
		c, err := index.Open(ctx, rdb, e)
		require.NoError(t, err)
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range 30 {
			require.NoError(t, c.Put(ctx, ev{fmt.Sprintf("e%02d", i), []string{"a", "b"}[i%2], base.Add(time.Duration(i) * time.Second), int64(i - 10), fmt.Sprintf("n%02d", 50-i)}))
		}
		p, err := c.Top(ctx, recent.Newest(3))
		require.NoError(t, err)
		require.True(t, p.Complete)
		require.Equal(t, "e29", p.Items[0].ID)
		require.Equal(t, base.Add(29*time.Second), p.Items[0].Score.Time())
		p, err = c.Top(ctx, recent.Newest(3).After(p.Next))
		require.NoError(t, err)
		require.Equal(t, "e26", p.Items[0].ID)
		p, err = c.Top(ctx, exact.Bottom(2))
		require.NoError(t, err)
		require.Equal(t, "e00", p.Items[0].ID)
		require.Equal(t, "-10", p.Items[0].Score.String())
		require.True(t, p.Complete)
		p, err = c.Top(ctx, name.Bottom(3))
		require.NoError(t, err)
		require.Equal(t, "e29", p.Items[0].ID)
		require.Equal(t, "n21", p.Items[0].Score.String())
		require.True(t, p.Complete)
		p, err = c.Top(ctx, byNet.Of("a").Top(3))
		require.NoError(t, err)
		require.Equal(t, "e28", p.Items[0].ID)
		require.True(t, p.Complete)
		require.NoError(t, c.Delete(ctx, "e28"))
		p, err = c.Top(ctx, byNet.Of("a").Top(3))
		require.NoError(t, err)
		require.Len(t, p.Items, 2)
		require.False(t, p.Complete)
		p, err = c.Top(ctx, byNet.Of("a").Top(2))
		require.NoError(t, err)
		require.True(t, p.Complete)
		n, err := c.Count(ctx, exact.Between(0, 4))
		require.NoError(t, err)
		require.EqualValues(t, 5, n)
		var ids []string
		for r, err := range c.Find(ctx, exact.Below(-7)) {
			require.NoError(t, err)
			ids = append(ids, r.ID)
		}
		require.Equal(t, []string{"e02", "e01", "e00"}, ids)
		_, err = c.PutMany(ctx, []ev{{"e01", "b", base, 1000, "zz"}, {"x", "a", base, 2000, "aa"}})
		require.NoError(t, err)
		p, err = c.Top(ctx, exact.Top(2))
		require.NoError(t, err)
		require.Equal(t, "x", p.Items[0].ID)
		require.Equal(t, "e01", p.Items[1].ID)
	})
}
