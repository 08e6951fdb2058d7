package repair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// traffic writes with 8 writers over ids until stop is called. stop gives how many writes there were.
func traffic(t testing.TB, c *index.Collection[item], ids func(n int) string) (stop func() int64) {
	t.Helper()
	done := make(chan struct{})
	var writes atomic.Int64
	var g errgroup.Group
	for w := range 8 {
		rng := rand.New(rand.NewPCG(11, uint64(w)))
		g.Go(func() error {
			ctx := context.Background()
			for {
				select {
				case <-done:
					return nil
				default:
				}
				n := rng.IntN(400)
				rec := numbered(n)
				rec.ID = ids(n)
				rec.Code = fmt.Sprintf("hot%d", rng.IntN(300))
				rec.Color, rec.Weight, rec.Serial = fmt.Sprintf("c%d", rng.IntN(50)), rng.Float64()*1000, rng.Int64N(1000)
				var err error
				switch rng.IntN(6) {
				case 0:
					err = c.Delete(ctx, rec.ID)
				case 1:
					_, err = c.Update(ctx, rec.ID, func(i *item) error { i.Color, i.Weight = rec.Color, rec.Weight; return nil })
				case 2:
					_, err = c.PutMany(ctx, []item{rec, {ID: ids(rng.IntN(400)), Color: "batch"}})
				default:
					err = c.Put(ctx, rec)
				}
				if err != nil && !errors.Is(err, index.ErrConflict) && !errors.Is(err, index.ErrNotFound) {
					return err
				}
				writes.Add(1)
			}
		})
	}
	var once sync.Once
	stop = func() int64 {
		once.Do(func() { close(done); require.NoError(t, g.Wait()) })
		return writes.Load()
	}
	t.Cleanup(func() { stop() })
	return stop
}

func seconds() time.Duration {
	if os.Getenv("LOCKSTEP_LONG") != "" {
		return 30 * time.Second
	}
	return 2 * time.Second
}

func TestNothingIsReportedWhileHealthyRecordsAreWritten(t *testing.T) {
	whole := []index.Index[item]{byColor, byCode, byTag, byWeight, bySerial} // records are read while their keys are looked for
	best := ranked.New("best", func(i item) float64 { return i.Weight }, ranked.Keep(20), ranked.Slack(3))
	for name, indexes := range map[string][]index.Index[item]{"whole indexes": whole, "a bounded one": append(whole[:5:5], best)} {
		t.Run(name, func(t *testing.T) {
			redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
				c, rdb := open(t, s, define(index.Forever, indexes...))
				fill(t, c, s.Size(3000, 450))
				stop := traffic(t, c, func(n int) string { return fmt.Sprintf("i%05d", n) })
				passes := 0
				for begin := time.Now(); time.Since(begin) < seconds(); passes++ {
					fn := repair.Verify
					if passes%2 == 1 {
						fn = repair.Run
					}
					rep, err := fn(context.Background(), c, repair.Options{})
					require.NoError(t, err)
					require.Empty(t, rep.Findings, "a false finding")
					require.Zero(t, rep.ExitCode())
				}
				t.Logf("%d passes beside %d writes", passes, stop())
				check(t, rdb)
				clean(t, c, rdb)
			})
		})
	}
}

func TestNoLiveEntryIsRemovedWhileDamageIsRepairedUnderLoad(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		n := s.Size(6000, 900)
		fill(t, c, n)
		damage := n / 18
		p := plant(t, rdb, damage)
		// Readers ask for entries that never change: any that goes missing, even for a moment, was removed alive.
		var misses atomic.Int64
		var g errgroup.Group
		done := make(chan struct{})
		for r := range 2 {
			rng := rand.New(rand.NewPCG(3, uint64(r)))
			g.Go(func() error {
				for {
					select {
					case <-done:
						return nil
					default:
					}
					rec := numbered(3 * rng.IntN(n/3)) // not planted, not written
					held, err := rdb.SIsMember(ctx, entryKey("color.1:"+rec.Color), rec.ID).Result()
					if err != nil {
						return err
					}
					if score, err := rdb.ZScore(ctx, entryKey("weight.1"), rec.ID).Result(); err != nil || score != rec.Weight || !held {
						misses.Add(1)
					}
				}
			})
		}
		stop := traffic(t, c, func(n int) string { return fmt.Sprintf("w%d", n) })
		rep, err := repair.Run(ctx, c, repair.Options{MaxFindings: 10 * n})
		require.NoError(t, err)
		for name, kind := range got(t, rep) {
			require.Equal(t, p.want[name], kind, "a false finding: %s", name)
		}
		require.Len(t, rep.Findings, len(p.want))
		require.EqualValues(t, 4*damage, rep.Fixed)
		stop()
		close(done)
		require.NoError(t, g.Wait())
		require.Zero(t, misses.Load())
		rep = verify(t, c)
		require.Zero(t, rep.Missing+rep.Stale+rep.Orphan+rep.Misranked, "%+v", rep.Findings)
	})
}
