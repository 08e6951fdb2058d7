package opaque_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
)

func TestAServerThatIsKilledUnderLoadLeavesNoHalfWrites(t *testing.T) {
	s := redistest.Memcached(t, "-M")
	e := defineAs("killed")
	const people = 40
	var stop atomic.Bool
	var done, failed atomic.Int64
	var wg sync.WaitGroup
	for w := range 6 {
		c, err := opaque.Open(t.Context(), memcached(t, s), e, opaque.Options{Grace: 20 * time.Millisecond, Suspect: opaque.CheckUnique})
		require.NoError(t, err)
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			for !stop.Load() {
				err := mixed(context.WithoutCancel(t.Context()), c, rng, people)
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, opaque.ErrUnknown), errors.Is(err, opaque.ErrUnavailable), errors.Is(err, opaque.ErrSuspect),
					errors.Is(err, index.ErrConflict), errors.Is(err, opaque.ErrNotFound), errors.Is(err, opaque.ErrExists):
					failed.Add(1)
				default:
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	watcher, err := opaque.Open(t.Context(), memcached(t, s), e)
	require.NoError(t, err)
	for round := range 3 {
		before := done.Load()
		require.Eventually(t, func() bool { return done.Load() > before+200 }, patience, time.Millisecond)
		s.Restart(t)
		var reason string
		require.Eventually(t, func() bool {
			reason, err = watcher.Suspect(t.Context())
			return err == nil
		}, patience, time.Millisecond)
		require.NotEmpty(t, reason, "round %d: the loss was not noticed", round)
		r, err := watcher.Run(t.Context(), opaque.RunOptions{Trust: true})
		require.NoError(t, err)
		require.Empty(t, r.Lost)
	}
	stop.Store(true)
	wg.Wait()
	c, err := opaque.Open(t.Context(), memcached(t, s), e, opaque.Options{Grace: time.Nanosecond})
	require.NoError(t, err)
	r, err := c.Verify(t.Context(), opaque.RunOptions{})
	require.NoError(t, err)
	require.Zero(t, r.Counts[opaque.Missing]+r.Counts[opaque.Conflict], "%v", r.Findings)
	_, err = c.Run(t.Context(), opaque.RunOptions{})
	require.NoError(t, err)
	requireClean(t, c)
	bruteForce(t, c, people)
	t.Logf("%d operations done, %d not, over three restarts", done.Load(), failed.Load())
}

func TestAServerWithFullMemoryRefusesWritesAndKeepsWhatItHas(t *testing.T) {
	ctx := t.Context()
	s := redistest.Memcached(t, "-M", "-m", "16")
	kv := memcached(t, s)
	c, err := opaque.Open(ctx, kv, defineAs("full"), opaque.Options{Grace: time.Nanosecond})
	require.NoError(t, err)
	pad := strings.Repeat("x", 200)
	for i := range 20 {
		require.NoError(t, c.Create(ctx, Account{ID: fmt.Sprint(i), Status: "kept", Email: fmt.Sprint("e", i), Tags: []string{pad}}))
	}
	for size := 100_000; size >= 5; size = size * 3 / 4 {
		for i := 0; ; i++ {
			if _, err := kv.Add(ctx, fmt.Sprintf("fill.%d.%d", size, i), make([]byte, size), time.Time{}); err != nil {
				require.ErrorIs(t, err, opaque.ErrOutOfMemory)
				break
			}
		}
	}
	err = c.Create(ctx, Account{ID: "new", Status: "kept", Email: "new", Tags: []string{pad, "other"}})
	require.ErrorIs(t, err, opaque.ErrOutOfMemory)
	_, err = c.Update(ctx, "1", func(a *Account) error {
		a.Status = "moved"
		return nil
	})
	require.ErrorIs(t, err, opaque.ErrOutOfMemory)
	a, err := c.Get(ctx, "1")
	require.NoError(t, err)
	require.Equal(t, "kept", a.Status)
	require.Len(t, ids(t, c, ByStatus.Is("kept")), 20)
	// A delete commits. The removal of its list entries needs room that is not there; they dangle and answer nothing.
	require.NoError(t, c.Delete(ctx, "2"))
	require.Len(t, ids(t, c, ByStatus.Is("kept")), 19)
	_, err = c.One(ctx, ByEmail.Is("e2"))
	require.ErrorIs(t, err, opaque.ErrNotFound)
	r, err := c.Verify(ctx, opaque.RunOptions{})
	require.NoError(t, err)
	for _, f := range r.Findings {
		require.True(t, f.Kind.Harmless(), "%v", f)
	}
	require.Empty(t, r.Lost, "with -M nothing is evicted")
}

func TestAValueOfTwoMebibytesIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	ctx := t.Context()
	s := redistest.Memcached(t, "-M")
	kv := &counter{KV: memcached(t, s)}
	e := defineAs("large", func(o *index.Options[Account]) { o.MaxRecordBytes = 8 << 20 })
	c, err := opaque.Open(ctx, kv, e)
	require.NoError(t, err)
	require.NoError(t, c.Create(ctx, Account{ID: "1", Status: "small"}))
	before := kv.trips.Load()
	large := Account{ID: "2", Status: "large", Tags: []string{"t"}, Phone: strings.Repeat("x", 2<<20)}
	require.ErrorIs(t, c.Create(ctx, large), opaque.ErrTooLarge)
	require.Equal(t, before, kv.trips.Load(), "nothing was sent")
	large.ID = "1"
	require.ErrorIs(t, c.Put(ctx, large), opaque.ErrTooLarge)
	a, err := c.Get(ctx, "1")
	require.NoError(t, err)
	require.Equal(t, "small", a.Status)
	requireClean(t, c)
}

