package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/quakes"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestEveryEarthquakeIsFoundUnderItsValuesAndMovesWithThem(t *testing.T) {
	// What the data itself says.
	want := map[string]int{}
	for line := range quakes.Lines() {
		var q struct{ Status, Net, Sources string }
		require.NoError(t, json.Unmarshal(line, &q))
		want["status="+q.Status]++
		want["net="+q.Net]++
		sources := map[string]bool{}
		for part := range strings.SplitSeq(q.Sources, ",") {
			if part != "" {
				sources[part] = true
			}
		}
		for source := range sources {
			want["source="+source]++
		}
	}
	// What is published about the data.
	require.Equal(t, 493, want["status=automatic"])
	require.Equal(t, 1214, want["status=reviewed"])
	require.Equal(t, 386, want["net=ci"])

	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, quakeSchema)
		t.Cleanup(func() { quakeOracle.Verify(t, s.Client(t)) })
		require.Regexp(t, `^loaded 1707 records in \S+ \(\d+ records/s\)$`, c.fine("load", quakeFile(t, same)))
		for _, condition := range slices.Sorted(maps.Keys(want)) {
			require.Equal(t, fmt.Sprint(want[condition]), c.fine("count", condition), condition)
		}
		require.Len(t, sorted(c.fine("find", "net=ci", "--ids")), 386)

		var first string
		for line := range quakes.Lines() {
			first = string(line)
			break
		}
		require.Equal(t, first, c.fine("get", "ci37868143"), "a record is not stored byte for byte")

		changed := quakeFile(t, func(line string) string {
			return strings.Replace(line, `"status":"automatic"`, `"status":"reviewed"`, 1)
		})
		c.fine("load", changed)
		require.Equal(t, "0", c.fine("count", "status=automatic"))
		require.Equal(t, "1707", c.fine("count", "status=reviewed"))
		require.Equal(t, "386", c.fine("count", "net=ci"))

		require.Equal(t, "deleted ci37868143\ndeleted ci37868135", c.fine("delete", "ci37868143", "ci37868135"))
		require.Equal(t, "1705", c.fine("count", "status=reviewed"))
		require.Equal(t, "384", c.fine("count", "net=ci"))
		a := c.run("delete", "ci37868143", "ci37868127")
		require.Equal(t, 1, a.code)
		require.Contains(t, a.out, "not found ci37868143\n")
	})
}

// quake is what the oracle reads of a record.
type quake struct{ ID, Status, Net, Sources string }

// quakeOracle knows the keys of quakeSchema from the layout alone.
var quakeOracle = redistest.Oracle[quake]{
	Prefix: "usgs:feed:quake:", Version: 1,
	Decode: func(raw string) (q quake, err error) {
		err = json.Unmarshal([]byte(raw), &q)
		return q, err
	},
	ID:        func(q quake) string { return q.ID },
	RecordKey: func(id string) string { return "usgs:feed:quake:{quake}:" + id + ":v1" },
	Expect: func(q quake) map[string]string {
		keys := map[string]string{
			"usgs:feed:quake:{quake}:~status.1:" + q.Status + ":v1": "",
			"usgs:feed:quake:{quake}:~net.1:" + q.Net + ":v1":       "",
		}
		for _, source := range strings.Split(strings.Trim(q.Sources, ","), ",") {
			keys["usgs:feed:quake:{quake}:~source.1:"+source+":v1"] = ""
		}
		return keys
	},
}

const itemSchema = `owner: shop
entity: item
version: 1
id: id
lifetime: forever
indexes:
  tag: {membership: tag}
  mail: {unique: mail, fold: true, trim: true}
`

