package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// rankSchema is a schema with one ranked index under the name x.
func rankSchema(declaration string) string {
	return "owner: o\nentity: e\nversion: 1\nid: id\nlifetime: forever\nindexes:\n  x: " + declaration + "\n"
}

func TestEveryMistakeInARankedIndexIsReportedWithItsLine(t *testing.T) {
	for declaration, want := range map[string]string{
		"{ranked: mag, membership: mag}":                                     "index x: membership is not for a ranked index",
		"{ranked: mag, split: ','}":                                          "index x: split is not for a ranked index",
		"{ranked: mag, fold: true}":                                          "index x: fold is not for a ranked index",
		"{ranked: [mag]}":                                                    "index x: ranked must be a text, not a list",
		"{ranked: mag, keep: 0}":                                             "index x: keep must be a number from 1 up, not 0",
		"{ranked: mag, keep: many}":                                          "index x: keep must be a whole number",
		"{ranked: mag, keep: 5, slack: -1}":                                  "index x: slack must be a number from 0 up, not -1",
		"{ranked: mag, slack: 3}":                                            "index x: slack is for an index with keep",
		"{ranked: mag, within: 3}":                                           "index x: within must be a text, not the number 3",
		"{ranked: mag, within: ''}":                                          "index x: within is empty",
		"{ranked: mag, time: minutes}":                                       `index x: time "minutes" is none of s, ms, us, rfc3339`,
		"{ranked: mag, max_age: 24h}":                                        "index x: max_age needs to know how the field holds a time",
		"{ranked: mag, time: ms, max_age: 7d}":                               `index x: max_age "7d" is no duration such as 3s, 15m or 24h`,
		"{ranked: mag, time: ms, max_age: 0s}":                               "index x: max_age 0s is under a microsecond",
		"{ranked: mag, time: ms, exact: true, max_age: 24h}":                 "index x: max_age is not for an index with exact: true",
		"{ranked: mag, time: ms, lowest_first: true, max_age: 24h, keep: 3}": "index x: max_age keeps the newest, lowest_first the oldest",
		"{ranked: mag, exact: 1}":                                            "index x: exact must be true or false",
		"{ranked: mag, lowest_first: low}":                                   "index x: lowest_first must be true or false",
		"{ranked: mag, type: string}":                                        "index x: texts are ordered by their bytes: write exact: true",
		"{ranked: mag, type: bool, exact: true}":                             `index x: type "bool" has no order here: it is number or string`,
		"{ranked: mag, type: number, time: s}":                               "index x: give either time or type",
		"{ranked: mag, kep: 3}":                                              `index x: unknown key "kep": did you mean keep?`,
		"{membership: mag, keep: 3}":                                         "index x: keep is for a ranked index",
		"{unique: mag, within: net}":                                         "index x: within is for a ranked index",
	} {
		_, err := ReadSchema("s.yaml", []byte(rankSchema(declaration)))
		require.Error(t, err, declaration)
		require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "%s: %v", declaration, err)
		require.True(t, strings.HasPrefix(err.Error(), "s.yaml:7: "+want), "%s: %v", declaration, err)
	}
}

func TestARankedIndexThatReadsOtherFieldsIsAnotherIndex(t *testing.T) {
	fingerprint := func(declaration string) string {
		e, err := ReadSchema("s.yaml", []byte(rankSchema(declaration)))
		require.NoError(t, err, declaration)
		return e.Fingerprint()
	}
	met := map[string]string{}
	for _, d := range []string{
		"{ranked: a}", "{ranked: b}", "{ranked: a, within: b}", "{ranked: a, within: c}", "{ranked: a, time: s}",
		"{ranked: a, time: ms}", "{ranked: a, time: rfc3339}", "{ranked: a, exact: true}", "{ranked: a, time: s, exact: true}",
		"{ranked: a, exact: true, type: string}", "{ranked: a, lowest_first: true}", "{ranked: a, time: s, max_age: 1h}", "{membership: a}",
	} {
		f := fingerprint(d)
		require.Empty(t, met[f], "%s would answer from the entries of %s", d, met[f])
		met[f] = d
	}
	require.Equal(t, fingerprint("{ranked: a, keep: 5}"), fingerprint("{ranked: a, keep: 9, slack: 2}"), "a bound changes no key")
	require.Equal(t, fingerprint("{ranked: a}"), fingerprint("{ranked: a, type: number}"))
}

