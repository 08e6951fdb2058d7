package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/quakes"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

const rankedQuakes = quakeSchema + `  recent: {ranked: time, keep: 1000}
  strongest: {ranked: mag, keep: 100, within: net}
  due: {ranked: time, lowest_first: true, keep: 5}
`

// pageOf is what top --json gives.
type pageOf struct {
	Items []struct {
		ID     string
		Score  json.Number
		Record json.RawMessage
	}
	Complete bool
	Next     string
}

func (p pageOf) ids() (out []string) {
	for _, item := range p.Items {
		out = append(out, item.ID)
	}
	return out
}

// top runs top --json.
func (c *tool) top(args ...string) pageOf {
	c.t.Helper()
	var p pageOf
	out := c.fine(append([]string{"top", "--json"}, args...)...)
	require.Equal(c.t, 0, strings.Count(out, "\n"), "one object")
	require.NoError(c.t, json.Unmarshal([]byte(out), &p))
	return p
}

// shaken is what the tests read of an earthquake.
type shaken struct {
	ID, Net string
	Mag     json.Number
	Time    int64
}

// sortedQuakes are the earthquakes by a comparison, ties by id, highest first.
func sortedQuakes(t *testing.T, keep func(shaken) bool, score func(shaken) float64) []string {
	t.Helper()
	var all []shaken
	for line := range quakes.Lines() {
		var q shaken
		require.NoError(t, json.Unmarshal(line, &q))
		if keep(q) {
			all = append(all, q)
		}
	}
	slices.SortFunc(all, func(a, b shaken) int {
		switch x, y := score(a), score(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(b.ID, a.ID)
	})
	ids := make([]string, len(all))
	for i, q := range all {
		ids[i] = q.ID
	}
	return ids
}

func magnitude(t *testing.T) func(shaken) float64 {
	return func(q shaken) float64 {
		f, err := q.Mag.Float64()
		require.NoError(t, err)
		return f
	}
}

func TestTheMostRecentAndTheStrongestAreThoseOfASort(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, rankedQuakes)
		c.fine("load", quakeFile(t, same))

		newest := c.top("recent", "-n", "3")
		require.Equal(t, []string{"ci37868143", "ci37868135", "ci37868127"}, newest.ids())
		require.Equal(t, json.Number("1517966773840"), newest.Items[0].Score)
		require.JSONEq(t, c.fine("get", "ci37868143"), string(newest.Items[0].Record))
		require.True(t, newest.Complete)

		recent := sortedQuakes(t, func(shaken) bool { return true }, func(q shaken) float64 { return float64(q.Time) })
		require.Len(t, c.top("recent").Items, 20, "the default page")
		require.Equal(t, recent[:1000], c.top("recent", "-n", "1000").ids())

		ak := sortedQuakes(t, func(q shaken) bool { return q.Net == "ak" }, magnitude(t))
		page := c.top("strongest", "-n", "100", "--within", "ak")
		require.Equal(t, ak[:100], page.ids())
		require.True(t, page.Complete)

		slices.Reverse(recent)
		require.Equal(t, recent[:5], c.top("due").ids(), "no more than the index keeps, from the end that it keeps")
	})
}

func TestACursorSeesEveryRecordOnceAndOnlyItsOwnQuery(t *testing.T) {
	c := newTool(t, redistest.Mini(t), rankedQuakes)
	c.fine("load", quakeFile(t, same))
	var got []string
	after := []string{}
	var cursors []string
	for {
		p := c.top(append([]string{"recent", "-n", "300"}, after...)...)
		got = append(got, p.ids()...)
		if p.Next == "" {
			break
		}
		cursors = append(cursors, p.Next)
		after = []string{"--after", p.Next}
	}
	require.Equal(t, sortedQuakes(t, func(shaken) bool { return true }, func(q shaken) float64 { return float64(q.Time) })[:len(got)], got)
	require.GreaterOrEqual(t, len(got), 1000)

	cursor := cursors[0]
	for name, args := range map[string][]string{
		"cut":            {"recent", "--after", cursor[:len(cursor)-3]},
		"altered":        {"recent", "--after", "A" + cursor[1:]},
		"no cursor":      {"recent", "--after", "!"},
		"another index":  {"due", "--after", cursor},
		"the other end":  {"recent", "--lowest", "--after", cursor},
		"of another one": {"strongest", "--within", "ak", "--after", cursor},
	} {
		a := c.refused(2, append([]string{"top"}, args...), "not a cursor of this query")
		require.Empty(t, a.out, name)
	}
	require.NotEmpty(t, c.top("recent", "-n", "2", "--after", cursor).Items, "another page size is the same query")
}

