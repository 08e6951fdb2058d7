package lockstep_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestOneIdSavedByManyWritersIsInExactlyOneSetPerIndex(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := open(t, s)
		var g errgroup.Group
		for w := range 16 {
			g.Go(func() error {
				for n := range 50 {
					a := Account{ID: "hot", Status: Status(fmt.Sprintf("s%d", (w+n)%7)), Tenant: fmt.Sprintf("t%d", n%3), Tags: []string{fmt.Sprintf("w%d", w)}}
					if err := c.Put(context.Background(), a); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		require.Empty(t, accountOracle.Check(context.Background(), rdb))
		sets := 0
		for k := range redistest.Snapshot(t, rdb) {
			if strings.Contains(k, "~status.1") {
				sets++
			}
		}
		require.Equal(t, 1, sets)
	})
}

func TestMixedWritersLeaveIndexesThatAgreeWithARereadOfEverything(t *testing.T) {
	const writers, operations, ids, emails = 8, 10_000, 20, 6
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := openUnwatched(t, s)
		ctx := context.Background()
		var claims, conflicts atomic.Int64
		var g errgroup.Group
		for w := range writers {
			rng := rand.New(rand.NewPCG(7, uint64(w)))
			g.Go(func() error {
				for range operations / writers {
					a := Account{
						ID:     fmt.Sprintf("id%d", rng.IntN(ids)),
						Status: Status(fmt.Sprintf("s%d", rng.IntN(4))),
						Tags:   []string{fmt.Sprintf("t%d", rng.IntN(3)), fmt.Sprintf("t%d", rng.IntN(3))},
					}
					if rng.IntN(2) == 0 {
						a.Email = fmt.Sprintf("E%d@x.org", rng.IntN(emails))
						claims.Add(1)
					}
					var err error
					switch rng.IntN(10) {
					case 0, 1:
						err = c.Delete(ctx, a.ID)
					case 2, 3, 4:
						_, err = c.Update(ctx, a.ID, func(r *Account) error {
							r.Status, r.Email, r.Tags = a.Status, a.Email, a.Tags
							return nil
						})
					case 5:
						err = c.Create(ctx, a)
					case 6:
						_, err = c.PutMany(ctx, []Account{a, {ID: fmt.Sprintf("id%d", rng.IntN(ids)), Status: "batch"}})
					default:
						err = c.Put(ctx, a)
					}
					switch {
					case errors.Is(err, index.ErrConflict):
						conflicts.Add(1)
					case errors.Is(err, index.ErrNotFound), errors.Is(err, index.ErrExists):
					case err != nil:
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		require.Empty(t, accountOracle.Check(ctx, rdb))
		require.Positive(t, conflicts.Load(), "the test must make writers want the same value")
		for k, e := range redistest.Snapshot(t, rdb) {
			if strings.Contains(k, "~email.1") {
				require.Len(t, e.Elements, 1, "two holders of %s", k)
			}
		}
		t.Logf("%d claims, %d conflicts", claims.Load(), conflicts.Load())
	})
}

func TestOfManyClaimsOfOneValueExactlyOneWins(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, _ := open(t, s)
		for round := range 10 {
			var won, lost atomic.Int64
			var wg sync.WaitGroup
			for w := range 16 {
				wg.Go(func() {
					err := c.Create(context.Background(), Account{ID: fmt.Sprintf("r%dw%d", round, w), Status: "s", Email: fmt.Sprintf("r%d@x.org", round)})
					switch {
					case err == nil:
						won.Add(1)
					case errors.Is(err, index.ErrConflict):
						lost.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, won.Load())
			require.EqualValues(t, 15, lost.Load())
		}
	})
}

// TestAReaderNeverSeesARecordWithoutItsEntries reads while a writer saves: never a gap, never half a record, never a record
// that does not match what was asked.
func TestAReaderNeverSeesARecordWithoutItsEntries(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		c, _ := openUnwatched(t, s)
		ctx := context.Background()
		state := func(n int) Account {
			st := Status([]string{"even", "odd"}[n%2])
			return Account{ID: "r", Tenant: "eu", Email: "r@x.org", Status: st, Note: strings.Repeat(string(st), 40)}
		}
		require.NoError(t, c.Put(ctx, state(0)))
		done := make(chan struct{})
		var reads atomic.Int64
		var g errgroup.Group
		for range 3 {
			g.Go(func() error {
				for {
					select {
					case <-done:
						return nil
					default:
					}
					reads.Add(1)
					a, err := c.Get(ctx, "r")
					if err != nil {
						return fmt.Errorf("get: %w", err)
					}
					if a.Note != strings.Repeat(string(a.Status), 40) {
						return fmt.Errorf("half a record: %+v", a)
					}
					if _, err := c.One(ctx, ByEmail.Is("r@x.org")); err != nil {
						return fmt.Errorf("one, with a value that never changes: %w", err)
					}
					found := 0
					for a, err := range c.Find(ctx, ByTenant.Is("eu")) {
						if err != nil {
							return err
						}
						found++
						_ = a
					}
					if found != 1 {
						return fmt.Errorf("absent from an index whose value never changed")
					}
					for a, err := range c.Find(ctx, ByStatus.Is("odd")) {
						if err != nil {
							return err
						}
						if a.Status != "odd" {
							return fmt.Errorf("a record that fails its own condition: %+v", a)
						}
					}
				}
			})
		}
		writes := 2000
		if s.Name == redistest.NameMini {
			writes = 300 // its Lua is interpreted, and slow under the race detector
		}
		for n := range writes {
			require.NoError(t, c.Put(ctx, state(n)))
		}
		close(done)
		require.NoError(t, g.Wait())
		require.Positive(t, reads.Load())
	})
}

func TestWritersOnDifferentIdsNeverDisturbEachOther(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		rdb := s.Client(t)
		var replans atomic.Int64
		c, err := index.Open(context.Background(), rdb, Accounts, index.OpenOptions{Events: index.Events{Replan: func(string) { replans.Add(1) }}})
		require.NoError(t, err)
		var g errgroup.Group
		for w := range 64 {
			g.Go(func() error {
				for range 10 {
					if err := c.Put(context.Background(), Account{ID: fmt.Sprintf("w%d", w), Status: "same"}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		require.Zero(t, replans.Load())
		accountOracle.Verify(t, rdb)
	})
}

func TestAPoolOfOneConnectionServesAHundredCallers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		rdb := s.Client(t, func(o *redis.UniversalOptions) { o.PoolSize = 1 })
		c, err := index.Open(context.Background(), rdb, Accounts)
		require.NoError(t, err)
		var g errgroup.Group
		for w := range 100 {
			g.Go(func() error {
				id := fmt.Sprintf("id%d", w%10)
				if err := c.Put(context.Background(), Account{ID: id, Status: Status(fmt.Sprint(w))}); err != nil {
					return err
				}
				_, err := c.Update(context.Background(), id, func(a *Account) error { a.Note += "."; return nil })
				return err
			})
		}
		require.NoError(t, g.Wait())
		accountOracle.Verify(t, rdb)
	})
}

func TestACounterUpdatedNTimesHasN(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, _ := open(t, s)
		ctx := context.Background()
		require.NoError(t, c.Put(ctx, Account{ID: "n", Status: "0"}))
		var g errgroup.Group
		for range 8 {
			g.Go(func() error {
				for range 25 {
					if _, err := c.Update(ctx, "n", func(a *Account) error {
						a.Note += "."
						a.Status = Status(fmt.Sprint(len(a.Note)))
						return nil
					}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		a, err := c.Get(ctx, "n")
		require.NoError(t, err)
		require.Len(t, a.Note, 200)
		require.Equal(t, []string{"n"}, idsOf(t, c, ByStatus.Is("200")))
	})
}