// ordered loads records with the field v and gives the ids in the order of the index x, lowest first, with their scores.
func ordered(t *testing.T, declaration string, values ...string) string {
	t.Helper()
	c := newTool(t, redistest.Mini(t), rankSchema(declaration))
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, "{\"id\":\"%c\",\"v\":%s}\n", 'a'+i, v)
	}
	require.Equal(t, 0, c.input(b.String(), "load", "-").code, declaration)
	var page struct {
		Items []struct{ ID, Score json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(c.fine("top", "x", "--lowest", "--json")), &page))
	var out []string
	for _, item := range page.Items {
		out = append(out, strings.Trim(string(item.ID), `"`)+"="+string(item.Score))
	}
	return strings.Join(out, " ")
}

func TestNumbersTextsAndTimesAreOrderedAsTheSchemaSays(t *testing.T) {
	require.Equal(t, `c=-9007199254740992 f=-1.5 b=0 g=0 a=0.1 d=9007199254740992 e=1e+300`,
		ordered(t, "{ranked: v}", "0.1", "-0", "-9007199254740992", "9007199254740992", "1e300", "-1.50", "0.0", "null"))
	require.Equal(t, `b=-9223372036854775808 d=1 a=9007199254740993 c=9223372036854775807`,
		ordered(t, "{ranked: v, exact: true}", "9007199254740993", "-9223372036854775808", "9223372036854775807", "1.0", "null"))
	require.Equal(t, `c="" a="10" b="9" d="a" f="a\u0000" e="é"`,
		ordered(t, "{ranked: v, exact: true, type: string}", `"10"`, `"9"`, `""`, `"a"`, `"é"`, `"a\u0000"`))
	require.Equal(t, `c="1969-12-31T23:59:59.999999Z" a="1970-01-01T00:00:00Z" b="2018-02-07T01:26:13.84Z"`,
		ordered(t, "{ranked: v, time: ms}", "0", "1517966773840", "-0.0001", "null"))
	require.Equal(t, `b="2018-02-07T01:26:13Z" a="2018-02-07T01:26:13.840001Z"`,
		ordered(t, "{ranked: v, time: s}", "1517966773.8400019", "1517966773"))
	require.Equal(t, `a="2018-02-07T01:26:13.000001Z"`, ordered(t, "{ranked: v, time: us}", "1517966773000001"))
	require.Equal(t, `b="2018-02-07T00:26:13Z" a="2018-02-07T01:26:13.123456Z"`,
		ordered(t, "{ranked: v, time: rfc3339}", `"2018-02-07T01:26:13.123456789Z"`, `"2018-02-07T01:26:13+01:00"`, `"0001-01-01T00:00:00Z"`))
	require.Equal(t, `a="2018-02-07T01:26:13.123456789Z"`,
		ordered(t, "{ranked: v, time: rfc3339, exact: true}", `"2018-02-07T01:26:13.123456789Z"`))
}

func TestAScoreThatTheOrderCannotHoldIsRefusedWithLineIdAndIndex(t *testing.T) {
	for declaration, values := range map[string]map[string]string{
		"{ranked: v}": {
			"9007199254740993":     "the number 9007199254740993, must be a number within 2^53, which a float64 orders exactly: write exact: true for more",
			"-9007199254740993":    "within 2^53",
			"9007199254740993.0":   "within 2^53",
			"1e400":                "a number that a float64 holds",
			"0.123456789012345678": "a number of at most 17 digits",
			`"5"`:                  "a text, must be one number",
			"true":                 "a truth value, must be one number",
			"[1]":                  "an array, must be one number",
			"{}":                   "an object, must be one number",
		},
		"{ranked: v, exact: true}": {
			"9223372036854775808": "a whole number from -2^63 to 2^63-1",
			"1.5":                 "a whole number",
			"1e999":               "a whole number",
			`"a"`:                 "a text, must be one number",
		},
		"{ranked: v, exact: true, type: string}": {"1": "a number, must be a text, the declared type"},
		"{ranked: v, time: ms}": {
			"1e17":             "a time in the year", // the year 5138
			"99999999999999":   "a time in the year 5138, must be from 1684 to 2255",
			"1e30":             "a number out of range",
			"-1e-99999":        "a number out of range",
			`"2018-02-07"`:     "a text, must be a number since 1970, because the index has time: ms",
			"9.99999999999e18": "a number out of range",
		},
		"{ranked: v, time: rfc3339}": {
			`"2018-02-07"`:           "a text that is no time, must be a text such as 2006-01-02T15:04:05Z",
			"5":                      "a number, must be a text such as",
			`"2300-01-01T00:00:00Z"`: "a time in the year 2300, must be from 1684 to 2255",
		},
		"{ranked: v, time: rfc3339, exact: true}": {`"1600-01-01T00:00:00Z"`: "which nanoseconds can hold"},
	} {
		c := newTool(t, redistest.Mini(t), rankSchema(declaration))
		for v, want := range values {
			a := c.input("{\"id\":\"fine\"}\n{\"id\":\"bad\",\"v\":"+v+"}\n", "load", "-")
			require.Equal(t, 1, a.code, "%s %s\n%s", declaration, v, a.err)
			require.Contains(t, a.err, `line 2: put o:e: lockstep: invalid: "bad": field "v" (index x) is `, "%s %s", declaration, v)
			require.Contains(t, a.err, want, "%s %s", declaration, v)
		}
		c.refused(1, []string{"get", "bad"}, `"bad"`)
	}
}

