package index_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
)

var (
	heaviest = ranked.New("weight", func(i item) float64 { return i.Weight })
	exactly  = ranked.Exact("exact", func(i item) float64 { return i.Weight })
)

// TestARecordIsHiddenAMillisecondAfterItsLifetimeHasEnded asks for nothing that would make the server look at the record, and the
// server looks by itself once a second.
func TestARecordIsHiddenAMillisecondAfterItsLifetimeHasEnded(t *testing.T) {
	for name, s := range map[string]*redistest.Server{"miniredis": redistest.Mini(t), "redis": redistest.Redis(t, "--hz", "1")} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			newClock(s)
			c, rdb := open(t, s, define(index.Forever, byColor, byCode, byTag, heaviest, exactly))
			now, err := rdb.Time(ctx).Result()
			require.NoError(t, err)
			due := now.Add(30 * time.Millisecond).Truncate(time.Millisecond)
			require.NoError(t, c.Put(ctx, item{ID: "stays", Color: "red", Tags: []string{"t"}}))
			require.NoError(t, c.Put(ctx, item{ID: "goes", Color: "red", Code: "c", Tags: []string{"t"}, Weight: 1}, index.Until(due)))
			if s.Mini != nil {
				s.Mini.SetTime(due.Add(time.Millisecond))
			}
			require.Eventually(t, func() bool { return !rdb.Time(ctx).Val().Before(due.Add(time.Millisecond)) }, time.Second, 100*time.Microsecond)
			for _, cond := range []index.Condition[item]{byColor.Is("red"), byTag.Is("t"), heaviest.AtLeast(0), exactly.AtMost(1)} {
				for id, err := range c.IDs(ctx, cond) {
					require.NoError(t, err)
					require.Equal(t, "stays", id)
				}
				n, err := c.Count(ctx, cond)
				require.NoError(t, err)
				require.EqualValues(t, 1, n)
			}
			found, err := c.Exists(ctx, byCode.Is("c"))
			require.NoError(t, err)
			require.False(t, found)
			page, err := c.Top(ctx, heaviest.Top(1))
			require.NoError(t, err)
			require.Equal(t, "stays", page.Items[0].ID)
			_, err = c.One(ctx, byCode.Is("c"))
			require.ErrorIs(t, err, index.ErrNotFound)
			_, err = c.Get(ctx, "goes")
			require.ErrorIs(t, err, index.ErrNotFound)
		})
	}
}

func TestADeleteOfAnExpiredRecordTakesItsEntriesAlong(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		clk := newClock(s)
		c, rdb := open(t, s, define(index.Forever, byColor, byCode, byTag, heaviest, exactly))
		for _, id := range []string{"alone", "a:b", "batch"} {
			require.NoError(t, c.Put(ctx, item{ID: id, Color: "re:d", Code: id, Tags: []string{"t", "u"}, Weight: 1}, index.Lives(5*time.Millisecond)))
		}
		clk.gone(t, rdb, recordKey("batch"), 5*time.Millisecond)
		_, err := c.Get(ctx, "alone")
		require.ErrorIs(t, err, index.ErrNotFound)
		require.NoError(t, c.Delete(ctx, "alone"))
		for k, e := range redistest.Snapshot(t, rdb) {
			require.NotContains(t, k+e.String(), "alone")
		}
		_, err = c.DeleteMany(ctx, []string{"a:b", "batch"})
		require.NoError(t, err)
		require.Len(t, s.Keys(t), 2, "meta and catalog")
	})
}

