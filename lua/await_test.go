package lua

import (
	"context"
	"errors"
	"testing"
	"time"

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
