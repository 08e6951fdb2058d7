package opaque_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/opaque"
)

// 32 writers swap one list: retries stay bounded, and every member is kept.
func TestNoMemberIsLostWhen32WritersShareOneList(t *testing.T) {
	const writers, each = 32, 8
	eachServer(t, func(t *testing.T, connect func() opaque.KV) {
		for _, buckets := range []int{1, 8} {
			e := defineAs(fmt.Sprintf("hot%d", buckets))
			var retries, length atomic.Int64
			o := opaque.Options{Buckets: map[string]int{"status": buckets}, Events: opaque.Events{
				Retry: func(op, _, name string) {
					if op == "append" && name == "status" {
						retries.Add(1)
					}
				},
				Grown: func(name string, n, _ int) {
					if name == "status" {
						length.Store(max(length.Load(), int64(n)))
					}
				},
			}}
			c, err := opaque.Open(t.Context(), connect(), e, o)
			require.NoError(t, err)
			var wg sync.WaitGroup
			want := []string{}
			for w := range writers {
				for i := range each {
					want = append(want, fmt.Sprintf("%d-%d", w, i))
				}
				wg.Go(func() {
					for i := range each {
						if err := c.Create(context.WithoutCancel(t.Context()), Account{ID: fmt.Sprintf("%d-%d", w, i), Status: "hot"}); err != nil {
							t.Errorf("create: %v", err)
						}
					}
				})
			}
			wg.Wait()
			slices.Sort(want)
			require.Equal(t, want, ids(t, c, ByStatus.Is("hot")))
			requireClean(t, c)
			// Whoever has to try again does so because somebody else got through.
			require.Less(t, retries.Load(), int64(writers*each*(writers-1)), "retries are bounded")
			t.Logf("%d buckets: %.2f retries of the list per write; longest list %d", buckets,
				float64(retries.Load())/(writers*each), length.Load())
		}
	})
}

func TestAListOverItsBoundsRefusesTheWriteAndKeepsItsMembers(t *testing.T) {
	eachServer(t, func(t *testing.T, connect func() opaque.KV) {
		ctx := t.Context()
		c, err := opaque.Open(ctx, connect(), defineAs("bounded"), opaque.Options{MaxEntries: 5, IDBuckets: 16})
		require.NoError(t, err)
		for i := range 5 {
			require.NoError(t, c.Create(ctx, Account{ID: fmt.Sprint(i), Status: "full"}))
		}
		err = c.Create(ctx, Account{ID: "one too many", Status: "full", Email: "free"})
		require.ErrorIs(t, err, opaque.ErrTooLarge)
		var large *index.TooLargeError
		require.ErrorAs(t, err, &large)
		require.Equal(t, 6, large.Size)
		require.Len(t, ids(t, c, ByStatus.Is("full")), 5)
		_, err = c.Get(ctx, "one too many")
		require.ErrorIs(t, err, opaque.ErrNotFound)
		require.NoError(t, c.Create(ctx, Account{ID: "other", Email: "free"}), "the claim was given back")
		requireClean(t, c)
	})
}

func TestOf16ClaimersOfOneValueOneWins(t *testing.T) {
	eachServer(t, func(t *testing.T, connect func() opaque.KV) {
		c, err := opaque.Open(t.Context(), connect(), defineAs("claim"), opaque.Options{IDBuckets: 4})
		require.NoError(t, err)
		for round := range 5 {
			email := fmt.Sprint("e", round)
			var won atomic.Pointer[string]
			var winners atomic.Int32
			var wg sync.WaitGroup
			for n := range 16 {
				wg.Go(func() {
					id := fmt.Sprintf("%d-%d", round, n)
					err := c.Create(context.WithoutCancel(t.Context()), Account{ID: id, Email: email})
					switch {
					case err == nil:
						winners.Add(1)
						won.Store(&id)
					case !errors.Is(err, index.ErrConflict):
						t.Errorf("create: %v", err)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, winners.Load())
			a, err := c.One(t.Context(), ByEmail.Is(email))
			require.NoError(t, err)
			require.Equal(t, *won.Load(), a.ID)
			err = c.Put(t.Context(), Account{ID: "late", Email: email})
			var conflict *index.ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, a.ID, conflict.Holder)
		}
		requireClean(t, c)
	})
}

// Two records cannot exchange two unique values, since each would have to let go first: both are told, and nothing moves.
func TestTwoRecordsThatExchangeUniqueValuesAreBothRefused(t *testing.T) {
	eachServer(t, func(t *testing.T, connect func() opaque.KV) {
		ctx := t.Context()
		c, err := opaque.Open(ctx, connect(), defineAs("exchange"))
		require.NoError(t, err)
		require.NoError(t, c.Create(ctx, Account{ID: "1", Email: "a"}))
		require.NoError(t, c.Create(ctx, Account{ID: "2", Email: "b"}))
		require.ErrorIs(t, c.Put(ctx, Account{ID: "1", Email: "b"}), index.ErrConflict)
		require.ErrorIs(t, c.Put(ctx, Account{ID: "2", Email: "a"}), index.ErrConflict)
		require.NoError(t, c.Put(ctx, Account{ID: "1", Email: "third"}))
		require.NoError(t, c.Put(ctx, Account{ID: "2", Email: "a"}))
		require.NoError(t, c.Put(ctx, Account{ID: "1", Email: "b"}))
		requireClean(t, c)
	})
}

// 32 clients bring 32 declarations at once: each gets a generation of its own.
func TestNoGenerationIsGivenTwiceWhen32DeclarationsArriveAtOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, connect func() opaque.KV) {
		kv := connect()
		var wg sync.WaitGroup
		for n := range 32 {
			ix := membership.New("status", func(a Account) string { return a.Status }, membership.Revision(n+1))
			e := defineAs("generations", func(o *index.Options[Account]) { o.Indexes = []index.Index[Account]{ix} })
			wg.Go(func() {
				if _, err := opaque.Open(context.WithoutCancel(t.Context()), kv, e, opaque.Options{Attempts: 1000}); err != nil {
					t.Errorf("open: %v", err)
				}
			})
		}
		wg.Wait()
		item, err := kv.Get(t.Context(), "generations:account:~~catalog:v1")
		require.NoError(t, err)
		require.Contains(t, string(item.Value), `"generation":32,`)
	})
}

