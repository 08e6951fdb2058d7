package repair_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

func TestABoundedIndexThatBecameShortIsRefilledWithTheBestThatAreLeft(t *testing.T) {
	for name, bounded := range map[string]interface {
		index.Index[item]
		Top(n int) index.Order[item]
		Bottom(n int) index.Order[item]
	}{
		"highest":       ranked.New("best", func(i item) float64 { return i.Weight }, ranked.Keep(10), ranked.Slack(2)),
		"lowest":        ranked.New("best", func(i item) float64 { return i.Weight }, ranked.Keep(10), ranked.Slack(2), ranked.LowestFirst()),
		"exact":         ranked.Exact("best", func(i item) int64 { return i.Serial }, ranked.Keep(10), ranked.Slack(0)),
		"exact, lowest": ranked.Exact("best", func(i item) int64 { return i.Serial }, ranked.Keep(10), ranked.Slack(0), ranked.LowestFirst()),
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				ctx := context.Background()
				c, rdb := open(t, s, define(index.Forever, byColor, bounded))
				fill(t, c, 60)
				low := bounded.Definition().Bound.Low
				order := bounded.Top(10)
				if low {
					order = bounded.Bottom(10)
				}
				at := func(n int) string { // the n-th best
					if low {
						return fmt.Sprintf("i%05d", n)
					}
					return fmt.Sprintf("i%05d", 59-n)
				}
				clean(t, c, rdb) // trimmed is not missing
				for n := range 7 {
					require.NoError(t, c.Delete(ctx, at(n)))
				}
				page, err := c.Top(ctx, order)
				require.NoError(t, err)
				require.False(t, page.Complete)

				rep := run(t, c)
				require.Zero(t, rep.ExitCode())
				require.Empty(t, rep.Findings, "a short index is no damage")
				require.NotZero(t, rep.Refilled)
				page, err = c.Top(ctx, order)
				require.NoError(t, err)
				require.True(t, page.Complete)
				require.Len(t, page.Items, 10)
				for n := range 10 {
					require.Equal(t, at(7+n), page.Items[n].ID)
				}
				clean(t, c, rdb)

				// With fewer records than it keeps, nothing is outside: the floor goes.
				for n := 7; n < 55; n++ {
					require.NoError(t, c.Delete(ctx, at(n)))
				}
				run(t, c)
				page, err = c.Top(ctx, order)
				require.NoError(t, err)
				require.Len(t, page.Items, 5)
				require.True(t, page.Complete)
				require.False(t, rdb.HExists(ctx, floors, "best.1").Val())
				clean(t, c, rdb)
			})
		})
	}
}

func TestAPageIsNeverCompleteAndWrongWhileIndexesAreRefilled(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		best := ranked.Within(func(i item) string { return i.Net },
			ranked.New("best", func(i item) float64 { return i.Weight }, ranked.Keep(8), ranked.Slack(1)))
		c, rdb := open(t, s, define(index.Forever, byColor, best))
		fill(t, c, 120)
		var stopped atomic.Bool
		done := make(chan error, 1)
		go func() {
			var err error
			for !stopped.Load() && err == nil {
				_, err = repair.Run(ctx, c, repair.Options{})
			}
			done <- err
		}()
		rng := rand.New(rand.NewPCG(5, 5))
		live := map[string]item{}
		for i := range 120 {
			live[numbered(i).ID] = numbered(i)
		}
		complete := 0
		for begin := time.Now(); time.Since(begin) < 2*time.Second; {
			rec := numbered(rng.IntN(120))
			rec.Weight = float64(rng.IntN(200))
			rec.Net = "n0"
			if rng.IntN(2) == 0 {
				require.NoError(t, c.Delete(ctx, rec.ID))
				delete(live, rec.ID)
			} else {
				require.NoError(t, c.Put(ctx, rec))
				live[rec.ID] = rec
			}
			// This is the only writer: a complete page is what a sort of all records gives.
			page, err := c.Top(ctx, best.Of("n0").Top(8))
			require.NoError(t, err)
			if !page.Complete {
				continue
			}
			complete++
			var want []item
			for _, i := range live {
				if i.Net == "n0" {
					want = append(want, i)
				}
			}
			slices.SortFunc(want, func(a, b item) int {
				if a.Weight != b.Weight {
					return int(b.Weight - a.Weight)
				}
				if a.ID > b.ID {
					return -1
				}
				return 1
			})
			want = want[:min(8, len(want))]
			require.Len(t, page.Items, len(want))
			for i := range want {
				require.Equal(t, want[i].ID, page.Items[i].ID)
			}
		}
		stopped.Store(true)
		require.NoError(t, <-done)
		require.NotZero(t, complete)
		run(t, c)
		clean(t, c, rdb)
	})
}

func TestAnIndexWhoseBoundWasTakenAwayIsFilledUp(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	weight := func(i item) float64 { return i.Weight }
	c, _ := open(t, s, define(index.Forever, ranked.New("best", weight, ranked.Keep(5))))
	fill(t, c, 50)
	for _, keep := range []int{20, 0} {
		var o []ranked.Option
		if keep > 0 {
			o = append(o, ranked.Keep(keep))
		}
		wider := ranked.New("best", weight, o...)
		c, rdb := open(t, s, define(index.Forever, wider))
		run(t, c)
		n := max(keep, 1)
		if keep == 0 {
			n = 50
		}
		page, err := c.Top(ctx, wider.Top(n))
		require.NoError(t, err)
		require.Len(t, page.Items, n)
		require.True(t, page.Complete)
		clean(t, c, rdb)
	}
}

func TestARecordOutsideTheWindowOfItsIndexIsNotMissing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		recent := ranked.New("recent", func(i item) time.Time { return time.UnixMicro(i.Serial) }, ranked.MaxAge(time.Hour))
		c, rdb := open(t, s, define(index.Forever, recent))
		now := time.Now()
		for i := range 12 {
			age := time.Duration(i) * 10 * time.Minute
			require.NoError(t, c.Put(context.Background(), item{ID: fmt.Sprintf("v%d", i), Serial: now.Add(-age).UnixMicro()}))
		}
		clean(t, c, rdb)
		exec(t, rdb, "zrem", entryKey("recent.1"), "v3")
		rep := verify(t, c)
		require.EqualValues(t, 1, rep.Missing)
		require.Equal(t, "v3", rep.Findings[0].ID)
		require.EqualValues(t, 1, run(t, c).Fixed)
		clean(t, c, rdb)
	})
}
