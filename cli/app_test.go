package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
)

type account struct {
	ID     string
	Status string
	Email  string
	Seen   int64 `json:",omitempty"`
}

func accounts(owner, name string) *index.Entity[account] {
	return index.Define(owner, name, index.Options[account]{
		ID: func(a account) string { return a.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[account]{
			membership.New("status", func(a account) string { return a.Status }),
			membership.Unique("email", func(a account) (string, bool) { return a.Email, a.Email != "" }, membership.Fold),
		},
	})
}

// rankedAccounts also has ranked indexes of both encodings.
func rankedAccounts(owner, name string) *index.Entity[account] {
	seen := func(a account) int64 { return a.Seen }
	return index.Define(owner, name, index.Options[account]{
		ID: func(a account) string { return a.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[account]{
			membership.New("status", func(a account) string { return a.Status }),
			membership.Unique("email", func(a account) (string, bool) { return a.Email, a.Email != "" }, membership.Fold),
			ranked.New("seen", seen, ranked.Keep(100)),
			ranked.Within(func(a account) string { return a.Status }, ranked.Exact("first", seen, ranked.LowestFirst(), ranked.Keep(10))),
		},
	})
}

func TestAProgramRunsTheCommandsOnItsOwnEntityTypes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := &tool{t: t, env: map[string]string{envRedis: s.URL()}, entities: []index.Declared{accounts("acme", "account")}}
		c.fineInput(`{"ID":"a1","Status":"new","Email":"Ann@x"}`+"\n"+`{"ID":"a2","Status":"new"}`, "load", "-")
		require.Equal(t, "2", c.fine("count", "status=new"))
		require.JSONEq(t, `{"ID":"a1","Status":"new","Email":"Ann@x"}`, c.fine("find", "email=ANN@X"))
		require.Equal(t, "written a1", c.fineInput(`{"ID":"a1","Status":"old"}`, "put"))
		require.Equal(t, `{"count":1,"index":"status","value":"old"}`, c.fine("count", "status=old", "--json"))
		require.Equal(t, "0", c.fine("count", "email=ann@x"))
		require.Equal(t, `{"deleted":true,"id":"a1"}`, c.fine("delete", "a1", "--json"))
		c.refused(2, []string{"-s", "x.yaml", "count", "status=new"}, "unknown shorthand flag")
	})
}

func TestSeveralEntityTypesNeedAChoice(t *testing.T) {
	c := &tool{
		t: t, env: map[string]string{envRedis: redistest.Mini(t).URL()},
		entities: []index.Declared{accounts("acme", "account"), accounts("acme", "order"), accounts("other", "order")},
	}
	c.refused(2, []string{"count", "status=a"}, "which entity type? --entity is one of account, acme:order, other:order")
	c.refused(2, []string{"count", "status=a", "--entity", "orders"}, `no entity type "orders"`, "acme:order")
	c.refused(2, []string{"count", "status=a", "--entity", "order"}, `"order" means several entity types: --entity is one of acme:order, other:order`)
	require.Contains(t, c.fineInput(`{"ID":"a1","Status":"a"}`, "--entity", "account", "put"), "a1")
	require.Contains(t, c.fineInput(`{"ID":"o1","Status":"a"}`, "--entity", "acme:order", "put"), "o1")
	require.Equal(t, "a1", c.fine("--entity", "account", "find", "status=a", "--ids"))
	require.Equal(t, "o1", c.fine("--entity", "acme:order", "find", "status=a", "--ids"))

	c.entities = []index.Declared{accounts("acme", "a"), accounts("acme", "a")}
	c.refused(2, []string{"count", "status=a"}, "declared twice")
	c.entities = []index.Declared{accounts("acme", "a"), nil}
	c.refused(2, []string{"count", "status=a"}, "is nil")
	c.entities = []index.Declared{accounts("ac me", "")}
	c.refused(2, []string{"count", "status=a"}, "invalid")
}