// Mixed operations of eight writers leave exactly what the records say.
func TestAfterMixedWritesEveryQueryAgreesWithBruteForce(t *testing.T) {
	const writers, people = 8, 200
	each := 10_000
	if redistest.Race || testing.Short() {
		each = 300
	}
	eachServer(t, func(t *testing.T, connect func() opaque.KV) {
		e := defineAs("mixed")
		var wg sync.WaitGroup
		var refused atomic.Int64
		start := time.Now()
		for w := range writers {
			c, err := opaque.Open(t.Context(), connect(), e, opaque.Options{Attempts: 1000})
			require.NoError(t, err)
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(w), 7))
				for range each {
					err := mixed(context.WithoutCancel(t.Context()), c, rng, people)
					switch {
					case err == nil:
					case errors.Is(err, index.ErrConflict), errors.Is(err, opaque.ErrNotFound), errors.Is(err, opaque.ErrExists):
						refused.Add(1)
					default:
						t.Errorf("%v", err)
						return
					}
				}
			})
		}
		wg.Wait()
		took := time.Since(start)
		c, err := opaque.Open(t.Context(), connect(), e)
		require.NoError(t, err)
		bruteForce(t, c, people)
		requireClean(t, c)
		t.Logf("%d operations in %v, %d refused by their own conditions", writers*each, took.Round(time.Millisecond), refused.Load())
	})
}

func mixed(ctx context.Context, c *opaque.Collection[Account], rng *rand.Rand, people int) error {
	a := Account{
		ID: fmt.Sprint(rng.IntN(people)), Status: fmt.Sprint("s", rng.IntN(8)), Email: fmt.Sprint("e", rng.IntN(people*2)),
		Tags: []string{fmt.Sprint("t", rng.IntN(5)), fmt.Sprint("t", rng.IntN(5))},
	}
	switch n := rng.IntN(10); {
	case n < 3:
		return c.Put(ctx, a)
	case n < 4:
		return c.Create(ctx, a)
	case n < 8:
		_, err := c.Update(ctx, a.ID, func(old *Account) error {
			if n < 6 {
				old.Status = a.Status
			} else {
				old.Email, old.Tags = a.Email, a.Tags
			}
			old.N++
			return nil
		})
		return err
	case n < 9:
		return c.Delete(ctx, a.ID)
	default:
		for _, err := range c.Find(ctx, ByStatus.Is(a.Status)) {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// bruteForce reads every record and holds every query against them.
func bruteForce(t *testing.T, c *opaque.Collection[Account], people int) {
	t.Helper()
	ctx := t.Context()
	statuses, tags, emails := map[string][]string{}, map[string][]string{}, map[string]string{}
	for n := range people {
		a, err := c.Get(ctx, fmt.Sprint(n))
		if errors.Is(err, opaque.ErrNotFound) {
			continue
		}
		require.NoError(t, err)
		statuses[a.Status] = append(statuses[a.Status], a.ID)
		slices.Sort(a.Tags)
		for _, tag := range slices.Compact(a.Tags) {
			tags[tag] = append(tags[tag], a.ID)
		}
		if a.Email != "" {
			require.NotContains(t, emails, a.Email, "two records hold one value")
			emails[a.Email] = a.ID
		}
	}
	for n := range 8 {
		v := fmt.Sprint("s", n)
		require.ElementsMatch(t, statuses[v], ids(t, c, ByStatus.Is(v)))
		v = fmt.Sprint("t", n)
		require.ElementsMatch(t, tags[v], ids(t, c, ByTag.Is(v)))
	}
	for n := range people * 2 {
		email := fmt.Sprint("e", n)
		a, err := c.One(ctx, ByEmail.Is(email))
		if id, ok := emails[email]; ok {
			require.NoError(t, err)
			require.Equal(t, id, a.ID)
		} else {
			require.ErrorIs(t, err, opaque.ErrNotFound)
		}
	}
}
