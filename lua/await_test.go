package lua

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestAwaitLeavesACallWhoseContextEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	release := make(chan struct{})
	stuck := func() error { <-release; return nil }

	require.ErrorIs(t, Await(context.Background(), func() error { return errTest }), errTest)
	ctx, cancel := context.WithCancelCause(context.Background())
	require.NoError(t, Await(ctx, func() error { return nil }))
	cancel(errTest)
	started := time.Now()
	err := Await(ctx, stuck)
	require.ErrorIs(t, err, errTest)
	require.ErrorIs(t, err, errLeft)
	require.Less(t, time.Since(started), 100*time.Millisecond)
	close(release)

	f, _ := judge(err)
	require.Equal(t, maybe, f, "it may have been applied")
	require.False(t, neverSent(ctx, err))
	require.True(t, neverSent(ctx, Await(ctx, func() error { return ctx.Err() })), "what the client gives back at once was never sent")
}

// TestTheCatalogKeepsNoCallerWhoseContextEnds freezes the server under a client that does not look at contexts by itself.
func TestTheCatalogKeepsNoCallerWhoseContextEnds(t *testing.T) {
	s := redistest.Redis(t)
	rdb := s.Client(t, func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled, o.ReadTimeout = false, 10*time.Second })
	r := NewRunner(rdb, Retry{}, nil)
	const catalog = "c"
	for name, call := range map[string]func(context.Context) error{
		"planted":        func(ctx context.Context) error { return r.Planted(ctx, catalog) },
		"unplant":        func(ctx context.Context) error { return r.Unplant(ctx, catalog, false) },
		"unplant, empty": func(ctx context.Context) error { return r.Unplant(ctx, catalog, true) },
		"retire":         func(ctx context.Context) error { _, err := r.Retire(ctx, "m", "f", "e", "l", "1"); return err },
	} {
		require.NoError(t, call(t.Context()), name)
		s.Stop(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		started := time.Now()
		err := call(ctx)
		cancel()
		s.Continue(t)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.Less(t, time.Since(started), 5*time.Second, name)
	}
	require.NoError(t, r.Planted(t.Context(), catalog))
	require.NoError(t, r.Unplant(t.Context(), catalog, true))
	require.Equal(t, map[string]string{"start": "ready"}, rdb.HGetAll(t.Context(), catalog).Val())
}

// BenchmarkAwait measures what a context that can end costs a read of one record, beside one that cannot.
func BenchmarkAwait(b *testing.B) {
	s := redistest.Redis(b)
	ending, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for name, ctx := range map[string]context.Context{"context=background": context.Background(), "context=deadline": ending} {
		r := NewRunner(s.Client(b), Retry{}, nil)
		keys := []string{"k"}
		b.Run(name+"/round-trip", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Values(ctx, keys); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Await(ctx, func() error { return nil }); err != nil {
					b.Fatal(errors.Unwrap(err))
				}
			}
		})
	}
}