// TestNoWriteCollectsMoreThanItsShare lets far more records expire than one write may take along.
func TestNoWriteCollectsMoreThanItsShare(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		clk := newClock(s)
		collected := 0
		rdb := s.Client(t)
		c, err := index.Open(ctx, rdb, items, index.OpenOptions{DirectWrites: -1, Events: index.Events{Collected: func(string) { collected++ }}})
		require.NoError(t, err)
		const dead, share = 300, 32
		for n := range dead {
			require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("old", n), Color: "red"}, index.Lives(150*time.Millisecond)))
		}
		clk.gone(t, rdb, recordKey(fmt.Sprint("old", dead-1)), 150*time.Millisecond)
		counter := redistest.Count(rdb)
		writes, all := 0, collected // on a slow machine some go while the others are written
		for ; all < dead; writes++ {
			require.Less(t, writes, 4*dead, "collection does not keep up: %d of %d", all, dead)
			collected = 0
			require.NoError(t, c.Put(ctx, item{ID: "w", Color: "blue"}))
			require.LessOrEqual(t, collected, share)
			all += collected
		}
		require.Greater(t, writes, dead/share)
		for name := range counter.Commands() {
			require.NotContains(t, []string{"subscribe", "psubscribe", "config", "keys", "scan"}, name, "it hangs on no event and searches nothing")
		}
		require.ErrorIs(t, rdb.ZScore(ctx, "acme:item:{item}:~~expiry:v1", "old0").Err(), redis.Nil)
		verify(t, rdb)
	})
}

// TestASlowReaderThatFillsACacheNeverReplacesANewerWrite keeps rows of a database in records: a reader that misses fills in what it
// has read there, while a writer changes the row and then the record.
func TestASlowReaderThatFillsACacheNeverReplacesANewerWrite(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, define(time.Hour, byColor, byCode, byTag))
		version := func(n int) item { return item{ID: "row", Color: fmt.Sprint("c", n), Weight: float64(n)} }
		is := func(n int) {
			t.Helper()
			got, err := c.Get(ctx, "row")
			require.NoError(t, err)
			require.Equal(t, version(n), got)
			verify(t, rdb)
		}
		// A miss, then the writer, then the fill.
		require.NoError(t, c.Put(ctx, version(2)))
		require.ErrorIs(t, c.Create(ctx, version(1)), index.ErrExists)
		is(2)
		// A reader that found an old record and refreshes it.
		old, err := c.Read(ctx, "row")
		require.NoError(t, err)
		require.NoError(t, c.Put(ctx, version(3)))
		require.ErrorIs(t, c.Put(ctx, version(2), index.IfToken(old.Token)), index.ErrChanged)
		is(3)
		// The record was thrown away and filled again with the same bytes: it is another state.
		old, err = c.Read(ctx, "row")
		require.NoError(t, err)
		require.NoError(t, c.Delete(ctx, "row"))
		require.NoError(t, c.Create(ctx, version(3)))
		require.ErrorIs(t, c.Put(ctx, version(2), index.IfToken(old.Token)), index.ErrChanged)
		is(3)

		// All at once: what the writer wrote last is there in the end.
		require.NoError(t, c.Delete(ctx, "row"))
		var mu sync.Mutex
		row := 0 // in the database
		read := func() int { mu.Lock(); defer mu.Unlock(); return row }
		var wg sync.WaitGroup
		done := make(chan struct{})
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					snap, err := c.Read(ctx, "row")
					fill := version(read())
					if errors.Is(err, index.ErrNotFound) {
						err = c.Create(ctx, fill)
					} else if err == nil && snap.Record.Weight < fill.Weight {
						err = c.Put(ctx, fill, index.IfToken(snap.Token))
					}
					if err != nil && !errors.Is(err, index.ErrExists) && !errors.Is(err, index.ErrChanged) && !errors.Is(err, index.ErrNotFound) {
						t.Error(err)
						return
					}
				}
			})
		}
		for n := range 60 {
			mu.Lock()
			row = n
			mu.Unlock()
			require.NoError(t, c.Put(ctx, version(n)))
		}
		close(done)
		wg.Wait()
		is(59)
	})
}

