package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBothSidesAreMeasuredOnTheSameRecordsAndNothingIsLeft(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, rdb := t.Context(), s.Client(t)
		require.NoError(t, rdb.Set(ctx, "acme:bench-other", "somebody else's", 0).Err())
		w, err := Open(ctx, rdb, "acme:bench", 400)
		require.NoError(t, err)
		n, err := w.verify(ctx)
		require.NoError(t, err)
		require.Equal(t, 400, n)
		n, err = w.hand.readAll(ctx)
		require.NoError(t, err)
		require.Equal(t, 400, n)
		record, err := w.items.RecordKey(idOf(0))
		require.NoError(t, err)
		require.Len(t, w.hand.record(idOf(0)), len(record), "keys of equal length")

		results, err := w.Run(ctx, Options{Rounds: 1, Round: 5 * time.Millisecond})
		require.NoError(t, err)
		names := map[string]bool{}
		for _, r := range results {
			names[r.Name] = true
			require.Positive(t, r.PerS, r.Name)
			require.Positive(t, r.BaselinePerS, r.Name)
			require.InDelta(t, r.PerS/r.BaselinePerS, r.Ratio, 1e-9, r.Name)
			require.Positive(t, r.Bar, r.Name)
			require.Equal(t, r.Name == "memory", r.AtMost)
		}
		require.Equal(t, s.Name != redistest.NameMini, names["memory"], "miniredis does not tell its memory")
		require.Len(t, names, len(results))

		// What was written meanwhile is as it should be on both sides.
		_, err = w.verify(ctx)
		require.NoError(t, err)
		require.NoError(t, w.newestByHand(ctx))
		require.NoError(t, w.newest(ctx))
		require.NoError(t, w.Close(ctx))
		require.Equal(t, []string{"acme:bench-other"}, s.Keys(t))
	})
}

func TestAnInterruptedMeasurementRemovesItsKeys(t *testing.T) {
	s := redistest.Mini(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := Open(ctx, s.Client(t), "acme:bench", 400)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, s.Keys(t))
	_, err = Open(t.Context(), s.Client(t), "acme:bench", 1)
	require.Error(t, err)
}

func TestARecordHasItsSizeAndAChangeChangesIt(t *testing.T) {
	for i := range int64(1000) {
		it := newItem(i, fill)
		b, err := json.Marshal(it)
		require.NoError(t, err)
		require.Len(t, b, recordBytes)
		old := it.Status
		it.change()
		require.NotEqual(t, old, it.Status)
	}
}

func TestABarIsALeastRatioOrForMemoryALimit(t *testing.T) {
	require.True(t, Result{Ratio: 0.7, Bar: 0.7}.Holds())
	require.False(t, Result{Ratio: 0.69, Bar: 0.7}.Holds())
	require.True(t, Result{Ratio: 1.2, Bar: 1.25, AtMost: true}.Holds())
	require.False(t, Result{Ratio: 1.26, Bar: 1.25, AtMost: true}.Holds())
}

func TestEveryCallerCallsAndAnErrorEndsThemAll(t *testing.T) {
	never := func(int64) bool { return false }
	n, err := Perform(t.Context(), 8, never, func(context.Context) (int, error) { return 3, nil })
	require.NoError(t, err)
	require.EqualValues(t, 24, n)
	always := func(int64) bool { return true }
	_, err = Perform(t.Context(), 8, always, func(context.Context) (int, error) { return 0, context.DeadlineExceeded })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// BenchmarkCases measures every case on a server of its own: records a second, the server's time and the round trips for
// each, on both sides.
func BenchmarkCases(b *testing.B) {
	s := redistest.Redis(b)
	rdb := s.Client(b, func(o *redis.UniversalOptions) { o.PoolSize = 64 })
	ctx := context.Background()
	w, err := Open(ctx, rdb, "acme:bench", 20_000)
	require.NoError(b, err)
	trips := redistest.Count(rdb)
	for _, c := range w.Cases() {
		for _, side := range []struct {
			name string
			do   func(context.Context) (int, error)
		}{{"lockstep", c.Ours}, {"by hand", c.Theirs}} {
			b.Run(fmt.Sprintf("%s/%s", c.Name, side.name), func(b *testing.B) {
				b.ReportAllocs()
				before, _ := processor(ctx, rdb)
				sent := trips.Trips()
				b.ResetTimer()
				n, err := Perform(ctx, min(c.Callers, b.N), func(begun int64) bool { return begun < int64(b.N) }, side.do)
				b.StopTimer()
				require.NoError(b, err)
				after, _ := processor(ctx, rdb)
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
				b.ReportMetric((after-before)/float64(n), "server-us/record")
				b.ReportMetric(float64(trips.Trips()-sent)/float64(n), "trips/record")
			})
		}
	}
}
