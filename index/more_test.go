package index_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestAChangeOfOneFieldKeepsTheRecordFoundByItsOthersAndSearchesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red", Code: "c", Tags: []string{"x", "y"}}))
		counter := redistest.Count(rdb)
		if s.Name != redistest.NameMini {
			require.NoError(t, rdb.ConfigResetStat(ctx).Err())
		}
		counter.Reset()
		_, err := c.Update(ctx, "a", func(i *item) error { i.Color = "blue"; return nil })
		require.NoError(t, err)
		require.Equal(t, 1, counter.Trips())
		if s.Name != redistest.NameMini {
			stats := rdb.Info(ctx, "commandstats").Val()
			require.NotContains(t, stats, "cmdstat_keys")
			require.NotContains(t, stats, "cmdstat_scan")
			require.Contains(t, stats, "cmdstat_eval")
		}
		for _, cond := range []index.Clause[item]{byColor.Is("blue"), byCode.Is("c"), byTag.Is("x"), byTag.Is("y")} {
			found := 0
			for i, err := range c.Find(ctx, cond) {
				require.NoError(t, err)
				require.Equal(t, "a", i.ID)
				found++
			}
			require.Equal(t, 1, found)
		}
		verify(t, rdb)
	})
}

func TestAnUpdateAfterADeleteBringsNothingBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red", Code: "c"}))
		snap, err := c.Read(ctx, "a")
		require.NoError(t, err)
		require.NoError(t, c.Delete(ctx, "a"))
		_, err = c.Update(ctx, "a", func(i *item) error { i.Weight = 1; return nil })
		require.ErrorIs(t, err, index.ErrNotFound)
		require.ErrorIs(t, c.Put(ctx, snap.Record, index.IfToken(snap.Token)), index.ErrNotFound)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "blue"}))
		require.ErrorIs(t, c.Put(ctx, snap.Record, index.IfToken(snap.Token)), index.ErrChanged, "a token of the old life")
		verify(t, rdb)
	})
}

func TestARecordWithNothingInItIsKeptAndFoundByItsEmptyValue(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		e := index.Define("acme", "item", index.Options[item]{
			ID: func(i item) string { return i.ID }, Version: 1, Lifetime: index.Forever, Indexes: []index.Index[item]{byColor, byCode, byTag},
			Codec: index.Codec[item]{ // a codec whose encoding of nothing is no bytes, as protobuf has it
				Encode: func(i item) ([]byte, error) { return []byte(i.Color), nil },
				Decode: func(id string, b []byte) (item, error) { return item{ID: id, Color: string(b)}, nil },
			},
		})
		c, _ := open(t, s, e)
		require.NoError(t, c.Create(ctx, item{ID: "empty"}))
		require.ErrorIs(t, c.Create(ctx, item{ID: "empty"}), index.ErrExists)
		got, err := c.Get(ctx, "empty")
		require.NoError(t, err)
		require.Equal(t, item{ID: "empty"}, got)
		n, err := c.Count(ctx, byColor.Is(""))
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		_, err = c.Update(ctx, "empty", func(i *item) error { i.Color = "red"; return nil })
		require.NoError(t, err)
		require.NoError(t, c.Delete(ctx, "empty"))
		require.Len(t, s.Keys(t), 2, "meta and catalog")
	})
}

// TestOneValueHeldByFiftyThousandIdsChangesInOneCall needs a server that is faster than the embedded one.
func TestOneValueHeldByFiftyThousandIdsChangesInOneCall(t *testing.T) {
	n := redistest.Full(50_000, 5000)
	s := redistest.Redis(t)
	ctx := context.Background()
	rdb := s.Client(t)
	c, err := index.Open(ctx, rdb, define(index.Forever, byColor))
	require.NoError(t, err)
	recs := make([]item, n)
	for i := range recs {
		recs[i] = item{ID: fmt.Sprintf("i%d", i), Color: "red"}
	}
	_, err = c.PutMany(ctx, recs)
	require.NoError(t, err)
	for i := range recs {
		recs[i].Color = "blue"
	}
	_, err = c.PutMany(ctx, recs)
	require.NoError(t, err)
	for color, want := range map[string]int64{"red": 0, "blue": int64(n)} {
		got, err := c.Count(ctx, byColor.Is(color))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	ids := make([]string, 2*n)
	for i := range ids {
		ids[i] = fmt.Sprintf("i%d", i)
	}
	out, err := c.DeleteMany(ctx, ids)
	require.NoError(t, err)
	for i, o := range out {
		require.Equal(t, i < n, o.Applied)
	}
	require.False(t, strings.Contains(strings.Join(s.Keys(t), " "), "i1:"))
	require.Len(t, s.Keys(t), 2, "meta and catalog")
}
