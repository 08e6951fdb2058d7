package cli

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// rows are the lines of a table of the demonstration: the first column, and the numbers of the others.
func rows(t *testing.T, out, header string, lines int) map[string][]int {
	t.Helper()
	_, after, found := strings.Cut(out, header)
	require.True(t, found, "no table %q in\n%s", header, out)
	after = after[strings.Index(after, "\n")+1:]
	got := map[string][]int{}
	for _, line := range strings.Split(after, "\n")[1 : 1+lines] { // below the rule
		m := regexp.MustCompile(`^  (\S.*?)((?:\s{2,}\d+)+)\s*$`).FindStringSubmatch(line)
		require.NotNil(t, m, line)
		for text := range strings.FieldsSeq(m[2]) {
			n, err := strconv.Atoi(text)
			require.NoError(t, err)
			got[m[1]] = append(got[m[1]], n)
		}
	}
	return got
}

func TestTheDemonstrationShowsWhatItSaysAndLeavesNoKeyBehind(t *testing.T) {
	show := func(t *testing.T, out string) {
		t.Helper()
		for _, want := range []string{
			`loaded 1707 records in `, `count status=automatic\s+493\n`, `count status=reviewed\s+1214\n`, `count net=ci\s+386\n`,
			` 1  ci37868143  2018-02-07 01:26:13 .*\n\s+2  ci37868135 .*\n\s+3  ci37868127 `,
			`count status=automatic\s+492\n`, `count status=reviewed\s+1215\n`,
			`GET lockstep:demo-[0-9a-f]{8}:quake:\{quake\}:ci37868143:v1\n`, `SISMEMBER \S+ ci37868143\n  \(integer\) 1\n`,
			`index status\s+set\s+SCARD\s+\d+\s+lockstep:demo-`, `WITHSCORES\n  1\) "ci37868143"\n  2\) "1517966773840000"\n`,
			`none left under lockstep:demo-`,
		} {
			require.Regexp(t, want, out)
		}
		require.NotContains(t, out, "\x1b", "coloured without a terminal")
		require.NotContains(t, out, incompletePage)

		// The strongest of the network are those of a sort, and change with the update.
		ak := sortedQuakes(t, func(q shaken) bool { return q.Net == shownNetwork }, magnitude(t))
		strongest := regexp.MustCompile(`top strongest(?:.*\n){3}((?:   ?.*\n){3})`).FindAllStringSubmatch(out, -1)
		require.Len(t, strongest, 2)
		for i, ids := range [][]string{ak[:3], {"ak18384036", ak[0], ak[1]}} {
			lines := strings.Split(strongest[i][1], "\n")
			for j, id := range ids {
				require.Contains(t, lines[j], id)
			}
		}

		race := rows(t, out, "each write is", 4) // writes/s, killed, missing, stale, orphan, wrong score, ids in two sets
		sum := func(name string) (n int) {
			for _, column := range race[name][2:] {
				n += column
			}
			return n
		}
		require.Positive(t, sum("GET, SREM, SADD, ZADD, SET"), "writers on the same ids did no damage by hand")
		require.Zero(t, sum("Lockstep: Put, Delete"))
		require.Zero(t, sum("WATCH, GET, MULTI, again if it failed"))
		for name, columns := range race {
			require.Positive(t, columns[0], name)
			require.Positive(t, columns[1], "nobody was killed: %s", name)
		}

		incident := rows(t, out, "entries    planned", 4) // planned, found, of those planned, fixed, found again
		require.Len(t, incident, 4)
		for kind, n := range incident {
			require.Positive(t, n[0], kind)
			require.Equal(t, []int{n[0], n[0], n[0], n[0], 0}, n, kind)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		c := &tool{t: t, env: map[string]string{envRedis: "redis://127.0.0.1:1"}, writes: 1000}
		show(t, c.fine("demo"))
	})
	for _, start := range []func(testing.TB, ...string) *redistest.Server{redistest.Redis, redistest.Cluster} {
		s := start(t)
		t.Run(s.Name, func(t *testing.T) {
			rdb := s.Client(t)
			require.NoError(t, rdb.Set(t.Context(), "lockstep:demo", "somebody else's", 0).Err())
			c := &tool{t: t, writes: 1000}
			show(t, c.fine("demo", "--redis", s.URL()))
			require.Equal(t, []string{"lockstep:demo"}, s.Keys(t))
		})
	}
}

func TestTheDemonstrationIsColouredOnATerminalOnly(t *testing.T) {
	c := &tool{t: t, env: map[string]string{}, terminal: true, writes: 100}
	a := c.run("demo")
	require.Equal(t, 0, a.code, a.err)
	require.Contains(t, a.out, "\x1b[1;36m")
	require.Contains(t, a.out, "\x1b[1;32m")
	require.Contains(t, a.err, "repair records", "no progress bar")
	for env, want := range map[string]string{"": "\x1b[1;36mx\x1b[0m", "1": "x"} {
		a := New()
		a.Getenv = func(string) string { return env }
		require.Equal(t, want, (&session{app: a, outTerminal: true}).bold("x"))
	}
}

// stopWriter ends a context at the first text that holds a mark, as Ctrl-C would at that moment.
type stopWriter struct {
	strings.Builder
	mark string
	stop context.CancelFunc
}

func (w *stopWriter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.mark) {
		w.stop()
	}
	return w.Builder.Write(p)
}

func TestAnInterruptedDemonstrationStillCleansUp(t *testing.T) {
	for _, start := range []func(testing.TB, ...string) *redistest.Server{redistest.Redis, redistest.Cluster} {
		s := start(t)
		for _, mark := range []string{"The race", "loaded 1707 records", "An incident"} {
			ctx, stop := context.WithCancel(t.Context())
			out := &stopWriter{mark: mark, stop: stop}
			var stderr strings.Builder
			a := New()
			a.Stdout, a.Stderr, a.raceWrites = out, &stderr, 100
			require.Equal(t, 2, a.Run(ctx, []string{"demo", "--redis", s.URL()}), "%s: %s", mark, stderr.String())
			require.Contains(t, stderr.String(), "context canceled", mark)
			require.Contains(t, out.String(), "none left under", mark)
			require.Empty(t, s.Keys(t), mark)
		}
	}
}

func TestTheBruteForceCountOfTheRaceSeesEachKindOfDamage(t *testing.T) {
	s := newStored()
	for _, o := range []order{{"fine", "new", 1}, {"missing", "new", 2}, {"unranked", "new", 3}, {"stale", "paid", 4}, {"wrong", "new", 5}} {
		s.records[o.ID] = o
	}
	s.sets["new"] = map[string]bool{"fine": true, "unranked": true, "stale": true, "wrong": true, "ghost": true}
	s.sets["paid"] = map[string]bool{"stale": true}
	s.totals = map[string]float64{"fine": 1, "missing": 2, "stale": 4, "wrong": 6, "spectre": 7}
	require.Equal(t, damage{missing: 2, stale: 1, orphan: 2, misranked: 1, twoSets: 1}, s.damage())
	require.Equal(t, damage{}, newStored().damage())
}
