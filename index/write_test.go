package index_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
)

func TestBadInputIsATypedErrorAndNothingIsWritten(t *testing.T) {
	byWeight := membership.New("weight", func(i item) float64 { return i.Weight })
	boom := errors.New("boom")
	small := index.Define("acme", "item", index.Options[item]{
		ID: func(i item) string { return i.ID }, Version: 1, Lifetime: index.Forever, MaxRecordBytes: 200,
		Codec: index.Codec[item]{
			Encode: func(i item) ([]byte, error) {
				if i.Color == "boom" {
					return nil, boom
				}
				return index.JSON[item]().Encode(i)
			},
			Decode: index.JSON[item]().Decode,
		},
		Indexes: []index.Index[item]{byColor, byWeight},
	})
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, small)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}))
		unchanged(t, rdb, func() {
			err := c.Put(ctx, item{ID: "", Color: "red"})
			require.ErrorIs(t, err, index.ErrInvalid)
			about(t, err, "", "")
			err = c.Put(ctx, item{ID: "a", Color: "blue", Weight: math.NaN()})
			require.ErrorIs(t, err, index.ErrInvalid)
			about(t, err, "a", "weight")
			err = c.Put(ctx, item{ID: "a", Color: strings.Repeat("x", 300)})
			require.ErrorIs(t, err, index.ErrTooLarge)
			about(t, err, "a", "")
			require.ErrorIs(t, c.Put(ctx, item{ID: "a", Color: "boom"}), boom)
			_, err = c.Update(ctx, "a", func(i *item) error { i.Weight = math.NaN(); return nil })
			require.ErrorIs(t, err, index.ErrInvalid)
			require.ErrorIs(t, c.Delete(ctx, ""), index.ErrInvalid)
			require.ErrorIs(t, c.Put(ctx, item{ID: "a"}, index.IfToken("")), index.ErrInvalid)
			require.ErrorIs(t, c.Put(ctx, item{ID: "a"}, index.IfToken("nonsense")), index.ErrInvalid)
			for _, err := range c.Find(ctx, byWeight.Is(math.NaN())) {
				require.ErrorIs(t, err, index.ErrInvalid)
				about(t, err, "", "weight")
			}
			for _, err := range c.Find(ctx) {
				require.ErrorIs(t, err, index.ErrUnsupported)
			}
			for _, err := range c.Find(ctx, byColor.Is("red"), byColor.Is("blue")) {
				require.ErrorIs(t, err, index.ErrUnsupported)
			}
			for _, err := range c.Find(ctx, byTag.Is("x")) {
				require.ErrorIs(t, err, index.ErrInvalid, "an index that the entity type does not have")
			}
		})
	})
}

func TestAValueIsFreeAfterEveryWayOfGivingItUp(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		holder := item{ID: "holder", Color: "red", Code: "c"}
		claim := func(why string) {
			t.Helper()
			require.NoError(t, c.Create(ctx, item{ID: "next", Color: "red", Code: "c"}), why)
			verify(t, rdb)
			require.NoError(t, c.Delete(ctx, "next"))
		}
		require.NoError(t, c.Put(ctx, holder))
		require.ErrorIs(t, c.Create(ctx, item{ID: "next", Color: "red", Code: "c"}), index.ErrConflict)
		require.NoError(t, c.Put(ctx, item{ID: "holder", Color: "red", Code: "other"}))
		claim("the holder took another value")
		require.NoError(t, c.Put(ctx, holder))
		_, err := c.Update(ctx, "holder", func(i *item) error { i.Code = ""; return nil })
		require.NoError(t, err)
		claim("the holder has none any more")
		require.NoError(t, c.Put(ctx, holder))
		require.NoError(t, c.Delete(ctx, "holder"))
		claim("the holder was deleted")
		require.NoError(t, c.Put(ctx, holder))
		require.NoError(t, rdb.Del(ctx, "acme:item:{item}:holder:v1").Err())
		claim("the holder vanished")
		require.NoError(t, rdb.SAdd(ctx, "acme:item:{item}:~code.1:c:v1", "ghost").Err())
		claim("a ghost without record and row held it")
		// The write that fails on one value must not keep another one that it claimed.
		require.NoError(t, c.Put(ctx, holder))
		require.ErrorIs(t, c.Put(ctx, item{ID: "x", Color: "blue", Code: "c"}), index.ErrConflict)
		n, err := c.Count(ctx, byColor.Is("blue"))
		require.NoError(t, err)
		require.Zero(t, n)
		verify(t, rdb)
	})
}