func TestWrongUsageIsExplainedAndEndsWithTwo(t *testing.T) {
	s := redistest.Mini(t)
	c := newTool(t, s, quakeSchema)
	for _, u := range []struct {
		args []string
		want string
	}{
		{[]string{"laod", "x"}, `error: unknown command "laod": did you mean load?`},
		{[]string{"xyzzy"}, `error: unknown command "xyzzy": see lockstep --help`},
		{[]string{"count"}, "accepts 1 arg"},
		{[]string{"count", "status"}, `"status" is not of the form INDEX=VALUE`},
		{[]string{"count", "staus=x"}, `usgs:feed:quake has no index "staus": did you mean status? (indexes: net, source, status)`},
		{[]string{"find", "status=x", "--limit", "-1"}, "--limit -1 is negative"},
		{[]string{"find", "status=x", "--limit", "many"}, "invalid argument"},
		{[]string{"find", "status=x", "--lmit", "1"}, "unknown flag: --lmit"},
		{[]string{"count", "status=x", "--timeout", "0s"}, "--timeout 0s: must be over zero"},
		{[]string{"-s", "/no/such.yaml", "count", "status=x"}, "/no/such.yaml"},
		{[]string{"put", "x"}, "unknown command"},
		{[]string{"key", "pares"}, "unknown command"},
		{[]string{"demo", "--json"}, "demo has no --json"},
		{[]string{"top", "status", "-n", "0"}, "-n 0: a page has at least one record"},
		{[]string{"top", "status", "-n", "-3"}, "-n -3: a page has"},
		{[]string{"top", "sttus"}, `has no index "sttus": did you mean status?`},
		{[]string{"top", "status", "--lowest", "--highest"}, "lowest highest"},
		{[]string{"verify", "--rate", "-1"}, "--rate -1 is negative"},
		{[]string{"repair", "--findings", "-1"}, "--findings -1 is negative"},
		{[]string{"build", "nett"}, `has no index "nett": did you mean net?`},
		{[]string{"bench"}, "which server? give --redis URL"},
		{[]string{"bench", "--redis", "redis://127.0.0.1:1", "--rounds", "0"}, "--rounds 0: at least 1"},
	} {
		a := c.refused(2, u.args, u.want)
		require.Equal(t, 1, strings.Count(a.err, "\n"), "one line: %q", a.err)
		require.Empty(t, a.out)
	}
	c.flags = nil
	c.refused(2, []string{"count", "status=x"}, "no schema: give -s FILE")
	a := c.refused(2, []string{"count", "status=x", "--json"}, "")
	var got map[string]string
	require.NoError(t, json.Unmarshal([]byte(a.err), &got))
	require.Contains(t, got["error"], "no schema")
	require.Empty(t, s.Keys(t))
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	c := &tool{t: t}
	require.Contains(t, c.fine(), "Available Commands")
	for _, args := range [][]string{
		{"load"},
		{"get"},
		{"put"},
		{"delete"},
		{"find"},
		{"count"},
		{"key"},
		{"key", "parse"},
		{"key", "build"},
		{"key", "slot"},
		{"acl"},
		{"top"},
		{"verify"},
		{"repair"},
		{"build"},
		{"sweep"},
		{"bench"},
		{"demo"},
		{},
	} {
		help := c.fine(append(args, "--help")...)
		require.Contains(t, help, "Examples:\n  lockstep ", "%v", args)
	}
	c.entities = []index.Declared{accounts("acme", "account"), accounts("acme", "order")}
	require.Contains(t, c.fine("load", "--help"), "--entity account load")
}

func TestAQueryLeavesTheServerAsItIs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, quakeSchema)
		for _, args := range [][]string{{"count", "status=a"}, {"find", "status=a"}, {"get", "x"}} {
			c.refused(2, args, "not ready")
		}
		require.Empty(t, s.Keys(t), "a query with a wrong schema registered it")

		c.fineInput(`{"id":"1","status":"a","net":"n","sources":""}`, "load", "-")
		before := redistest.Snapshot(t, s.Client(t))
		require.Equal(t, "1", c.fine("count", "status=a"))
		require.Equal(t, `{"id":"1","status":"a","net":"n","sources":""}`, c.fine("find", "status=a"))
		require.Equal(t, "", c.fine("find", "status=b"))
		c.refused(1, []string{"get", "2"}, `error: get usgs:feed:quake "2": `)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, s.Client(t))))
	})
}