func TestGroupsAreTextsAndARecordWithoutOneHasNoPlace(t *testing.T) {
	c := newTool(t, redistest.Mini(t), rankSchema("{ranked: v, keep: 10, within: g}"))
	c.fineInput(`{"id":"a","v":1,"g":"x"}`+"\n"+`{"id":"b","v":2,"g":"x"}`+"\n"+`{"id":"c","v":1,"g":5}`+"\n"+`{"id":"d","v":2,"g":"5"}`+"\n"+
		`{"id":"e","v":9,"g":null}`+"\n"+`{"id":"f","v":9}`+"\n"+`{"id":"g","v":null,"g":"x"}`+"\n"+`{"id":"h","v":1,"g":true}`+"\n"+
		`{"id":"i","v":1,"g":""}`, "load", "-")
	for group, ids := range map[string]string{"x": "b\na", "5": "d\nc", "true": "h", "": "i", "y": ""} {
		require.Equal(t, ids, c.fine("top", "x", "--within", group, "--ids"), group)
	}
	a := c.input(`{"id":"z","v":1,"g":["x"]}`, "put")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.err, `"z": field "g" (index x) is an array, must be a text, a number or a truth value, which names a group`)
	c.refused(2, []string{"top", "x"}, "the index ranks within groups")
}

func TestAnIndexWithoutABoundIsWarnedAboutWhereItIsWritten(t *testing.T) {
	c := newTool(t, redistest.Mini(t), rankSchema("{ranked: v}"))
	a := c.input(`{"id":"a","v":1}`, "load", "-")
	require.Equal(t, 0, a.code)
	require.Regexp(t, `^warning: \S*schema\.yaml:7: index x keeps every record in one sorted set: write keep: N to bound it\n$`, a.err)
	require.Equal(t, "a", c.fine("top", "x", "--ids"))
	for _, bounded := range []string{"{ranked: v, keep: 3}", "{ranked: v, time: ms, max_age: 24h}"} {
		c := newTool(t, redistest.Mini(t), rankSchema(bounded))
		c.fineInput(`{"id":"a","v":1}`, "load", "-")
	}
}

func TestAWindowHoldsWhatIsYoungEnough(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, rankSchema("{ranked: v, time: ms, max_age: 24h}"))
		now := time.Now()
		for id, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": 23 * time.Hour, "new": 0} {
			c.fineInput(fmt.Sprintf(`{"id":%q,"v":%d}`, id, now.Add(-age).UnixMilli()), "put")
		}
		require.Equal(t, "new\nyoung", c.fine("top", "x", "--ids"))
		require.NotEmpty(t, c.fine("get", "old"))
	})
}

func TestAFieldOfARankedIndexThatNoRecordHasIsReported(t *testing.T) {
	c := newTool(t, redistest.Mini(t), rankSchema("{ranked: v, keep: 3, within: g}"))
	a := c.input(`{"id":"1"}`, "load", "-")
	require.Equal(t, 0, a.code)
	require.Regexp(t, `schema.yaml:7: ranked: v: no record has the field \(index x\)\n.*schema.yaml:7: within: g: no record`, a.err)
}
