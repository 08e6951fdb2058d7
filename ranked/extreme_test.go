package ranked_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
)

// ordered puts scores in a shuffled order under ids that tell nothing, and expects them back from both ends, whole and page
// by page. compare is the order that is expected of them; equal ones follow their ids.
func ordered[S any](t *testing.T, s *redistest.Server, c textCodec[S], mk func(string, func(entry[S]) S, ...ranked.Option) *ranked.Index[entry[S], S], scores []S, compare func(a, b S) int) {
	t.Helper()
	by := mk("rank", score[S])
	st := open(t, s, c, by)
	recs := make([]entry[S], len(scores))
	for i, v := range scores {
		recs[i] = entry[S]{ID: string(rune('a' + i*7%26)), Score: v}
	}
	shuffled := slices.Clone(recs)
	for i := range shuffled { // a fixed walk over all places
		j := (i*5 + 3) % len(shuffled)
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	}
	st.put(shuffled...)
	slices.SortFunc(recs, func(a, b entry[S]) int { return cmp.Or(compare(a.Score, b.Score), strings.Compare(a.ID, b.ID)) })
	want := recordIDs(recs)
	require.Equal(t, want, st.whole(by.Bottom(len(recs))))
	for size := 1; size <= 3; size++ {
		require.Equal(t, want, st.pages(by.Bottom(size)), "pages of %d", size)
	}
	slices.Reverse(want)
	require.Equal(t, want, st.whole(by.Top(len(recs))))
	for size := 1; size <= 3; size++ {
		require.Equal(t, want, st.pages(by.Top(size)), "pages of %d", size)
	}
	// Every score is a bound: open and closed ends.
	for _, edge := range recs {
		for name, f := range map[string]struct {
			cond index.Cond[entry[S]]
			in   func(int) bool
		}{
			"at least": {by.AtLeast(edge.Score), func(c int) bool { return c >= 0 }},
			"above":    {by.Above(edge.Score), func(c int) bool { return c > 0 }},
			"at most":  {by.AtMost(edge.Score), func(c int) bool { return c <= 0 }},
			"below":    {by.Below(edge.Score), func(c int) bool { return c < 0 }},
			"between":  {by.Between(edge.Score, edge.Score), func(c int) bool { return c == 0 }},
		} {
			in := []string{}
			for _, r := range recs {
				if f.in(compare(r.Score, edge.Score)) {
					in = append(in, r.ID)
				}
			}
			slices.Reverse(in) // Find gives a range from the kept end
			found, err := drain(st.Find(t.Context(), f.cond))
			require.NoError(t, err)
			require.Equal(t, in, recordIDs(found), "%s %v", name, edge.Score)
			got, err := drain(st.IDs(t.Context(), f.cond))
			require.NoError(t, err)
			require.Equal(t, in, got, "%s %v", name, edge.Score)
			n, err := st.Count(t.Context(), f.cond)
			require.NoError(t, err)
			require.EqualValues(t, len(in), n, "%s %v", name, edge.Score)
		}
	}
}

func TestTheLargestAndSmallestNumbersKeepTheirOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		t.Run("int64", func(t *testing.T) {
			s.Flush(t)
			ordered(t, s, ints, ranked.Exact[entry[int64], int64], []int64{
				math.MinInt64, math.MinInt64 + 1, -(1<<53 + 1), -(1 << 53), -256, -255, -2, -1, 0, 1, 255, 256,
				1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<53 + 2, math.MaxInt64 - 1, math.MaxInt64,
			}, cmp.Compare[int64])
		})
		t.Run("uint64", func(t *testing.T) {
			s.Flush(t)
			ordered(t, s, uints, ranked.Exact[entry[uint64], uint64], []uint64{
				0, 1, 255, 256, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<63 - 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64,
			}, cmp.Compare[uint64])
		})
		t.Run("within 2^53", func(t *testing.T) {
			s.Flush(t)
			ordered(t, s, ints, ranked.New[entry[int64], int64], []int64{
				-(1 << 53), -(1<<53 - 1), -1000, -10, -9, -2, -1, 0, 1, 2, 9, 10, 1e15, 1<<53 - 1, 1 << 53,
			}, cmp.Compare[int64])
		})
	})
}

func TestFloatsKeepTheirOrderFromTheTiniestToInfinity(t *testing.T) {
	scores := []float64{
		math.Inf(-1), -math.MaxFloat64, -1e300, -1.1, -1, -5e-324, math.Copysign(0, -1), 0, 5e-324, 1e-323, 2.2250738585072014e-308,
		0.1, 0.1, 0.30000000000000004, 0.3, 1.1, 1.1000000000000003, 1e15, 1e21, 1 << 53, math.MaxFloat64, math.Inf(1),
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, mk := range map[string]func(string, func(entry[float64]) float64, ...ranked.Option) *ranked.Index[entry[float64], float64]{
			"new": ranked.New[entry[float64], float64], "exact": ranked.Exact[entry[float64], float64],
		} {
			t.Run(name, func(t *testing.T) {
				s.Flush(t)
				ordered(t, s, floats, mk, scores, cmp.Compare[float64]) // which holds -0 and 0 for equal, as ids then decide
			})
		}
	})
}

func TestTextsOfAnyBytesKeepTheirOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ordered(t, s, texts, ranked.Exact[entry[string], string], []string{
			"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "A", "B", "a", "a\x00", "a\x00\x01", "a\x00b", "a\x01", "aa", "ab",
			"a\n b", "é", "\xc3", "\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		}, strings.Compare)
	})
}

func TestTimesKeepTheirOrderByTheNanosecondOrTheUnit(t *testing.T) {
	nano := []time.Time{
		time.Unix(0, math.MinInt64), time.Date(1683, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999_999_998, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Unix(0, 0), time.Unix(0, 1), time.Unix(0, 2),
		time.Date(2026, 1, 1, 0, 0, 0, 1, time.FixedZone("", 5*3600)), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2256, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(0, math.MaxInt64),
	}
	micro := []time.Time{
		time.Date(1685, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999_998_000, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999_999_500, time.UTC),
		time.Unix(0, 0), time.Unix(0, 999), time.Unix(0, 1000), time.UnixMicro(1<<53 - 1), time.UnixMicro(1 << 53), time.UnixMicro(-(1 << 53)),
	}
	by := func(unit time.Duration) func(a, b time.Time) int {
		return func(a, b time.Time) int {
			floor := func(at time.Time) int64 {
				n := at.UnixNano() / int64(unit)
				if at.UnixNano()%int64(unit) < 0 {
					n--
				}
				return n
			}
			return cmp.Compare(floor(a), floor(b))
		}
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		t.Run("exact", func(t *testing.T) {
			s.Flush(t)
			ordered(t, s, times, ranked.Exact[entry[time.Time], time.Time], nano, time.Time.Compare)
		})
		t.Run("microsecond", func(t *testing.T) {
			s.Flush(t)
			ordered(t, s, times, ranked.New[entry[time.Time], time.Time], micro, by(time.Microsecond))
		})
		t.Run("minute", func(t *testing.T) {
			s.Flush(t)
			ordered(t, s, times, func(name string, f func(entry[time.Time]) time.Time, o ...ranked.Option) *ranked.Index[entry[time.Time], time.Time] {
				return ranked.New(name, f, append(o, ranked.Unit(time.Minute))...)
			}, micro, by(time.Minute))
		})
	})
}

func TestTheZeroTimeHasNoEntryAndTheRecordKeepsItsOwnPrecision(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[time.Time], ranked.Unit(time.Minute))
		nano := ranked.Exact("nano", score[time.Time])
		st := open(t, s, times, by, nano)
		when := time.Date(1969, 7, 20, 20, 17, 40, 123_456_789, time.UTC)
		st.put(entry[time.Time]{ID: "moon", Score: when}, entry[time.Time]{ID: "never"})
		p := st.page(by.Newest(5))
		require.True(t, p.Complete)
		require.Equal(t, []string{"moon"}, idsOf(p))
		require.True(t, when.Equal(p.Items[0].Record.Score))
		require.Equal(t, when.Truncate(time.Minute), p.Items[0].Score.Time(), "the score is by the minute")
		p = st.page(nano.Oldest(5))
		require.Equal(t, []string{"moon"}, idsOf(p))
		require.Equal(t, when, p.Items[0].Score.Time())
		st.put(entry[time.Time]{ID: "moon"})
		require.Empty(t, st.whole(by.Newest(5)), "an instant that was taken away leaves no entry")
		for _, cond := range []index.Cond[entry[time.Time]]{by.AtLeast(time.Time{}), nano.Below(time.Time{})} {
			_, err := st.Count(t.Context(), cond)
			require.ErrorIs(t, err, index.ErrInvalid)
		}
	})
}

// TestATrimComparesScoresThatAreWrittenWithAnExponent trims twice, so that the second floor is held against the first. The Lua of
// the embedded server does not read "5e-324" or "1e+300" by itself.
func TestATrimComparesScoresThatAreWrittenWithAnExponent(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, scores := range [][]float64{{1e300, 5e-324, -1e300}, {5e-324, 0, 1e300}, {math.Inf(-1), 1e21, -5e-324}} {
			s.Flush(t)
			by := ranked.New("rank", score[float64], ranked.Keep(1), ranked.Slack(0))
			st := open(t, s, floats, by)
			for n, f := range scores {
				st.put(entry[float64]{ID: fmt.Sprint("r", n), Score: f})
			}
			best := slices.Max(scores)
			require.Equal(t, []string{fmt.Sprint("r", slices.Index(scores, best))}, st.whole(by.Top(1)))
		}
	})
}