func TestAPageThatMayMissSomethingSaysSo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, rankSchema("{ranked: v, keep: 5, slack: 0}"))
		for i := range 10 {
			c.fineInput(fmt.Sprintf(`{"id":"r%d","v":%d}`, i, i), "put")
		}
		require.True(t, c.top("x", "-n", "5").Complete)
		require.False(t, c.top("x", "--lowest", "-n", "3").Complete, "the end that is not kept")
		c.fine("delete", "r9", "r8")
		p := c.top("x", "-n", "5")
		require.Equal(t, []string{"r7", "r6", "r5"}, p.ids())
		require.False(t, p.Complete)
		require.True(t, c.top("x", "-n", "3").Complete)

		a := c.run("top", "x", "--ids")
		require.Equal(t, answer{0, "r7\nr6\nr5\n", "warning: " + incompletePage + "\n"}, a)
		require.Contains(t, c.fine("top", "x"), "incomplete: the index has trimmed or lost records")

		require.Equal(t, 0, c.run("repair").code)
		require.True(t, c.top("x", "-n", "5").Complete, "repair refills")
		require.Equal(t, []string{"r7", "r6", "r5", "r4", "r3"}, c.top("x").ids())
	})
}

func TestAPageForPeopleIsATable(t *testing.T) {
	c := newTool(t, redistest.Mini(t), rankSchema("{ranked: v, keep: 10}"))
	c.fineInput(`{"id":"b","v":2.5}`+"\n"+`{"id":"a","v":10}`+"\n"+`{"id":"c","v":-1,"text":"`+strings.Repeat("x", 200)+`"}`, "load", "-")
	lines := strings.Split(c.fine("top", "x"), "\n")
	require.Len(t, lines, 5)
	require.Equal(t, `   id  score  record`, lines[0])
	require.Equal(t, `1  a      10  {"id":"a","v":10}`, lines[2])
	require.Equal(t, `2  b     2.5  {"id":"b","v":2.5}`, lines[3])
	require.True(t, strings.HasPrefix(lines[4], `3  c      -1  {"id":"c","v":-1,"text":"xxx`) && strings.HasSuffix(lines[4], "…"), lines[4])
	require.LessOrEqual(t, len([]rune(lines[4])), plainWidth)

	out := c.fine("top", "x", "-n", "2")
	require.Regexp(t, `\nmore follow: --after [A-Za-z0-9_-]+$`, out)
	a := c.run("top", "x", "--lowest", "-n", "2", "--ids")
	require.Equal(t, "c\nb\n", a.out, "an id a line")
	require.Regexp(t, `^note: more follow: --after \S+\n$`, a.err)
	require.Equal(t, "no records", newEmpty(t).fine("top", "x"))

	c.terminal = true
	c.fineInput(`{"id":"\u001b[31m","v":99}`, "put")
	require.NotContains(t, c.run("top", "x").out, "\x1b[31m", "an id steers the terminal")
}

// newEmpty is a tool over an empty entity type with the ranked index x.
func newEmpty(t *testing.T) *tool {
	t.Helper()
	c := newTool(t, redistest.Mini(t), rankSchema("{ranked: v, keep: 10}"))
	c.fineInput(`{"id":"a","v":1}`, "put")
	c.fine("delete", "a")
	return c
}

func TestIdsAndRecordsOfAnyKindComeOutAsJSON(t *testing.T) {
	c := newTool(t, redistest.Mini(t), rankSchema("{ranked: v, keep: 10}"))
	c.fineInput(`{"id":"a\n","v":1}`, "put")
	require.JSONEq(t, `{"items":[{"id":"a\n","score":1,"record":{"id":"a\n","v":1}}],"complete":true,"next":""}`, c.fine("top", "x", "--json"))
	require.JSONEq(t, `{"items":[{"id":"a\n","score":1}],"complete":true,"next":""}`, c.fine("top", "x", "--json", "--ids"))
	require.JSONEq(t, `{"items":[],"complete":true,"next":""}`, newEmpty(t).fine("top", "x", "--json"))
}

func TestWhatTopCannotAnswerIsWrongUsage(t *testing.T) {
	c := newTool(t, redistest.Mini(t), rankedQuakes)
	c.fine("load", quakeFile(t, same))
	c.refused(2, []string{"top", "status"}, "top usgs:feed:quake (index status): lockstep: not supported: a membership index holds no order")
	c.refused(2, []string{"top", "recent", "-n", "1001"}, "(index recent): lockstep: invalid: a page of 1001: the index keeps 1000")
	c.refused(2, []string{"top", "recent", "--within", "ak"}, "(index recent): lockstep: invalid: the index has no groups")
	c.refused(2, []string{"top", "strongest"}, "(index strongest): lockstep: invalid: the index ranks within groups: name one")
	c.refused(2, []string{"find", "recent=5"}, "a ranked index answers for an order, not for a value")
	c.refused(2, []string{"count", "recent=5"}, "a ranked index answers for an order, not for a value")
	require.Equal(t, "no records", c.fine("top", "strongest", "--within", "nowhere"))

	o, err := c.opened().TopEncoded(t.Context(), index.TopRequest{Index: "status", N: 3})
	require.ErrorIs(t, err, index.ErrUnsupported)
	require.Empty(t, o.Items)
	_, err = c.opened().TopEncoded(t.Context(), index.TopRequest{Index: "none", N: 3})
	require.ErrorIs(t, err, index.ErrInvalid)
	_, err = c.opened().TopEncoded(t.Context(), index.TopRequest{Index: "recent", N: 0})
	require.ErrorIs(t, err, index.ErrInvalid)
	_, err = c.opened().TopEncoded(t.Context(), index.TopRequest{Index: "recent", N: 3, After: "x"})
	require.ErrorIs(t, err, index.ErrCursor)
}
