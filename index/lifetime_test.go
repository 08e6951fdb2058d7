package index_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
)

// clock lets a test wait for an expiry: by moving the clock of the embedded server, or by polling a real one.
type clock struct {
	s   *redistest.Server
	now time.Time
}

func newClock(s *redistest.Server) *clock {
	c := &clock{s: s, now: time.Now()}
	if s.Mini != nil {
		s.Mini.ClockTTL(true)
		s.Mini.SetTime(c.now)
	}
	return c
}

// gone waits until a key has expired; d is at least its lifetime.
func (c *clock) gone(t testing.TB, rdb redis.UniversalClient, key string, d time.Duration) {
	t.Helper()
	if c.s.Mini != nil {
		c.now = c.now.Add(d + time.Millisecond)
		c.s.Mini.SetTime(c.now)
		return
	}
	require.Eventually(t, func() bool { return rdb.Exists(context.Background(), key).Val() == 0 }, d+5*time.Second, time.Millisecond)
}

func recordKey(id string) string { return "acme:item:{item}:" + id + ":v1" }

func TestALifetimeCanBeGivenChangedKeptAndTakenAway(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		newClock(s)
		c, rdb := open(t, s, items)
		ttl := func(id string) time.Duration { return rdb.PTTL(ctx, recordKey(id)).Val() }
		around := func(want time.Duration, id string) {
			t.Helper()
			require.InDelta(t, want.Seconds(), ttl(id).Seconds(), 5)
			score := rdb.ZScore(ctx, "acme:item:{item}:~~expiry:v1", id)
			require.NoError(t, score.Err(), "the note that goes with it")
		}
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}, index.Lives(time.Hour)))
		around(time.Hour, "a")
		_, err := c.Update(ctx, "a", func(i *item) error { i.Weight++; return nil })
		require.NoError(t, err)
		around(time.Hour, "a")
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}, index.KeepLifetime()))
		around(time.Hour, "a")
		_, err = c.Update(ctx, "a", func(i *item) error { i.Weight++; return nil }, index.Lives(2*time.Hour))
		require.NoError(t, err)
		around(2*time.Hour, "a")
		require.NoError(t, c.Touch(ctx, "a", index.Lives(3*time.Hour)))
		around(3*time.Hour, "a")
		snap, err := c.Read(ctx, "a")
		require.NoError(t, err)
		require.NoError(t, c.Touch(ctx, "a", index.Until(time.Now().Add(4*time.Hour))))
		around(4*time.Hour, "a")
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "blue"}, index.IfToken(snap.Token), index.KeepLifetime()), "a touch keeps the token good")
		around(4*time.Hour, "a")
		require.NoError(t, c.Touch(ctx, "a", index.Lives(index.Forever)))
		require.EqualValues(t, -1, ttl("a"))
		require.ErrorIs(t, rdb.ZScore(ctx, "acme:item:{item}:~~expiry:v1", "a").Err(), redis.Nil)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}, index.Until(time.Now().Add(time.Hour))))
		around(time.Hour, "a")
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}), "the declared lifetime is for ever")
		require.EqualValues(t, -1, ttl("a"))
		require.ErrorIs(t, rdb.ZScore(ctx, "acme:item:{item}:~~expiry:v1", "a").Err(), redis.Nil)
		verify(t, rdb)

		require.ErrorIs(t, c.Touch(ctx, "nobody", index.Lives(time.Hour)), index.ErrNotFound)
		require.ErrorIs(t, c.Touch(ctx, "a"), index.ErrInvalid, "no lifetime to renew")
		unchanged(t, rdb, func() {
			for _, d := range []time.Duration{0, -5, time.Microsecond, index.MaxLifetime + time.Hour} {
				require.ErrorIs(t, c.Put(ctx, item{ID: "a", Color: "x"}, index.Lives(d)), index.ErrInvalid, "%v", d)
				require.ErrorIs(t, c.Touch(ctx, "a", index.Lives(d)), index.ErrInvalid, "%v", d)
			}
			require.ErrorIs(t, c.Put(ctx, item{ID: "a", Color: "x"}, index.Until(time.Now().Add(index.MaxLifetime+time.Hour))), index.ErrInvalid)
			require.ErrorIs(t, c.Touch(ctx, "a", index.Until(time.Now().Add(-time.Hour))), index.ErrInvalid)
		})
	})
}

