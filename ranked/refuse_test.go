package ranked_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
)

// refused writes good, and then bad by every path: each time a typed error, and nothing changes.
func refused[S any](t *testing.T, s *redistest.Server, c textCodec[S], ix index.Index[entry[S]], good S, bad ...S) {
	t.Helper()
	s.Flush(t)
	other := ranked.New("other", func(e entry[S]) int { return len(e.ID) })
	st := open(t, s, c, other, ix)
	st.put(entry[S]{ID: "1", Score: good})
	for _, score := range bad {
		rec := entry[S]{ID: "1", Score: score}
		wrong := func(err error, id string) {
			t.Helper()
			require.ErrorIs(t, err, index.ErrInvalid, "%v", score)
			about(t, err, id, ix.Name())
		}
		st.unchanged(func() {
			wrong(st.Put(t.Context(), rec), "1")
			wrong(st.Create(t.Context(), entry[S]{ID: "2", Score: score}), "2")
			wrong(st.Replace(t.Context(), rec), "1")
			_, err := st.Update(t.Context(), "1", func(e *entry[S]) error { e.Score = score; return nil })
			wrong(err, "1")
			out, err := st.PutMany(t.Context(), []entry[S]{rec})
			wrong(err, "1")
			wrong(out[0].Err, "1")
			require.False(t, out[0].Applied)
		})
		out, err := st.PutMany(t.Context(), []entry[S]{rec, {ID: "3", Score: good}})
		require.Error(t, err)
		require.NoError(t, out[1].Err, "the others of a batch are written")
		require.NoError(t, st.Delete(t.Context(), "3"))
	}
}

func TestAScoreThatTheOrderCannotHoldIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		t.Run("beyond 2^53", func(t *testing.T) {
			refused(t, s, ints, ranked.New("rank", score[int64]), 1<<53, 1<<53+1, -(1<<53 + 1), math.MaxInt64, math.MinInt64)
		})
		t.Run("beyond 2^53 within groups", func(t *testing.T) {
			refused(t, s, ints, ranked.Within(group[int64], ranked.New("rank", score[int64])), 1, math.MaxInt64)
		})
		t.Run("NaN", func(t *testing.T) {
			refused(t, s, floats, ranked.New("rank", score[float64]), 1, math.NaN())
			refused(t, s, floats, ranked.Exact("rank", score[float64]), 1, math.NaN())
		})
		t.Run("years", func(t *testing.T) {
			refused(t, s, times, ranked.New("rank", score[time.Time]), time.Date(1685, 1, 1, 0, 0, 0, 0, time.UTC),
				time.Date(1683, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2256, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
				// In these two the year alone would do, but a microsecond is no whole number of a float64 any more.
				time.UnixMicro(1<<53+1), time.UnixMicro(-(1<<53 + 1)), time.Date(2255, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(1684, 1, 1, 0, 0, 0, 0, time.UTC))
			refused(t, s, times, ranked.New("rank", score[time.Time], ranked.Unit(time.Second)), time.Date(2255, 12, 31, 23, 59, 59, 0, time.UTC),
				time.Date(1683, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2256, 1, 1, 0, 0, 0, 0, time.UTC))
			refused(t, s, times, ranked.Exact("rank", score[time.Time]), time.Date(1683, 1, 1, 0, 0, 0, 0, time.UTC),
				time.Unix(0, math.MinInt64).Add(-1), time.Unix(0, math.MaxInt64).Add(1), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC))
		})
	})
}

func TestABoundThatTheOrderCannotHoldIsRefused(t *testing.T) {
	s := redistest.Mini(t)
	by, exact := ranked.New("rank", score[float64]), ranked.Exact("exact", score[float64])
	st := open(t, s, floats, by, exact)
	st.put(entry[float64]{ID: "1", Score: 1})
	for _, cond := range []index.Cond[entry[float64]]{
		by.AtLeast(math.NaN()), by.Below(math.NaN()), by.Between(0, math.NaN()), exact.Above(math.NaN()), exact.AtMost(math.NaN()),
	} {
		_, err := drain(st.Find(t.Context(), cond))
		require.ErrorIs(t, err, index.ErrInvalid)
		_, err = st.Count(t.Context(), cond)
		require.ErrorIs(t, err, index.ErrInvalid)
		_, err = st.Top(t.Context(), by.Top(1), cond)
		require.ErrorIs(t, err, index.ErrInvalid)
	}
}