func TestALifetimeOverThirtyDaysIsNotTakenForADateOfThePast(t *testing.T) {
	ctx := t.Context()
	s := redistest.Memcached(t)
	e := defineAs("long", func(o *index.Options[Account]) { o.Lifetime = 90 * 24 * time.Hour })
	c, err := opaque.Open(ctx, memcached(t, s), e)
	require.NoError(t, err)
	require.NoError(t, c.Create(ctx, Account{ID: "1", Status: "a"}))
	_, err = c.Update(ctx, "1", func(a *Account) error {
		a.Status = "b"
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, ids(t, c, ByStatus.Is("b")))
	requireClean(t, c)
	_, err = opaque.Open(ctx, memcached(t, s), defineAs("short", func(o *index.Options[Account]) { o.Lifetime = time.Second }))
	require.ErrorIs(t, err, index.ErrInvalid, "memcached does not keep a second")
}

func TestAnEvictionMakesTheIndexesSuspectUntilARebuildThatKnowsAllIDs(t *testing.T) {
	ctx := t.Context()
	s := redistest.Memcached(t, "-m", "8") // without -M: it evicts
	kv := memcached(t, s)
	e := defineAs("evicted")
	c, err := opaque.Open(ctx, kv, e, opaque.Options{Lease: time.Nanosecond})
	require.NoError(t, err)
	checked, err := opaque.Open(ctx, kv, e, opaque.Options{Lease: time.Nanosecond, Suspect: opaque.CheckUnique})
	require.NoError(t, err)
	require.NoError(t, c.Create(ctx, Account{ID: "1", Status: "a", Email: "e"}))
	for i := 0; ; i++ {
		_, err := kv.Add(ctx, fmt.Sprint("fill", i), make([]byte, 10_000), time.Time{})
		require.NoError(t, err)
		life, err := kv.Life(ctx)
		require.NoError(t, err)
		if life.Evictions > 0 {
			break
		}
	}
	_, err = c.One(ctx, ByEmail.Is("nobody"))
	require.ErrorIs(t, err, opaque.ErrSuspect, "a miss says nothing")
	a, err := c.One(ctx, ByEmail.Is("e"))
	require.NoError(t, err, "a hit is right")
	require.Equal(t, "1", a.ID)
	var last error
	for _, err := range c.Find(ctx, ByStatus.Is("a")) {
		last = err
	}
	require.ErrorIs(t, last, opaque.ErrSuspect)
	require.ErrorIs(t, c.Create(ctx, Account{ID: "2", Email: "e2"}), opaque.ErrSuspect)
	require.NoError(t, c.Create(ctx, Account{ID: "3", Status: "a"}), "a record without a unique value is as good as ever")
	require.NoError(t, checked.Create(ctx, Account{ID: "2", Email: "e2"}))
	require.ErrorIs(t, checked.Create(ctx, Account{ID: "4", Email: "e2"}), index.ErrConflict)

	r, err := c.Run(ctx, opaque.RunOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, r.Lost, "without all ids nothing is proved")
	r, err = c.Run(ctx, opaque.RunOptions{IDs: func(yield func(string, error) bool) {
		for _, id := range []string{"1", "2", "3"} {
			if !yield(id, nil) {
				return
			}
		}
	}})
	require.NoError(t, err)
	require.Empty(t, r.Lost)
	require.NoError(t, c.Create(ctx, Account{ID: "5", Email: "e5"}))
	_, err = c.One(ctx, ByEmail.Is("nobody"))
	require.ErrorIs(t, err, opaque.ErrNotFound)
}