func TestALifetimeThatIsOverIsADelete(t *testing.T) {
	weighed := ranked.New("weight", func(i item) float64 { return i.Weight })
	exact := ranked.Exact("exact", func(i item) float64 { return i.Weight })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		newClock(s)
		c, _ := open(t, s, define(index.Forever, byColor, byCode, byTag, weighed, exact))
		past := index.Until(time.Now().Add(-time.Hour))
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red", Code: "c", Tags: []string{"t"}, Weight: 1}))
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red", Code: "d", Tags: []string{"u"}, Weight: 2}, past))
		require.NoError(t, c.Put(ctx, item{ID: "b", Color: "red", Code: "c"}), "its unique value is free")
		require.NoError(t, c.Put(ctx, item{ID: "b", Color: "red", Code: "c"}, past))
		require.NoError(t, c.Create(ctx, item{ID: "never", Color: "red"}, past))
		out, err := c.PutMany(ctx, []item{{ID: "x", Color: "red"}, {ID: "y", Color: "red"}})
		require.NoError(t, err)
		require.Len(t, out, 2)
		for _, id := range []string{"x", "y"} {
			_, err := c.Update(ctx, id, func(*item) error { return nil }, past)
			require.NoError(t, err)
		}
		require.Len(t, s.Keys(t), 2, "meta and catalog")
	})
}

// TestWhatHasExpiredIsCollectedByTheWritesThatFollow never sweeps.
func TestWhatHasExpiredIsCollectedByTheWritesThatFollow(t *testing.T) {
	weighed := ranked.New("weight", func(i item) float64 { return i.Weight })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		clk := newClock(s)
		c, rdb := open(t, s, define(300*time.Millisecond, byColor, byCode, byTag, weighed))
		for n := range 60 {
			require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("old", n), Color: "red", Code: fmt.Sprint("k", n), Tags: []string{"t"}}))
		}
		clk.gone(t, rdb, recordKey("old59"), 300*time.Millisecond)
		for n := range 40 {
			require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("new", n), Color: "blue"}, index.Lives(time.Hour)))
		}
		for k, e := range redistest.Snapshot(t, rdb) {
			require.NotContains(t, k+e.String(), "old", "left of an expired record")
		}
		n, err := c.Count(ctx, byColor.Is("blue"))
		require.NoError(t, err)
		require.EqualValues(t, 40, n)
	})
}

func TestARecordThatWasRemovedByHandIsHiddenAndCollected(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		var vanished, collected []string
		c, rdb := open(t, s, items, index.OpenOptions{Events: index.Events{
			Vanished:  func(_, id string) { vanished = append(vanished, id) },
			Collected: func(id string) { collected = append(collected, id) },
		}})
		require.NoError(t, c.Put(ctx, item{ID: "gone", Color: "red", Code: "c", Tags: []string{"t"}}))
		require.NoError(t, c.Put(ctx, item{ID: "stays", Color: "red"}))
		require.NoError(t, rdb.Del(ctx, recordKey("gone")).Err())
		for i, err := range c.Find(ctx, byColor.Is("red")) {
			require.NoError(t, err)
			require.Equal(t, "stays", i.ID)
		}
		require.Equal(t, []string{"gone"}, vanished)
		for n := range 20 {
			require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("w", n), Color: "red"}))
		}
		require.Equal(t, []string{"gone"}, collected)
		verify(t, rdb)
	})
}

func TestShortLivedRecordsDoNotPushLongLivedOnesOutOfABoundedIndex(t *testing.T) {
	for name, top := range map[string]*ranked.Index[item, float64]{
		"by score": ranked.New("weight", func(i item) float64 { return i.Weight }, ranked.Keep(5), ranked.Slack(0)),
		"exact":    ranked.Exact("weight", func(i item) float64 { return i.Weight }, ranked.Keep(5), ranked.Slack(0)),
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				ctx := context.Background()
				clk := newClock(s)
				c, rdb := open(t, s, define(index.Forever, top))
				for n := range 3 {
					require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("long", n), Weight: float64(n)}))
				}
				for n := range 2 {
					require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("short", n), Weight: 100}, index.Lives(200*time.Millisecond)))
				}
				clk.gone(t, rdb, recordKey("short1"), 200*time.Millisecond)
				require.NoError(t, c.Put(ctx, item{ID: "long3", Weight: 3}))
				require.NoError(t, c.Put(ctx, item{ID: "long4", Weight: 4}))
				page, err := c.Top(ctx, top.Top(5))
				require.NoError(t, err)
				require.True(t, page.Complete)
				require.Len(t, page.Items, 5)
				require.Equal(t, "long4", page.Items[0].ID)
			})
		})
	}
}