// TestASecondUniqueValueThatConflictsFreesTheFirst has two unique indexes on one record.
func TestASecondUniqueValueThatConflictsFreesTheFirst(t *testing.T) {
	first := membership.Unique("first", func(i item) (string, bool) { return i.Color, i.Color != "" })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, define(index.Forever, first, byCode))
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "c1", Code: "k1"}))
		unchanged(t, rdb, func() {
			require.ErrorIs(t, c.Put(ctx, item{ID: "b", Color: "c2", Code: "k1"}), index.ErrConflict)
		})
		require.NoError(t, c.Put(ctx, item{ID: "d", Color: "c2", Code: "k2"}), "c2 was not kept by the refused write")
	})
}

func TestAfterADeleteNoKeyMentionsTheId(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, c.Put(ctx, item{ID: "needle", Color: "red", Code: "c", Tags: []string{"a", "b"}}))
		require.NoError(t, c.Put(ctx, item{ID: "other", Color: "red"}))
		// Loaded, changed by somebody else, deleted by the first.
		old, err := c.Get(ctx, "needle")
		require.NoError(t, err)
		require.NoError(t, c.Put(ctx, item{ID: "needle", Color: "blue", Code: "d", Tags: []string{"z"}}))
		require.NoError(t, c.Delete(ctx, old.ID))
		for k, e := range redistest.Snapshot(t, rdb) {
			require.NotContains(t, k+e.String(), "needle")
		}
		verify(t, rdb)
		require.NoError(t, c.Delete(ctx, "other"))
		require.Len(t, s.Keys(t), 2, "meta and catalog")
	})
}

func TestAnUnrelatedUpdateKeepsTheLifetimeAndAPutStartsItAnew(t *testing.T) {
	e := define(time.Hour, byColor, byCode, byTag)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, e)
		const k = "acme:item:{item}:a:v1"
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}))
		require.InDelta(t, time.Hour.Milliseconds(), rdb.PTTL(ctx, k).Val().Milliseconds(), 5000)
		require.NoError(t, rdb.PExpire(ctx, k, time.Minute).Err())
		_, err := c.Update(ctx, "a", func(i *item) error { i.Weight = 2; return nil })
		require.NoError(t, err)
		require.InDelta(t, time.Minute.Milliseconds(), rdb.PTTL(ctx, k).Val().Milliseconds(), 5000)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}))
		require.InDelta(t, time.Hour.Milliseconds(), rdb.PTTL(ctx, k).Val().Milliseconds(), 5000)
		snap, err := c.Read(ctx, "a")
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(time.Hour), snap.Expires, 5*time.Second)
	})
}

