package ranked_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
)

func TestARangeOfTimesHasItsEndsOpenOrClosedBelowTheSecond(t *testing.T) {
	karachi := time.FixedZone("", 5*3600)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("at", score[time.Time])
		st := open(t, s, times, by)
		for i := range 5 { // 12:00:00.0 to .4, half of them written under another zone
			when := noon.Add(time.Duration(i) * 100 * time.Millisecond)
			if i%2 == 1 {
				when = when.In(karachi)
			}
			st.put(entry[time.Time]{ID: fmt.Sprint(i), Score: when})
		}
		at := func(i int) time.Time { return noon.Add(time.Duration(i) * 100 * time.Millisecond).In(karachi) }
		for name, c := range map[string]struct {
			cond index.Cond[entry[time.Time]]
			want []string
		}{
			"at least":               {by.AtLeast(at(2)), []string{"4", "3", "2"}},
			"above":                  {by.Above(at(2)), []string{"4", "3"}},
			"at most":                {by.AtMost(at(2)), []string{"2", "1", "0"}},
			"below":                  {by.Below(at(2)), []string{"1", "0"}},
			"between":                {by.Between(at(1), at(3)), []string{"3", "2", "1"}},
			"between two entries":    {by.Between(at(1).Add(time.Microsecond), at(2).Add(-time.Microsecond)), []string{}},
			"a microsecond more":     {by.AtLeast(at(2).Add(time.Microsecond)), []string{"4", "3"}},
			"a microsecond less":     {by.AtLeast(at(2).Add(-time.Microsecond)), []string{"4", "3", "2"}},
			"within the microsecond": {by.AtLeast(at(2).Add(999 * time.Nanosecond)), []string{"4", "3", "2"}},
			"the wrong way round":    {by.Between(at(3), at(1)), []string{}},
		} {
			got, err := drain(st.IDs(t.Context(), c.cond))
			require.NoError(t, err)
			require.Equal(t, c.want, got, name)
			found, err := drain(st.Find(t.Context(), c.cond))
			require.NoError(t, err)
			require.Equal(t, c.want, recordIDs(found), name)
			n, err := st.Count(t.Context(), c.cond)
			require.NoError(t, err)
			require.EqualValues(t, len(c.want), n, name)
			exists, err := st.Exists(t.Context(), c.cond)
			require.NoError(t, err)
			require.Equal(t, len(c.want) > 0, exists, name)
		}
	})
}

func TestNegativeNumbersAreInTheirRangesAndOnTheirPages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by, exact := ranked.New("rank", score[int64], ranked.LowestFirst()), ranked.Exact("exact", score[int64], ranked.LowestFirst())
		st := open(t, s, ints, by, exact)
		var want []string
		for n := int64(-6); n <= 6; n++ {
			id := fmt.Sprintf("%02d", n+6)
			st.put(entry[int64]{ID: id, Score: n / 3}) // -2 -1 -1 -1 0 0 0 0 0 1 1 1 2
			want = append(want, id)
		}
		for _, ix := range []*ranked.Index[entry[int64], int64]{by, exact} {
			for size := 1; size <= 3; size++ {
				require.Equal(t, want, st.pages(ix.Bottom(size)))
			}
			negative, err := drain(st.IDs(t.Context(), ix.Below(0)))
			require.NoError(t, err)
			require.Equal(t, want[:4], negative, "from the end that the index keeps")
			require.Equal(t, want[4:9], st.whole(ix.Bottom(9), ix.AtLeast(0), ix.Below(1)))
		}
	})
}

