package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/internal/plan"
)

func TestTheNarrowestEndsOfTwoRangesAreLeft(t *testing.T) {
	edge := func(s string, open bool) *plan.Edge { return &plan.Edge{Score: s, Open: open} }
	wide := plan.Range{}
	low, lowOpen := plan.Range{Min: edge("9", false)}, plan.Range{Min: edge("9", true)}
	higher := plan.Range{Min: edge("10", false)}
	for _, c := range []struct{ a, b, want plan.Range }{
		{wide, low, low}, {low, lowOpen, lowOpen}, {low, higher, higher}, {lowOpen, higher, higher},
	} {
		require.Equal(t, c.want, c.a.Intersect(plan.Ranked, c.b))
		require.Equal(t, c.want, c.b.Intersect(plan.Ranked, c.a))
	}
	require.Equal(t, low, low.Intersect(plan.Lexical, higher), `as bytes "10" comes before "9"`)
	top, topOpen := plan.Range{Max: edge("-inf", false)}, plan.Range{Max: edge("-inf", true)}
	require.Equal(t, topOpen, top.Intersect(plan.Ranked, topOpen))
	require.Equal(t, plan.Range{Min: edge("9", false), Max: edge("-inf", false)}, low.Intersect(plan.Ranked, top))
}

// A member lies within the bounds exactly if its score lies within the range, whatever its id is.
func TestBoundsOfMembersHoldWhateverTheIDsAre(t *testing.T) {
	prefix := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0xfe, 0xff}), 2, 2).Draw(t, "prefix"))
	})
	id := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 0xff}), 1, 20).Draw(t, "id"))
	})
	rapid.Check(t, func(t *rapid.T) {
		var r plan.Range
		if rapid.Bool().Draw(t, "from") {
			r.Min = &plan.Edge{Score: prefix.Draw(t, "min"), Open: rapid.Bool().Draw(t, "min open")}
		}
		if rapid.Bool().Draw(t, "to") {
			r.Max = &plan.Edge{Score: prefix.Draw(t, "max"), Open: rapid.Bool().Draw(t, "max open")}
		}
		score := prefix.Draw(t, "score")
		lower, upper := r.Bounds(plan.Lexical)
		require.Equal(t, r.Contains(plan.Lexical, score), within(score+id.Draw(t, "id"), lower, upper), "%q to %q", lower, upper)
	})
}

// within reads bounds as ZLEXCOUNT does.
func within(member, lower, upper string) bool {
	above := map[byte]bool{'-': true, '+': false, '[': member >= lower[1:], '(': member > lower[1:]}[lower[0]]
	below := map[byte]bool{'+': true, '-': false, '[': member <= upper[1:], '(': member < upper[1:]}[upper[0]]
	return above && below
}

func TestBoundsOfScoresAreAsTheServerTakesThem(t *testing.T) {
	for _, c := range []struct {
		r            plan.Range
		lower, upper string
	}{
		{plan.Range{}, "-inf", "+inf"},
		{plan.Range{Min: &plan.Edge{Score: "5e-324"}, Max: &plan.Edge{Score: "7", Open: true}}, "5e-324", "(7"},
		{plan.Range{Min: &plan.Edge{Score: "-inf", Open: true}, Max: &plan.Edge{Score: "+inf"}}, "(-inf", "+inf"},
	} {
		lower, upper := c.r.Bounds(plan.Ranked)
		require.Equal(t, []string{c.lower, c.upper}, []string{lower, upper})
	}
}

func TestScoresCompareAsNumbersHoweverTheyAreWritten(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"0.1", "0.10000000000000001", 0},
		{"1e+20", "100000000000000000000", 0},
		{"inf", "+inf", 0},
		{"-inf", "-1e300", -1},
		{"9", "10", -1},
		{"-1", "-2", 1},
		{"5e-324", "0", 1},
		{"-0", "0", 0},
	} {
		require.Equal(t, c.want, plan.CompareScores(plan.Ranked, c.a, c.b), "%s and %s", c.a, c.b)
		require.Equal(t, -c.want, plan.CompareScores(plan.Ranked, c.b, c.a), "%s and %s", c.b, c.a)
	}
	require.Equal(t, 1, plan.CompareScores(plan.Lexical, "9", "10"))
}

func TestAMemberIsTakenApartIntoItsPrefixAndItsID(t *testing.T) {
	fixed := plan.Order{Kind: plan.Lexical, PrefixSize: 8}
	ended := plan.Order{Kind: plan.Lexical, PrefixSize: -1}
	for _, c := range []struct {
		order              plan.Order
		member, prefix, id string
	}{
		{plan.Order{Kind: plan.Ranked, PrefixSize: 8}, "0123456789", "", "0123456789"},
		{fixed, "01234567id", "01234567", "id"},
		{fixed, strings.Repeat("\xff", 8) + "\xff", strings.Repeat("\xff", 8), "\xff"},
		{fixed, "short", "short", ""},
		{ended, "a" + plan.Terminator + "id", "a" + plan.Terminator, "id"},
		{ended, plan.Terminator + plan.Terminator, plan.Terminator, plan.Terminator},
		{ended, "a\x00\xff\x01" + plan.Terminator + "\x00", "a\x00\xff\x01" + plan.Terminator, "\x00"},
	} {
		prefix, id := c.order.SplitMember(c.member)
		require.Equal(t, []string{c.prefix, c.id}, []string{prefix, id}, "%q", c.member)
	}
}

func TestTheKeptEndIsTheHighestUnlessTheLowestAreKept(t *testing.T) {
	require.True(t, plan.Order{Descending: true}.Kept())
	require.False(t, plan.Order{}.Kept())
	require.False(t, plan.Order{Descending: true, Bound: plan.Bound{Low: true}}.Kept())
	require.True(t, plan.Order{Bound: plan.Bound{Low: true}}.Kept())
}