func TestOfManyClaimersOfAValueWhoseHolderExpiresOneWinsAndNeverEarly(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	rdb := s.Client(t)
	c, err := index.Open(ctx, rdb, items)
	require.NoError(t, err)
	for round := range 5 {
		code := fmt.Sprint("c", round)
		holder := fmt.Sprint("holder", round)
		require.NoError(t, c.Put(ctx, item{ID: holder, Color: "red", Code: code}, index.Lives(time.Duration(20+17*round)*time.Millisecond)))
		var winners, early atomic.Int64
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for winners.Load() == 0 {
					alive := rdb.Exists(ctx, recordKey(holder)).Val() == 1
					err := c.Create(ctx, item{ID: fmt.Sprintf("r%dn%d", round, n), Color: "red", Code: code})
					if err == nil {
						winners.Add(1)
						if alive && rdb.Exists(ctx, recordKey(holder)).Val() == 1 {
							early.Add(1)
						}
						return
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, winners.Load())
		require.Zero(t, early.Load())
	}
	verify(t, rdb)
}

// TestAReaderNeverMeetsAnExpiredRecordNorMissesALiveOne reads on the primary and on a replica while records expire.
func TestAReaderNeverMeetsAnExpiredRecordNorMissesALiveOne(t *testing.T) {
	primary := redistest.Redis(t)
	ctx := context.Background()
	rdb := primary.Client(t)
	c, err := index.Open(ctx, rdb, items)
	require.NoError(t, err)
	require.NoError(t, c.Put(ctx, item{ID: "live", Color: "red"}))
	replica := redistest.Replica(t, primary)
	readers := map[string]*index.Collection[item]{"primary": c}
	rep := replica.Client(t)
	require.Eventually(t, func() bool { return rep.Exists(ctx, recordKey("live")).Val() == 1 }, 5*time.Second, time.Millisecond)
	readers["replica"], err = index.Open(ctx, rep, items, index.OpenOptions{ReadOnly: true})
	require.NoError(t, err)

	const n = 1500
	var wg sync.WaitGroup
	done := make(chan struct{})
	var ends sync.Map // id -> instant at which its record is over at the latest; one machine, one clock
	for where, r := range readers {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				live, asked := false, time.Now()
				for i, err := range r.Find(ctx, byColor.Is("red")) {
					if err != nil {
						t.Errorf("%s: %v", where, err)
						return
					}
					live = live || i.ID == "live"
					if end, ok := ends.Load(i.ID); ok && end.(time.Time).Before(asked) {
						t.Errorf("%s: %s was over %v before the query", where, i.ID, asked.Sub(end.(time.Time)))
						return
					}
				}
				if !live {
					t.Errorf("%s: the record that lives for ever is missing", where)
					return
				}
				asked = time.Now()
				for id, err := range r.IDs(ctx, byColor.Is("red")) { // none of them is looked at
					if end, ok := ends.Load(id); err != nil || ok && end.(time.Time).Before(asked) {
						t.Errorf("%s: %s is over, %v", where, id, err)
						return
					}
				}
				if n, err := r.Count(ctx, byColor.Is("red")); err != nil || n < 1 {
					t.Errorf("%s: count %d, %v", where, n, err)
				}
			}
		})
	}
	for i := range n {
		id, life := fmt.Sprint("e", i), time.Duration(1+i%20)*time.Millisecond
		require.NoError(t, c.Put(ctx, item{ID: id, Color: "red"}, index.Lives(life)))
		ends.Store(id, time.Now().Add(life+time.Millisecond)) // hidden once the millisecond of its end is over
	}
	close(done)
	wg.Wait()
	require.Eventually(t, func() bool {
		count, err := c.Count(ctx, byColor.Is("red"))
		return err == nil && count == 1
	}, 5*time.Second, 5*time.Millisecond)
}

func TestAServerThatEvictsIndexKeysIsReportedOrRefused(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	rdb := s.Client(t)
	require.NoError(t, rdb.ConfigSet(ctx, "maxmemory", "500mb").Err())
	for policy, evicts := range map[string]bool{"noeviction": false, "volatile-lru": false, "allkeys-lru": true, "allkeys-random": true} {
		require.NoError(t, rdb.ConfigSet(ctx, "maxmemory-policy", policy).Err())
		var notices []string
		_, err := index.Open(ctx, rdb, items, index.OpenOptions{Events: index.Events{Notice: func(text string) { notices = append(notices, text) }}})
		require.NoError(t, err)
		require.Equal(t, evicts, strings.Contains(strings.Join(notices, " "), policy))
		_, err = index.Open(ctx, rdb, items, index.OpenOptions{RefuseEviction: true})
		if evicts {
			require.ErrorIs(t, err, index.ErrEviction)
		} else {
			require.NoError(t, err)
		}
	}
}