func TestAnExpiredRecordIsHiddenFromEveryQueryAndFreesItsValue(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		life := 300 * time.Millisecond
		if s.Mini != nil {
			s.Mini.ClockTTL(true)
			s.Mini.SetTime(time.Now())
		}
		c, rdb := open(t, s, define(life, byColor, byCode))
		forever, err := index.Open(ctx, rdb, define(index.Forever, byColor, byCode))
		require.NoError(t, err)
		require.NoError(t, forever.Put(ctx, item{ID: "stays", Color: "red"}))
		require.NoError(t, c.Put(ctx, item{ID: "goes", Color: "red", Code: "c"}))
		require.ErrorIs(t, c.Create(ctx, item{ID: "next", Color: "red", Code: "c"}), index.ErrConflict, "not before it expires")
		n, err := c.Count(ctx, byColor.Is("red"))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		if s.Mini != nil {
			s.Mini.SetTime(time.Now().Add(time.Second))
		} else {
			require.Eventually(t, func() bool { return rdb.Exists(ctx, "acme:item:{item}:goes:v1").Val() == 0 }, 5*time.Second, time.Millisecond)
		}
		_, err = c.Get(ctx, "goes")
		require.ErrorIs(t, err, index.ErrNotFound)
		_, err = c.One(ctx, byCode.Is("c"))
		require.ErrorIs(t, err, index.ErrNotFound)
		n, err = c.Count(ctx, byColor.Is("red"))
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		for id, err := range c.IDs(ctx, byColor.Is("red")) {
			require.NoError(t, err)
			require.Equal(t, "stays", id)
		}
		require.NoError(t, forever.Create(ctx, item{ID: "next", Color: "red", Code: "c"}), "its unique value is free")
		verify(t, rdb)
	})
}

func TestRoundTripsAreAsDocumented(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		rdb := s.Client(t)
		c, err := index.Open(ctx, rdb, items)
		require.NoError(t, err)
		require.NoError(t, c.Put(ctx, item{ID: "warm", Color: "w"}))
		_, err = c.Count(ctx, byColor.Is("w"))
		require.NoError(t, err)
		_, err = c.Read(ctx, "warm")
		require.NoError(t, err)
		for _, err := range c.Find(ctx, byColor.Is("w")) {
			require.NoError(t, err)
		}
		forgetful, err := index.Open(ctx, rdb, items, index.OpenOptions{RowCacheBytes: -1, RecordCacheBytes: -1})
		require.NoError(t, err)
		counter := redistest.Count(rdb)
		trips := func(want int, what string, err error) {
			t.Helper()
			require.NoError(t, err, what)
			require.Equal(t, want, counter.Trips(), what)
			counter.Reset()
		}
		trips(1, "put of a new record", c.Put(ctx, item{ID: "a", Color: "red", Code: "c"}))
		trips(1, "put that keeps its values", c.Put(ctx, item{ID: "a", Color: "red", Code: "c", Weight: 1}))
		trips(1, "put that changes a value", c.Put(ctx, item{ID: "a", Color: "blue", Code: "c"}))
		trips(2, "put that changes a value, without a row cache", forgetful.Put(ctx, item{ID: "a", Color: "red", Code: "c"}))
		trips(2, "put that changes what another collection has written", c.Put(ctx, item{ID: "a", Color: "blue", Code: "c"}))
		_, err = c.Update(ctx, "a", func(i *item) error { i.Color = "green"; return nil })
		trips(1, "update", err)
		_, err = forgetful.Update(ctx, "a", func(i *item) error { i.Color = "red"; return nil })
		trips(2, "update, without a record cache", err)
		_, err = c.Update(ctx, "a", func(i *item) error { i.Color = "green"; return nil })
		trips(2, "update of what another collection has written", err)
		snap, err := c.Read(ctx, "a")
		trips(1, "read", err)
		trips(1, "put with a token", c.Put(ctx, item{ID: "a", Color: "white"}, index.IfToken(snap.Token)))
		_, err = c.Get(ctx, "a")
		trips(1, "get", err)
		_, err = c.Count(ctx, byColor.Is("white"))
		trips(1, "count", err)
		_, err = c.Exists(ctx, byColor.Is("white"))
		trips(1, "exists", err)
		n := 0
		for _, err := range c.Find(ctx, byColor.Is("white")) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 1, n)
		trips(2, "find", nil)
		for _, err := range c.Find(ctx, byColor.Is("nobody")) {
			require.NoError(t, err)
			require.Fail(t, "found")
		}
		trips(1, "find of a value that nobody has", nil)
		trips(1, "delete", c.Delete(ctx, "a"))
		trips(1, "delete of nothing", c.Delete(ctx, "a"))
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red", Code: "c"}))
		counter.Reset()
		trips(2, "delete of what another collection has written", forgetful.Delete(ctx, "a"))
	})
}