func TestALifetimeThatMakesNoSenseIsRefusedOnEveryPath(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		rec := item{ID: "a", Color: "red", Code: "c"}
		require.NoError(t, c.Put(ctx, rec))
		century := time.Now().AddDate(100, 0, 0)
		unchanged(t, rdb, func() {
			for name, o := range map[string]index.WriteOption{
				"zero": index.Lives(0), "negative": index.Lives(-time.Second), "the least": index.Lives(math.MinInt64),
				"under a millisecond": index.Lives(time.Millisecond - 1), "over ten years": index.Lives(index.MaxLifetime + 1),
				"the largest": index.Lives(math.MaxInt64), "in a century": index.Until(century),
				"beyond all dates": index.Until(time.Unix(math.MaxInt64>>1, 0)),
			} {
				wrong := func(err error, id string) {
					t.Helper()
					require.ErrorIs(t, err, index.ErrInvalid, name)
					about(t, err, id, "")
				}
				wrong(c.Put(ctx, rec, o), "a")
				wrong(c.Create(ctx, item{ID: "b", Color: "red"}, o), "b")
				wrong(c.Replace(ctx, rec, o), "a")
				_, err := c.Update(ctx, "a", func(*item) error { return nil }, o)
				wrong(err, "a")
				wrong(c.Touch(ctx, "a", o), "a")
			}
		})
		require.NoError(t, c.Put(ctx, rec, index.Lives(index.MaxLifetime)))
		require.InDelta(t, index.MaxLifetime.Hours(), rdb.PTTL(ctx, recordKey("a")).Val().Hours(), 1)
		require.NoError(t, c.Put(ctx, rec, index.Lives(index.Forever)))
		for _, past := range []time.Time{{}, time.Unix(0, 0), time.Unix(math.MinInt64>>1, 0), time.Now().Add(-time.Hour)} {
			require.ErrorIs(t, c.Touch(ctx, "a", index.Until(past)), index.ErrInvalid, "%v", past)
			require.ErrorIs(t, c.Replace(ctx, item{ID: "nobody", Color: "x"}, index.Until(past)), index.ErrNotFound, "a write of nothing deletes nothing")
			require.NoError(t, c.Put(ctx, rec, index.Until(past)), "%v", past)
			require.Len(t, s.Keys(t), 2, "an instant that is past makes it a delete: %v", past)
			require.NoError(t, c.Put(ctx, rec))
		}
	})
}

// TestALifetimeThatWasChangedByHandCountsForQueriesOnceItIsWrittenAgain holds what the comment of Touch says: queries go by the
// lifetime that the library has noted.
func TestALifetimeThatWasChangedByHandCountsForQueriesOnceItIsWrittenAgain(t *testing.T) {
	for name, renew := range map[string]func(*index.Collection[item]) error{
		"touch": func(c *index.Collection[item]) error {
			return c.Touch(context.Background(), "a", index.Lives(time.Hour))
		},
		"put": func(c *index.Collection[item]) error { return c.Put(context.Background(), item{ID: "a", Color: "red"}) },
		"update": func(c *index.Collection[item]) error {
			_, err := c.Update(context.Background(), "a", func(*item) error { return nil }, index.Lives(index.Forever))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				ctx := context.Background()
				clk := newClock(s)
				c, rdb := open(t, s, items)
				require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}, index.Lives(100*time.Millisecond)))
				require.NoError(t, rdb.Persist(ctx, recordKey("a")).Err())
				require.NoError(t, c.Put(ctx, item{ID: "b", Color: "red"}, index.Lives(100*time.Millisecond)))
				clk.gone(t, rdb, recordKey("b"), 100*time.Millisecond)
				for n := range 20 {
					require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("w", n), Color: "blue"}))
				}
				count := func(want int) {
					t.Helper()
					n, err := c.Count(ctx, byColor.Is("red"))
					require.NoError(t, err)
					require.EqualValues(t, want, n)
				}
				count(0)
				got, err := c.Get(ctx, "a")
				require.NoError(t, err, "it lives")
				require.Equal(t, "red", got.Color)
				verify(t, rdb) // and nothing has taken its entries away
				require.NoError(t, renew(c))
				count(1)
				verify(t, rdb)
			})
		})
	}
}
