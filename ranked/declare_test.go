package ranked_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/ranked"
)

// same makes an index of records that are their own scores.
func same[S any](name string, o ...ranked.Option) *ranked.Index[S, S] {
	return ranked.New(name, func(s S) S { return s }, o...)
}

func exactly[S any](name string, o ...ranked.Option) *ranked.Index[S, S] {
	return ranked.Exact(name, func(s S) S { return s }, o...)
}

func declaredAs[T any](ix index.Index[T]) *index.Entity[T] {
	return index.Define("acme:arcade", "score", index.Options[T]{
		ID: func(T) string { return "1" }, Version: 1, Lifetime: index.Forever, Indexes: []index.Index[T]{ix},
	})
}

func TestAWrongDeclarationIsReportedWithTheNameOfItsIndex(t *testing.T) {
	rdb := redistest.Mini(t).Client(t)
	type point struct{ X, Y int }
	check := func(name string, e interface{ Err() error }, open func() error, want ...string) {
		t.Helper()
		for _, err := range []error{e.Err(), open()} {
			require.ErrorIs(t, err, index.ErrInvalid, name)
			about(t, err, "", "rank")
			for _, w := range want {
				require.ErrorContains(t, err, w, name)
			}
		}
	}
	wrong(t, check, rdb, "no record kept", same[int64]("rank", ranked.Keep(0)), "Keep(0)")
	wrong(t, check, rdb, "fewer than none", same[int64]("rank", ranked.Keep(-3)), "Keep(-3)")
	wrong(t, check, rdb, "slack", same[int64]("rank", ranked.Keep(3), ranked.Slack(-1)), "Slack(-1)")
	wrong(t, check, rdb, "all at once", same[int64]("rank", ranked.Keep(0), ranked.Slack(-1), ranked.MaxAge(-1), ranked.Unit(3)), "Keep(0)", "Slack(-1)", "MaxAge", "Unit")
	wrong(t, check, rdb, "an age of numbers", same[int64]("rank", ranked.MaxAge(time.Hour)), "MaxAge")
	wrong(t, check, rdb, "an age of durations", same[time.Duration]("rank", ranked.MaxAge(time.Hour)), "MaxAge")
	wrong(t, check, rdb, "an age of exact times", exactly[time.Time]("rank", ranked.MaxAge(time.Hour)), "MaxAge")
	wrong(t, check, rdb, "no age", same[time.Time]("rank", ranked.MaxAge(0)), "MaxAge")
	wrong(t, check, rdb, "an age from the old end", same[time.Time]("rank", ranked.MaxAge(time.Hour), ranked.LowestFirst()), "LowestFirst")
	wrong(t, check, rdb, "a unit of numbers", same[float64]("rank", ranked.Unit(time.Second)), "Unit")
	wrong(t, check, rdb, "a default unit of numbers", same[float64]("rank", ranked.Unit(time.Microsecond)), "Unit")
	wrong(t, check, rdb, "a unit of exact times", exactly[time.Time]("rank", ranked.Unit(time.Second)), "Unit")
	wrong(t, check, rdb, "half a microsecond", same[time.Time]("rank", ranked.Unit(1500)), "Unit(1.5µs)")
	wrong(t, check, rdb, "no unit", same[time.Time]("rank", ranked.Unit(0)), "Unit")
	wrong(t, check, rdb, "uint64", same[uint64]("rank"), "ranked.Exact")
	wrong(t, check, rdb, "uint", same[uint]("rank"), "ranked.Exact")
	wrong(t, check, rdb, "text", same[string]("rank"), "ranked.Exact")
	wrong(t, check, rdb, "bool", same[bool]("rank"), "bool")
	wrong(t, check, rdb, "struct", exactly[point]("rank"), "point")
	wrong(t, check, rdb, "pointer", exactly[*int64]("rank"), "*int64")
	wrong(t, check, rdb, "interface", exactly[any]("rank"), "interface")
	wrong(t, check, rdb, "no function", ranked.New[int64, int64]("rank", nil), "no function")
	wrong(t, check, rdb, "no exact function", ranked.Exact[int64, int64]("rank", nil), "no function")
	wrong(t, check, rdb, "no sparse function", ranked.Sparse[int64, int64]("rank", nil), "no function")
	wrong(t, check, rdb, "no group", ranked.Within[int64, string](nil, same[int64]("rank")), "Within")
	wrong(t, check, rdb, "a wrong group", ranked.Within(func(n int64) *int64 { return &n }, same[int64]("rank")), "*int64")
	wrong(t, check, rdb, "a wrong index in groups", ranked.Within(func(int64) string { return "" }, same[int64]("rank", ranked.Keep(0))), "Keep(0)")

	// Without an index there is no name either.
	none := declaredAs[int64](ranked.Within[int64, string, int64](func(int64) string { return "" }, nil))
	require.ErrorContains(t, none.Err(), "Within has no index")
	require.ErrorIs(t, none.Err(), index.ErrInvalid)
}