func TestConditionsOnAnOrderCutTheWholeAndNotThePage(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64])
		in := ranked.Within(group[int64], ranked.New("in", score[int64]))
		st := open(t, s, ints, by, in)
		for i := range 30 {
			st.put(entry[int64]{ID: fmt.Sprintf("r%02d", i), Group: []string{"x", "y", "z"}[i%3], Score: int64(i)})
		}
		require.Equal(t, []string{"r12", "r11", "r10"}, st.whole(by.Top(3), by.AtMost(12)))
		require.Equal(t, []string{"r12", "r11", "r10"}, st.whole(by.Top(5), by.AtMost(12), by.AtLeast(3), by.Between(10, 20)), "the narrowest of each end")
		require.Equal(t, []string{"r11"}, st.whole(by.Top(5), by.Between(10, 12), by.Above(10), by.Below(12)))
		require.Empty(t, st.whole(by.Top(5), by.Above(12), by.Below(12)))
		p := st.page(by.Bottom(2), by.AtLeast(27))
		require.Equal(t, []string{"r27", "r28"}, idsOf(p))
		require.Equal(t, []string{"r29"}, st.whole(by.Bottom(2).After(p.Next), by.AtLeast(27)))
		y := in.Of("y")
		require.Equal(t, []string{"r13", "r10", "r07"}, st.whole(y.Top(3), y.Below(16)))
		found, err := drain(st.Find(t.Context(), y.Between(4, 10)))
		require.NoError(t, err)
		require.Equal(t, []string{"r10", "r07", "r04"}, recordIDs(found))
		n, err := st.Count(t.Context(), y.Above(10))
		require.NoError(t, err)
		require.EqualValues(t, 6, n)
		found, err = drain(st.Find(t.Context(), in.Of("z").Newest(2)))
		require.NoError(t, err)
		require.Equal(t, []string{"r29", "r26"}, recordIDs(found))
		require.Empty(t, st.whole(in.Of("nobody").Top(3)))
	})
}

func TestASequenceThatTrimmingCutEndsWithAnErrorAfterItsRecords(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64], ranked.Keep(3), ranked.Slack(0))
		st := open(t, s, ints, by)
		for i := range 6 {
			st.put(entry[int64]{ID: fmt.Sprint(i), Score: int64(i)})
		}
		kept := []string{"5", "4", "3"}
		short := func(what string, want []string, c index.Clause[entry[int64]]) {
			t.Helper()
			found, err := drain(st.Find(t.Context(), c))
			require.ErrorIs(t, err, index.ErrIncomplete, what)
			about(t, err, "", "rank")
			require.Equal(t, want, recordIDs(found), what)
			got, err := drain(st.IDs(t.Context(), c))
			require.ErrorIs(t, err, index.ErrIncomplete, what)
			require.Equal(t, want, got, what)
			if cond, ok := c.(index.Condition[entry[int64]]); ok {
				n, err := st.Count(t.Context(), cond)
				require.ErrorIs(t, err, index.ErrIncomplete, what)
				require.EqualValues(t, len(want), n, what)
			}
		}
		sure := func(what string, want []string, c index.Clause[entry[int64]]) {
			t.Helper()
			found, err := drain(st.Find(t.Context(), c))
			require.NoError(t, err, what)
			require.Equal(t, want, recordIDs(found), what)
			if cond, ok := c.(index.Condition[entry[int64]]); ok {
				n, err := st.Count(t.Context(), cond)
				require.NoError(t, err, what)
				require.EqualValues(t, len(want), n, what)
			}
		}
		short("into what was trimmed", kept, by.AtLeast(0))
		short("to the score that was trimmed", kept, by.AtLeast(2))
		sure("beyond what was trimmed", kept, by.Above(2))
		sure("above what was trimmed", kept, by.AtLeast(3))
		short("below", []string{"3"}, by.AtMost(3))
		sure("from the kept end", kept, by.Top(3))
		short("from the other end", kept[2:], by.Bottom(1))
		// A range that nothing trimmed reaches is whole from either end.
		require.Equal(t, []string{"3", "4"}, st.whole(by.Bottom(2), by.AtLeast(3)))
		require.False(t, st.page(by.Bottom(2), by.AtLeast(2)).Complete)
	})
}

