package ranked_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/ranked"
)

// rec is a record of the property tests. What its number means as a score is up to a setup.
type rec = entry[int64]

// setup is one declaration of a ranked index under test, with what a sort must know about it.
type setup struct {
	name        string
	keep, slack int
	low         bool
	age, unit   time.Duration
	values      []int64 // numbers of records: positions in a table, or microseconds beside a base
	times       bool
	level       func(n int64) int64 // the order of numbers; equal levels tie
	index       index.Index[rec]
	top, bottom func(group string, n int) index.Order[rec]
	least       func(group string, n int64) index.Cond[rec]
	below       func(group string, n int64) index.Cond[rec]
}

// noScore is the number of a record without an entry.
const noScore = math.MinInt64

type bound struct {
	keep, slack int
	low         bool
	age, unit   time.Duration
}

func (b bound) options() (o []ranked.Option) {
	if b.keep > 0 {
		o = append(o, ranked.Keep(b.keep), ranked.Slack(b.slack))
	}
	if b.low {
		o = append(o, ranked.LowestFirst())
	}
	if b.age > 0 {
		o = append(o, ranked.MaxAge(b.age))
	}
	if b.unit > 0 {
		o = append(o, ranked.Unit(b.unit))
	}
	return o
}

type maker[S any] func(string, func(rec) S, ...ranked.Option) *ranked.Index[rec, S]

// declared makes the setup of an index, within groups or over all records.
func declared[S any](name string, mk maker[S], score func(n int64) S, b bound, grouped bool) setup {
	s := setup{name: name, keep: b.keep, slack: b.slack, low: b.low, age: b.age, unit: max(b.unit, time.Microsecond)}
	by := mk("rank", func(r rec) S { return score(r.Score) }, b.options()...)
	if grouped {
		in := ranked.Within(group[int64], by)
		s.index = in
		s.top = func(g string, n int) index.Order[rec] { return in.Of(g).Top(n) }
		s.bottom = func(g string, n int) index.Order[rec] { return in.Of(g).Bottom(n) }
		s.least = func(g string, n int64) index.Cond[rec] { return in.Of(g).AtLeast(score(n)) }
		s.below = func(g string, n int64) index.Cond[rec] { return in.Of(g).Below(score(n)) }
		return s
	}
	s.index = by
	s.top = func(_ string, n int) index.Order[rec] { return by.Top(n) }
	s.bottom = func(_ string, n int) index.Order[rec] { return by.Bottom(n) }
	s.least = func(_ string, n int64) index.Cond[rec] { return by.AtLeast(score(n)) }
	s.below = func(_ string, n int64) index.Cond[rec] { return by.Below(score(n)) }
	return s
}

// tabled is a setup whose scores stand in a table, lowest first. ties are positions that are equal to the one before.
func tabled[S any](name string, mk maker[S], table []S, ties []int, b bound, grouped bool) setup {
	s := declared(name, mk, func(n int64) S { return table[n] }, b, grouped)
	levels := make([]int64, len(table))
	for i := range table {
		s.values = append(s.values, int64(i))
		if i > 0 {
			levels[i] = levels[i-1] + 1
			if slices.Contains(ties, i) {
				levels[i]--
			}
		}
	}
	s.level = func(n int64) int64 { return levels[n] }
	return s
}

// timed is a setup of instants beside a base, which the caller adds.
func timed(name string, offsets []time.Duration, b bound, grouped bool) setup {
	s := declared(name, ranked.New[rec, time.Time], func(n int64) time.Time {
		if n == noScore {
			return time.Time{}
		}
		return time.UnixMicro(n)
	}, b, grouped)
	s.times = true
	s.values = []int64{noScore}
	for _, d := range offsets {
		s.values = append(s.values, d.Microseconds())
	}
	s.level = func(n int64) int64 { return int64(math.Floor(float64(n) / float64(s.unit.Microseconds()))) }
	return s
}

var (
	numbers = []float64{math.Inf(-1), -1e300, -1.5, math.Copysign(0, -1), 0, 5e-324, 0.1, 1.1, 1 << 53, math.Inf(1)}
	wholes  = []int64{-(1 << 53), -7, -1, 0, 2, 10, 1<<53 - 1, 1 << 53}
	large   = []int64{math.MinInt64, -1, 0, 1<<53 + 1, 1<<53 + 2, math.MaxInt64 - 1, math.MaxInt64}
	words   = []string{"", "\x00", "\x00\x01", "B", "a", "a\x00", "a\x01", "aa", "é", "\xff"}
)

