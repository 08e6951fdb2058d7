package index_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
)

func TestABatchKeepsTheOrderOfWritesToOneId(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		out, err := c.PutMany(ctx, []item{
			{ID: "a", Color: "red"},
			{ID: "b", Color: "red"},
			{ID: "a", Color: "green"},
			{ID: "a", Color: "blue"},
		})
		require.NoError(t, err)
		for i, id := range []string{"a", "b", "a", "a"} {
			require.Equal(t, index.Outcome{ID: id, Applied: true}, out[i])
		}
		got, err := c.Get(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, "blue", got.Color)
		verify(t, rdb)
	})
}

func TestTwoClaimsOfOneValueInABatchGiveOneHolderAndOneConflict(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		out, err := c.PutMany(ctx, []item{
			{ID: "a", Color: "red", Code: "c1"},
			{ID: "b", Color: "red", Code: "c1"},
			{ID: "c", Color: "red"},
		})
		require.ErrorIs(t, err, index.ErrConflict)
		require.NoError(t, out[0].Err)
		require.True(t, out[0].Applied)
		var conflict *index.ConflictError
		require.ErrorAs(t, out[1].Err, &conflict)
		require.Equal(t, "a", conflict.Holder)
		require.False(t, out[1].Applied)
		require.True(t, out[2].Applied, "the others are written")
		_, err = c.Get(ctx, "b")
		require.ErrorIs(t, err, index.ErrNotFound)
		verify(t, rdb)
	})
}

func TestAValueGivenUpInABatchCanBeTakenInTheSameBatch(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red", Code: "c1"}))
		require.NoError(t, c.Put(ctx, item{ID: "b", Color: "red", Code: "c2"}))
		out, err := c.PutMany(ctx, []item{
			{ID: "a", Color: "red", Code: "c3"},
			{ID: "b", Color: "red", Code: "c1"},
			{ID: "c", Color: "red", Code: "c2"},
		})
		require.NoError(t, err)
		for _, o := range out {
			require.True(t, o.Applied)
		}
		for code, id := range map[string]string{"c1": "b", "c2": "c", "c3": "a"} {
			got, err := c.One(ctx, byCode.Is(code))
			require.NoError(t, err)
			require.Equal(t, id, got.ID)
		}
		verify(t, rdb)
	})
}

func TestTenThousandRecordsAndABadOneInBetween(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		n := s.Size(10_000, 2000)
		e := define(index.Forever, byColor, byCode, byTag)
		rdb := s.Client(t)
		c, err := index.Open(ctx, rdb, e)
		require.NoError(t, err)
		recs := make([]item, n)
		for i := range recs {
			recs[i] = item{ID: fmt.Sprintf("i%d", i), Color: fmt.Sprintf("c%d", i%7), Code: fmt.Sprintf("k%d", i)}
		}
		recs[n/2].ID = ""
		out, err := c.PutMany(ctx, recs)
		require.ErrorIs(t, err, index.ErrInvalid)
		require.Len(t, out, n)
		for i, o := range out {
			require.Equal(t, i != n/2, o.Applied, "record %d", i)
		}
		total := int64(0)
		for i := range 7 {
			k, err := c.Count(ctx, byColor.Is(fmt.Sprintf("c%d", i)))
			require.NoError(t, err)
			total += k
		}
		require.EqualValues(t, n-1, total)
		found := map[string]bool{}
		for id, err := range c.IDs(ctx, byColor.Is("c3")) {
			require.NoError(t, err)
			require.False(t, found[id], "an id twice")
			found[id] = true
		}
		require.Len(t, found, (n+3)/7, "those that are 3 more than a multiple of 7")

		// All of one value change at once.
		for i := range recs {
			recs[i].Color = "same"
		}
		recs[n/2].ID = fmt.Sprint("i", n/2)
		_, err = c.PutMany(ctx, recs)
		require.NoError(t, err)
		k, err := c.Count(ctx, byColor.Is("same"))
		require.NoError(t, err)
		require.EqualValues(t, n, k)
		verify(t, rdb)

		ids := make([]string, 0, n)
		for id, err := range c.IDs(ctx, byColor.Is("same")) {
			require.NoError(t, err)
			ids = append(ids, id)
		}
		require.Len(t, ids, n)
		out, err = c.DeleteMany(ctx, append(ids, "never"))
		require.NoError(t, err)
		require.False(t, out[n].Applied)
		require.Len(t, s.Keys(t), 2, "meta and catalog")
	})
}

func TestARecordWithTwentyThousandTags(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		n := s.Size(20_000, 2000)
		many := membership.Multi("tag", func(i item) []string { return i.Tags }, membership.MaxValues(n))
		ctx := context.Background()
		rec := item{ID: "a", Color: "red", Tags: make([]string, n)}
		for i := range rec.Tags {
			rec.Tags[i] = fmt.Sprintf("t%d", i)
		}
		c, rdb := open(t, s, items)
		unchanged(t, rdb, func() {
			err := c.Put(ctx, rec)
			var large *index.TooLargeError
			require.ErrorAs(t, err, &large)
			require.Equal(t, index.TooLargeError{What: "values", Size: n, Limit: 1000}, *large)
			about(t, err, "a", "tag")
		})
		s.Flush(t)
		raised, rdb := open(t, s, define(index.Forever, byColor, byCode, many))
		require.NoError(t, raised.Put(ctx, rec))
		held, err := raised.Count(ctx, many.Is(fmt.Sprint("t", n-1)))
		require.NoError(t, err)
		require.EqualValues(t, 1, held)
		verify(t, rdb)
		require.NoError(t, raised.Delete(ctx, "a"))
		require.Len(t, s.Keys(t), 2, "meta and catalog")
	})
}

func TestAMissingIdInABatchOfReadsKeepsThePositions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, _ := open(t, s, items)
		ids := make([]string, 10)
		for i := range ids {
			ids[i] = fmt.Sprintf("i%d", i)
			if i%4 != 1 {
				require.NoError(t, c.Put(ctx, item{ID: ids[i], Color: "red"}))
			}
		}
		got, err := c.GetMany(ctx, ids)
		require.NoError(t, err)
		for i, r := range got {
			if i%4 == 1 {
				require.ErrorIs(t, r.Err, index.ErrNotFound)
				about(t, r.Err, ids[i], "")
				continue
			}
			require.NoError(t, r.Err)
			require.Equal(t, ids[i], r.Record.ID)
		}
	})
}