func TestAPageIsFilledUpWhereRecordsHaveVanishedOrMoved(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64])
		in := ranked.Within(group[int64], ranked.New("in", score[int64]))
		var vanished, stale atomic.Int64
		st := openEntity(t, s, declare(ints, index.Forever, by, in), index.OpenOptions{Events: index.Events{
			Vanished: func(string, string) { vanished.Add(1) }, Stale: func(string, string) { stale.Add(1) },
		}})
		var want []string
		for i := range 40 {
			id := fmt.Sprintf("r%02d", i)
			st.put(entry[int64]{ID: id, Group: "x", Score: int64(i)})
			switch i % 4 {
			case 0:
				require.NoError(t, st.rdb.Del(t.Context(), at+id+":v1").Err())
			case 1: // written by something that knows of no index
				moved, err := codec(ints).Encode(entry[int64]{ID: id, Group: "y", Score: int64(i)})
				require.NoError(t, err)
				require.NoError(t, st.rdb.Set(t.Context(), at+id+":v1", moved, 0).Err())
			default:
				want = append(want, id)
			}
		}
		x := in.Of("x")
		for _, size := range []int{1, 2, 3, 7, 20} {
			o, got := x.Bottom(size), []string{}
			for {
				require.LessOrEqual(t, len(got), len(want), "the pages do not end")
				p := st.page(o)
				got = append(got, idsOf(p)...)
				if p.Next == "" {
					break
				}
				require.Len(t, p.Items, size, "a page before the last one is full")
				o = o.After(p.Next)
			}
			require.Equal(t, want, got, "pages of %d", size)
		}
		slices.Reverse(want)
		found, err := drain(st.Find(t.Context(), x.AtLeast(0)))
		require.NoError(t, err)
		require.Equal(t, want, recordIDs(found))
		require.Positive(t, vanished.Load())
		require.Positive(t, stale.Load())
		require.Len(t, st.page(by.Top(3)).Items, 3)
	})
}

func TestAnExpiredRecordIsOnNoPageAndInNoCount(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		if s.Mini != nil {
			s.Mini.ClockTTL(true)
			s.Mini.SetTime(time.Now())
		}
		by, exact := ranked.New("rank", score[int64]), ranked.Exact("exact", score[int64])
		st := openEntity(t, s, declare(ints, time.Hour, by, exact))
		want := []string{}
		for i := range 30 {
			id := fmt.Sprintf("r%02d", i)
			if i%3 > 0 {
				want = append(want, id)
				st.put(entry[int64]{ID: id, Score: int64(i)})
				continue
			}
			require.NoError(t, st.Put(t.Context(), entry[int64]{ID: id, Score: int64(i)}, index.Lives(5*time.Millisecond)))
		}
		if s.Mini != nil {
			s.Mini.SetTime(time.Now().Add(time.Second))
		}
		gone := func() bool { return st.rdb.Exists(t.Context(), at+"r27:v1").Val() == 0 }
		require.Eventually(t, gone, 5*time.Second, 2*time.Millisecond)
		for _, ix := range []*ranked.Index[entry[int64], int64]{by, exact} {
			require.Equal(t, want, st.whole(ix.Bottom(30)))
			for size := 1; size <= 3; size++ {
				require.Equal(t, want, st.pages(ix.Bottom(size)))
			}
			n, err := st.Count(t.Context(), ix.AtLeast(0))
			require.NoError(t, err)
			require.EqualValues(t, len(want), n)
			n, err = st.Count(t.Context(), ix.Between(3, 7)) // 4 5 7
			require.NoError(t, err)
			require.EqualValues(t, 3, n)
			got, err := drain(st.IDs(t.Context(), ix.Below(7))) // from the kept end
			require.NoError(t, err)
			require.Equal(t, []string{"r05", "r04", "r02", "r01"}, got)
		}
	})
}