func TestRecordsPutByHandAreStoredAsTheyAreOrNotAtAll(t *testing.T) {
	c := newTool(t, redistest.Mini(t), itemSchema)
	record := "{\n  \"id\": \"1\",\n  \"tag\": \"a=b\"\n}"
	require.Equal(t, "written 1", c.fineInput("\n"+record+"\n\n", "put"))
	require.Equal(t, record, c.fine("get", "1"))
	require.Equal(t, `{"id":"1","tag":"a=b"}`, c.fine("get", "1", "--json"), "a record a line")
	require.Equal(t, "1", c.fine("find", "tag=a=b", "--ids"), "split at the first =")

	require.Equal(t, "written 2\nwritten 3", c.fineInput(`{"id":"2","mail":"m"} {"id":"3"}`, "put"))
	for input, want := range map[string]string{
		"":                                "no record on standard input",
		"{\"id\":\"4\"}\n{\"id\":":        "line 2: not JSON",
		"{\"id\":\"4\"}\nx":               "line 2: not JSON",
		"{\"id\":\"4\"}\n{\"tag\":\"x\"}": "record 2: ",
	} {
		a := c.input(input, "put")
		require.Equal(t, 1, a.code, input)
		require.Contains(t, a.err, want)
		require.Contains(t, a.err, "nothing written")
	}
	c.refused(1, []string{"get", "4"}, `"4"`)

	a := c.input(`{"id":"5","mail":"M"} {"id":"6"}`, "put")
	require.Equal(t, 1, a.code)
	require.Equal(t, "written 6\n", a.out)
	require.Contains(t, a.err, `"5" (index mail)`)

	a = c.run("get", "1", "5", "6", "--json")
	require.Equal(t, 1, a.code)
	require.Equal(t, `{"id":"1","tag":"a=b"}`+"\n"+`{"id":"6"}`+"\n", a.out)
	require.Contains(t, a.err, `{"error":"get shop:item \"5\": `)
}

func TestFindStopsAtItsLimit(t *testing.T) {
	c := newTool(t, redistest.Mini(t), quakeSchema)
	c.fine("load", quakeFile(t, same))
	require.Len(t, sorted(c.fine("find", "status=reviewed", "--limit", "3")), 3)
	require.Len(t, sorted(c.fine("find", "status=reviewed", "--limit", "3", "--ids")), 3)
	for _, line := range sorted(c.fine("find", "status=reviewed", "--json")) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Len(t, sorted(c.fine("find", "status=reviewed", "--limit", "0")), 1214)
}

func TestRecordsExpireAsTheSchemaSays(t *testing.T) {
	s := redistest.Redis(t)
	c := newTool(t, s, strings.Replace(itemSchema, "lifetime: forever", "lifetime: 1h", 1))
	c.fineInput(`{"id":"1","tag":"a","mail":"m"}`, "load", "-")
	ttl, err := s.Client(t).PTTL(t.Context(), "shop:item:{item}:1:v1").Result()
	require.NoError(t, err)
	require.InDelta(t, 3600, ttl.Seconds(), 60)
}

func TestRecordsThatAreNoJSONStillComeOutAsALineOfJSON(t *testing.T) {
	plain := index.Define("acme", "plain", index.Options[string]{
		ID: func(s string) string { return s }, Version: 1, Lifetime: index.Forever,
		Codec: index.Codec[string]{
			Encode: func(s string) ([]byte, error) { return []byte(s), nil },
			Decode: func(_ string, b []byte) (string, error) { return string(b), nil },
		},
		Indexes: []index.Index[string]{membership.New("size", func(s string) int { return len(s) })},
	})
	c := &tool{t: t, env: map[string]string{envRedis: redistest.Mini(t).URL()}, entities: []index.Declared{plain}}
	c.fineInput("\xff\x00!\n", "load", "-")
	require.Equal(t, "\xff\x00!", c.fine("find", "size=3"))
	require.Equal(t, `{"base64":"/wAh"}`, c.fine("find", "size=3", "--json"))
	require.Equal(t, `{"base64":"/wAh"}`, c.fine("find", "size=3", "--ids", "--json"))
	require.Equal(t, "deleted \xff\x00!", c.fine("delete", "\xff\x00!"))
}