func wrong[T any, D index.Index[T]](
	t *testing.T, check func(string, interface{ Err() error }, func() error, ...string), rdb redis.UniversalClient, name string, ix D, want ...string,
) {
	t.Helper()
	e := declaredAs[T](ix)
	check(name, e, func() error { _, err := index.Open(t.Context(), rdb, e); return err }, want...)
}

// A package variable may hold a query of an index that Open is going to refuse.
func TestQueriesOfAWrongDeclarationDoNotPanic(t *testing.T) {
	require.NotPanics(t, func() {
		_ = same[uint64]("rank").AtLeast(1)
		_ = exactly[[2]int]("rank").Between([2]int{}, [2]int{})
		_ = same[uint64]("rank").Top(1)
		_ = same[bool]("rank").DecodeScore("1").String()
		in := ranked.Within[int64, string, int64](func(int64) string { return "" }, nil)
		_ = in.Of("x").Newest(3)
		_ = in.Of("x").Below(3)
		_ = in.DecodeScore("x")
		_, _ = in.Entries(1)
		_ = ranked.Within(func(n int64) *int64 { return &n }, same[int64]("rank")).Of(nil).Top(1)
		_, _ = ranked.New[int64, int64]("rank", nil).Entries(1)
		_, ok := ranked.Sparse[int64, int64]("rank", nil).Score(1)
		require.False(t, ok)
		_ = same[int64]("rank", ranked.Option{})
	})
}

// The text is a promise: another one is another generation, and every index is built anew.
func TestTheDefinitionOfARankedIndexKeepsItsText(t *testing.T) {
	in := func(ix *ranked.Index[int64, int64]) index.Definition {
		return ranked.Within(func(int64) string { return "" }, ix).Definition()
	}
	for want, d := range map[string]index.Definition{
		"a ranked number":                          same[int64]("a").Definition(),
		"b ranked number":                          same[float32]("b", ranked.Keep(10), ranked.Slack(2)).Definition(),
		"c ranked time":                            same[time.Time]("c", ranked.Unit(time.Microsecond)).Definition(),
		"d ranked time unit=1s":                    same[time.Time]("d", ranked.Unit(time.Second)).Definition(),
		"e ranked time max-age=24h0m0s":            same[time.Time]("e", ranked.MaxAge(24*time.Hour)).Definition(),
		"f ranked number lowest-first":             same[uint32]("f", ranked.LowestFirst()).Definition(),
		"g ranked number sparse":                   ranked.Sparse("g", func(n int64) (int64, bool) { return n, true }).Definition(),
		"h ranked exact int":                       exactly[time.Duration]("h").Definition(),
		"i ranked exact uint":                      exactly[uint64]("i").Definition(),
		"j ranked exact float":                     exactly[float64]("j").Definition(),
		"k ranked exact text":                      exactly[string]("k").Definition(),
		"l ranked exact time":                      exactly[time.Time]("l").Definition(),
		"m ranked exact int sparse":                ranked.SparseExact("m", func(n int64) (int64, bool) { return n, true }).Definition(),
		"n ranked number within=text revision=2":   in(same[int64]("n", ranked.Revision(2), ranked.Keep(1))),
		"o ranked number within=text lowest-first": in(same[int64]("o", ranked.LowestFirst())),
	} {
		require.NoError(t, d.Err, want)
		require.Equal(t, want, d.Canonical())
	}
}

// reopened writes six records under one release and opens the next one.
func reopened(t *testing.T, s *redistest.Server, before, after index.Index[entry[int64]]) store[int64] {
	t.Helper()
	s.Flush(t)
	old := open(t, s, ints, before)
	for i := range 6 {
		old.put(entry[int64]{ID: fmt.Sprint(i), Group: "x", Score: int64(i)})
	}
	return open(t, s, ints, after)
}