func TestABadLineStopsTheLoadAndNothingOfItOrAfterItIsWritten(t *testing.T) {
	for name, c := range map[string]struct{ bad, want string }{
		"cut":          {`{"id":"3","tag":`, "not JSON"},
		"array":        {`[1,2]`, "the record is an array, must be a JSON object"},
		"null":         {`null`, "the record is null"},
		"no id":        {`{"tag":"a"}`, `field "id" is absent, must be the id`},
		"empty id":     {`{"id":""}`, `field "id" is empty`},
		"null id":      {`{"id":null}`, `field "id" is null`},
		"decimal id":   {`{"id":1.5}`, `field "id" is a number that is not written as an integer`},
		"object":       {`{"id":"3","tag":{"x":1}}`, `"3": field "tag" (index tag) is an object`},
		"nested array": {`{"id":"3","tag":[["x"]]}`, `"3": field "tag" (index tag) is an array`},
		"not utf-8":    {"{\"id\":\"\xff\"}", "not valid UTF-8"},
		"surrogate":    {`{"id":"3","tag":"\ud800x"}`, "surrogate"},
		"big number":   {`{"id":"3","tag":1e999999999}`, `field "tag" (index tag)`},
		"too large":    {`{"id":"3","tag":"` + strings.Repeat("x", 2<<20) + `"}`, "too large"},
		"very long":    {`{"id":"3","tag":"` + strings.Repeat("x", 65<<20) + `"}`, "longer than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			tl := newTool(t, redistest.Mini(t), itemSchema)
			text := "{\"id\":\"1\",\"tag\":\"a\"}\n\n{\"id\":\"2\",\"tag\":\"a\"}\r\n" + c.bad + "\n{\"id\":\"5\",\"tag\":\"a\"}"
			file := write(t, "items.jsonl", text)
			a := tl.refused(1, []string{"load", file}, "error: line 4: ", c.want, "stopped: 2 records before it loaded, nothing of it or after it")
			require.Equal(t, 1, strings.Count(a.err, "\n"), a.err)
			require.Empty(t, a.out)
			require.Equal(t, []string{"1", "2"}, sorted(tl.fine("find", "tag=a", "--ids")))

			a = tl.refused(1, []string{"load", "--skip-bad", file}, "line 4: ", c.want)
			require.Contains(t, a.out, "loaded 3 records in ")
			require.Contains(t, a.out, "left out 1 bad line\n")
			require.Equal(t, []string{"1", "2", "5"}, sorted(tl.fine("find", "tag=a", "--ids")))
		})
	}
}

func TestManyBadLinesAreCountedAndOnlyTenAreShown(t *testing.T) {
	c := newTool(t, redistest.Mini(t), itemSchema)
	var b strings.Builder
	for i := range 25 {
		fmt.Fprintf(&b, "{\"id\":\"%d\",\"tag\":\"a\",\"mail\":null}\nbad %d\n", i, i)
	}
	a := c.input(b.String(), "load", "-", "--skip-bad", "--json")
	require.Equal(t, 1, a.code)
	require.Equal(t, 11, strings.Count(a.err, "\n"), a.err)
	require.Contains(t, a.err, `"error":"line 2: `)
	require.Contains(t, a.err, "15 bad lines not shown")
	var got struct{ Loaded, Bad int }
	require.NoError(t, json.Unmarshal([]byte(a.out), &got))
	require.Equal(t, 25, got.Loaded)
	require.Equal(t, 25, got.Bad)
	require.Equal(t, "25", c.fine("count", "tag=a"))
}

func TestATakenUniqueValueIsReportedWithItsLineIdAndIndex(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, itemSchema)
		text := `{"id":"1","mail":"Ann@x.org","tag":1}
{"id":"2","mail":"","tag":1}
{"id":"3","mail":"  ","tag":1}
{"id":"4","mail":" ann@X.org ","tag":1}
{"id":"5","mail":null,"tag":1}`
		a := c.input(text, "load", "-")
		require.Equal(t, 1, a.code)
		require.Contains(t, a.err, "error: line 4: ")
		require.Contains(t, a.err, `"4" (index mail)`)
		require.Contains(t, a.err, "(stopped: 4 records loaded, up to line 5 without it)")
		require.NotContains(t, strings.ToLower(a.err), "ann@", "the value is private")
		require.Equal(t, []string{"1", "2", "3", "5"}, sorted(c.fine("find", "tag=1", "--ids")))
		require.Equal(t, "1", c.fine("find", "mail=ANN@x.org", "--ids"))

		a = c.input(text, "load", "-", "--skip-bad")
		require.Equal(t, 1, a.code)
		require.Contains(t, a.out, "loaded 4 records")
	})
}