// setups are what the property tests try. The names of a setup and of its place in the list do not matter.
func setups(grouped bool) []setup {
	hour := time.Hour
	wide := []time.Duration{-2 * hour, -61 * time.Minute, -30 * time.Minute, -10 * time.Minute, -10*time.Minute + 400*time.Millisecond, 0, time.Microsecond, hour}
	return []setup{
		tabled("whole, 3 highest", ranked.New[rec, int64], wholes, nil, bound{keep: 3}, grouped),
		tabled("whole, 1 lowest", ranked.New[rec, int64], wholes, nil, bound{keep: 1, low: true}, grouped),
		tabled("whole, 4 highest, slack 3", ranked.New[rec, int64], wholes, nil, bound{keep: 4, slack: 3}, grouped),
		tabled("whole, all", ranked.New[rec, int64], wholes, nil, bound{}, grouped),
		tabled("float, 2 highest, slack 1", ranked.New[rec, float64], numbers, []int{4}, bound{keep: 2, slack: 1}, grouped),
		tabled("float, 3 lowest, slack 4", ranked.New[rec, float64], numbers, []int{4}, bound{keep: 3, slack: 4, low: true}, grouped),
		tabled("exact whole, 3 highest, slack 1", ranked.Exact[rec, int64], large, nil, bound{keep: 3, slack: 1}, grouped),
		tabled("exact float, 3 lowest", ranked.Exact[rec, float64], numbers, []int{4}, bound{keep: 3, low: true}, grouped),
		tabled("exact text, 2 lowest", ranked.Exact[rec, string], words, nil, bound{keep: 2, low: true}, grouped),
		tabled("exact text, 3 highest, slack 3", ranked.Exact[rec, string], words, nil, bound{keep: 3, slack: 3}, grouped),
		timed("second, 3 highest, slack 1", wide, bound{keep: 3, slack: 1, unit: time.Second}, grouped),
		timed("within the hour, 2 highest", wide, bound{keep: 2, age: hour}, grouped),
		timed("within the hour, all", wide, bound{age: hour}, grouped),
	}
}

// member reports whether a record has a place in the order at an instant.
func (s setup) member(r rec, now time.Time) bool {
	if r.Score == noScore {
		return false
	}
	if s.age == 0 {
		return true
	}
	return s.level(r.Score) >= s.level(now.Add(-s.age).UnixMicro())
}

// ask is one question to an index, and what the answer is held against.
type ask struct {
	descending  bool
	limit       int
	least       *int64
	below       *int64
	after       string // id of the record after which the page begins, "" at the start
	afterNumber int64
}

func (a ask) String() string {
	text := fmt.Sprintf("lowest %d", a.limit)
	if a.descending {
		text = fmt.Sprintf("highest %d", a.limit)
	}
	if a.least != nil {
		text += fmt.Sprintf(", at least %d", *a.least)
	}
	if a.below != nil {
		text += fmt.Sprintf(", below %d", *a.below)
	}
	if a.after != "" {
		text += fmt.Sprintf(", after %q (%d)", a.after, a.afterNumber)
	}
	return text
}

// sorted is the answer by brute force: the live records of a group in order, cut to the question.
func (s setup) sorted(live map[string]rec, now time.Time, a ask) []string {
	var found []rec
	compare := func(x, y rec) int {
		c := cmp.Or(cmp.Compare(s.level(x.Score), s.level(y.Score)), strings.Compare(x.ID, y.ID))
		if a.descending {
			return -c
		}
		return c
	}
	for _, r := range live {
		switch {
		case !s.member(r, now),
			a.least != nil && s.level(r.Score) < s.level(*a.least),
			a.below != nil && s.level(r.Score) >= s.level(*a.below),
			a.after != "" && compare(r, rec{ID: a.after, Score: a.afterNumber}) <= 0:
			continue
		}
		found = append(found, r)
	}
	slices.SortFunc(found, compare)
	out := make([]string, 0, a.limit)
	for _, r := range found[:min(a.limit, len(found))] {
		out = append(out, r.ID)
	}
	return out
}

// order is a question as a collection takes it.
func (s setup) order(group string, a ask) (index.Order[rec], []index.Condition[rec]) {
	o := s.bottom(group, a.limit)
	if a.descending {
		o = s.top(group, a.limit)
	}
	var conditions []index.Condition[rec]
	if a.least != nil {
		conditions = append(conditions, s.least(group, *a.least))
	}
	if a.below != nil {
		conditions = append(conditions, s.below(group, *a.below))
	}
	return o, conditions
}

// limit is the largest page that the setup gives.
func (s setup) limit() int {
	if s.keep > 0 {
		return s.keep
	}
	return 5
}