func TestKeepChangesBetweenReleasesWithoutARebuild(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		keep := func(o ...ranked.Option) *ranked.Index[entry[int64], int64] {
			return ranked.New("rank", score[int64], append(o, ranked.Slack(0))...)
		}
		more := keep(ranked.Keep(5))
		st := reopened(t, s, keep(ranked.Keep(3)), more)
		require.Equal(t, []string{"5", "4", "3"}, st.whole(more.Top(3)), "what the old release kept")
		p := st.page(more.Top(5))
		require.Equal(t, []string{"5", "4", "3"}, idsOf(p))
		require.False(t, p.Complete, "what the old release trimmed is missed, and said to be")
		for i := range 3 {
			st.put(entry[int64]{ID: fmt.Sprint(i), Score: int64(i)}) // written again, records come back
		}
		require.Equal(t, []string{"5", "4", "3", "2"}, st.whole(more.Top(4)), "down to what was trimmed last")

		all := keep()
		st = reopened(t, s, keep(ranked.Keep(3)), all)
		require.False(t, st.page(all.Top(4)).Complete)
		require.Equal(t, []string{"5", "4", "3"}, st.whole(all.Top(3)))

		fewer := keep(ranked.Keep(2))
		st = reopened(t, s, keep(), fewer)
		require.Equal(t, []string{"5", "4"}, st.whole(fewer.Top(2)))
		require.Equal(t, 6, st.size("~rank.1"), "until the next write")
		require.Equal(t, []string{"0", "1"}, st.whole(fewer.Bottom(2)))
		st.put(entry[int64]{ID: "9", Score: 9})
		require.Equal(t, 2, st.size("~rank.1"))
		require.Equal(t, []string{"9", "5"}, st.whole(fewer.Top(2)))
		require.False(t, st.page(fewer.Bottom(2)).Complete)
	})
}

func TestAnotherOrderIsAnotherGenerationAndNotReadyUntilBuilt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		before := ranked.New("rank", score[int64])
		for name, after := range map[string]index.Index[entry[int64]]{
			"direction": ranked.New("rank", score[int64], ranked.LowestFirst()),
			"encoding":  ranked.Exact("rank", score[int64]),
			"grouping":  ranked.Within(group[int64], ranked.New("rank", score[int64])),
			"revision":  ranked.New("rank", score[int64], ranked.Revision(1)),
			"unit":      ranked.New("rank", func(e entry[int64]) time.Time { return time.Unix(e.Score, 0) }, ranked.Unit(time.Minute)),
			"age":       ranked.New("rank", func(e entry[int64]) time.Time { return time.Unix(e.Score, 0) }, ranked.MaxAge(time.Hour)),
		} {
			st := reopened(t, s, before, after)
			var order index.Order[entry[int64]]
			switch ix := after.(type) {
			case *ranked.Index[entry[int64], int64]:
				order = ix.Top(1)
			case *ranked.Index[entry[int64], time.Time]:
				order = ix.Top(1)
			case *ranked.Grouped[entry[int64], string, int64]:
				order = ix.Of("x").Top(1)
			}
			_, err := st.Top(t.Context(), order)
			require.ErrorIs(t, err, index.ErrNotReady, "%s: never a short list", name)
			about(t, err, "", "rank")
			keys, err := st.EntryKeys(entry[int64]{ID: "1", Group: "x", Score: 1_700_000_000})
			require.NoError(t, err)
			require.Contains(t, keys[0], "~rank.2", name)
		}
	})
}

func TestAReleaseThatOnlyReadsKnowsTheOrderOfTheOneThatWrites(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64])
		st := open(t, s, ints, by)
		st.put(entry[int64]{ID: "1", Score: 1})
		rdb := s.Client(t)
		redistest.Checked(rdb, lua.Sources)
		reader, err := index.Open(t.Context(), rdb, declare(ints, index.Forever, by), index.OpenOptions{ReadOnly: true})
		require.NoError(t, err)
		p, err := reader.Top(t.Context(), by.Top(1))
		require.NoError(t, err)
		require.Equal(t, []string{"1"}, idsOf(p))
	})
}