func TestAFieldThatNoRecordHasIsReportedWithItsSchemaLine(t *testing.T) {
	c := newTool(t, redistest.Mini(t), itemSchema)
	a := c.input(`{"id":"1","mail":null}`+"\n"+`{"id":"2","tga":"x"}`, "load", "-")
	require.Equal(t, 0, a.code)
	require.Contains(t, a.out, "loaded 2 records")
	require.Equal(t, 1, strings.Count(a.err, "\n"), a.err)
	require.Regexp(t, `^warning: \S*schema\.yaml:7: membership: tag: no record has the field \(index tag\)\n$`, a.err)
}

func TestLinesOfAnySizeAndEndingArriveWhole(t *testing.T) {
	long := strings.Repeat("y", 700<<10) // longer than any buffer on the way
	l := newLines(strings.NewReader("\ufeffa\r\n\n  \n"+long+"\nb"), maxLine)
	for _, want := range []struct {
		line int
		text string
	}{{1, "a"}, {4, long}, {5, "b"}} {
		got, err := l.next()
		require.NoError(t, err)
		require.Equal(t, want.text, string(got))
		require.Equal(t, want.line, l.line)
	}
	_, err := l.next()
	require.ErrorIs(t, err, io.EOF)

	l = newLines(strings.NewReader("123456\n12345\n1234567"), 6)
	var long6 *longLineError
	_, err = l.next()
	require.ErrorAs(t, err, &long6, "six characters and a line end are seven bytes")
	got, err := l.next()
	require.NoError(t, err)
	require.Equal(t, "12345", string(got))
	_, err = l.next()
	require.ErrorAs(t, err, &long6)
	_, err = l.next()
	require.ErrorIs(t, err, io.EOF)
}

func TestAnInterruptedLoadEndsAndSaysHowFarItCame(t *testing.T) {
	s := redistest.Mini(t)
	c := newTool(t, s, itemSchema)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The input gives two whole batches, then stalls as a pipe does whose writer waits.
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		for i := range 2*loadBatch + 7 {
			fmt.Fprintf(w, "{\"id\":\"%d\",\"tag\":\"a\"}\n", i)
		}
		cancel() // stands for the signal
	}()
	var out, stderr strings.Builder
	a := New()
	a.Stdin, a.Stdout, a.Stderr = r, &out, &stderr
	a.Getenv = func(name string) string { return c.env[name] }
	code := a.Run(ctx, append(slices.Clone(c.flags), "load", "-"))
	require.Equal(t, 2, code)
	require.Empty(t, out.String())
	require.Regexp(t, `^error: interrupted (at|before) line \d+: \d+ records loaded`, stderr.String())

	var line, loaded int
	text := strings.NewReplacer("at line", "line", "before line", "line").Replace(stderr.String())
	_, err := fmt.Sscanf(text, "error: interrupted line %d: %d records loaded", &line, &loaded)
	require.NoError(t, err)
	require.GreaterOrEqual(t, loaded, 2*loadBatch-loadBatch)
	if !strings.Contains(text, "unknown") {
		require.Equal(t, fmt.Sprint(loaded), c.fine("count", "tag=a"))
	}
}

func TestTheProgressBarShowsOnATerminalOnlyAndLeavesTheOutputAlone(t *testing.T) {
	c := newTool(t, redistest.Mini(t), quakeSchema)
	file := quakeFile(t, same)
	c.fine("load", file) // no word on standard error without a terminal
	c.terminal = true
	a := c.run("load", file)
	require.Equal(t, 0, a.code)
	require.Contains(t, a.err, "%")
	require.Regexp(t, `^loaded 1707 records in \S+ \(\d+ records/s\)\n$`, a.out)
	a = c.input(`{"id":"x","status":"a","net":"b","sources":"c"}`, "load", "-")
	require.Equal(t, 0, a.code)
	require.NotContains(t, a.err, "%")
}

func TestWhatCannotBeLoadedAtAllIsSaidBeforeTheServerIsAsked(t *testing.T) {
	c := newTool(t, redistest.Mini(t), itemSchema)
	c.env[envRedis] = "redis://127.0.0.1:1"
	c.refused(2, []string{"load", "/no/such/file"}, "/no/such/file")
	c.refused(2, []string{"load", t.TempDir()}, "is a directory")
	c.refused(2, []string{"load"}, "arg")
}
