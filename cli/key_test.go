package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestAKeyIsTakenApartCompletely(t *testing.T) {
	c := &tool{t: t}
	require.Equal(t, `kind        index
owner       usgs:feed
entity      quake
version     1
tag         {quake}
index       status
generation  2
value       a:b
value kind  text
slot        3695`, c.fine("key", "parse", "usgs:feed:quake:{quake}:~status.2:a%3Ab:v1"))
	require.JSONEq(t, `{"kind":"record","owner":"acme","entity":"account","version":3,"tag":"{account}","id":"a1","field":"photo","slot":1407}`,
		c.fine("key", "parse", "acme:account:{account}:a1:photo:v3", "--json"))
	require.Contains(t, c.fine("key", "parse", "acme:account:~~catalog:v3"), "catalog")
	require.Contains(t, c.fine("key", "parse", "acme:account:{account.17.hNU}:a1:v3"), "bucket   17")
	for _, k := range []string{"", "x", "acme:account:{account}:a1", "acme:account:{account}:a%3a:v1"} {
		c.refused(1, []string{"key", "parse", k}, "malformed")
	}
	require.Equal(t, "12182  foo\n 5061  bar", c.fine("key", "slot", "foo", "bar"))
	require.Equal(t, `{"key":"foo","slot":12182}`, c.fine("key", "slot", "foo", "--json"))
}

func TestABuiltKeyIsTheOneThatTheRecordIsStoredAt(t *testing.T) {
	s := redistest.Mini(t)
	c := newTool(t, s, itemSchema)
	c.fineInput(`{"id":"a:{b}","tag":[7,true,"x y",""],"mail":" Ann@X "}`, "put")
	keys := s.Keys(t)
	for _, args := range [][]string{
		{"--id", "a:{b}"},
		{"--index", "tag", "--value", "7", "--kind", "number"},
		{"--index", "tag", "--value", "true", "--kind", "bool"},
		{"--index", "tag", "--value", "x y"},
		{"--index", "tag", "--value", ""},
		{"--index", "mail", "--value", "ann@x  "},
	} {
		require.Contains(t, keys, c.fine(append([]string{"key", "build"}, args...)...), "%v", args)
	}
	c.refused(2, []string{"key", "build", "--index", "tga", "--value", "x"}, "did you mean tag?")
	c.refused(2, []string{"key", "build", "--index", "tag"}, `--index tag needs --value: the index has a key for each value`)
	c.refused(2, []string{"key", "build", "--value", "tag"}, "id index")
	c.refused(2, []string{"key", "build", "--index", "tga"}, "did you mean tag?")
	c.refused(2, []string{"key", "build"}, "id index")
	c.refused(2, []string{"key", "build", "--id", "a", "--index", "b", "--value", "c"}, "id index")
	c.refused(2, []string{"key", "build", "--index", "tag", "--value", "x", "--kind", "number"}, `"x" is not a number`)
	c.refused(2, []string{"key", "build", "--index", "tag", "--value", "x", "--kind", "time"}, "none of string, number, bool")
	c.refused(2, []string{"key", "build", "--owner", "o", "--type", "e", "--id", "a"}, "give either")

	c.flags = nil
	require.Equal(t, "acme:x:account:{account}:a1:v2",
		c.fine("key", "build", "--owner", "acme:x", "--type", "account", "--version", "2", "--id", "a1"))
	require.Equal(t, "acme:x:account:{account}:a1:photo:v1",
		c.fine("key", "build", "--owner", "acme:x", "--type", "account", "--id", "a1", "--field", "photo"))
	require.Equal(t, "acme:account:{account}:~n.3:~n12.5:v1",
		c.fine("key", "build", "--owner", "acme", "--type", "account", "--index", "n", "--value", "12.50", "--kind", "number", "--generation", "3"))
	c.refused(2, []string{"key", "build", "--id", "a"}, "which entity type?")
	c.refused(2, []string{"key", "build", "--owner", "a b", "--type", "account", "--id", "a"}, "invalid name")

	c.entities = []index.Declared{accounts("acme", "account")}
	require.Equal(t, "acme:account:{account}:~email.1:ann:v1", c.fine("key", "build", "--index", "email", "--value", "ANN"))
}

func TestTheKeyOfAnOrderHasNoValueButPerhapsAGroup(t *testing.T) {
	s := redistest.Mini(t)
	c := newTool(t, s, itemSchema+"  recent: {ranked: seen, keep: 9}\n  best: {ranked: seen, within: net, keep: 9}\n")
	c.fineInput(`{"id":"a","seen":7,"net":"x y"}`, "put")
	keys := s.Keys(t)
	require.Contains(t, keys, c.fine("key", "build", "--index", "recent"))
	require.Contains(t, keys, c.fine("key", "build", "--index", "best", "--value", "x y"))
	c.refused(2, []string{"key", "build", "--index", "recent", "--value", "7"}, "index recent is an order over all records and has one key: leave --value out")
	c.refused(2, []string{"key", "build", "--index", "best"}, "--index best needs --value: the index has a key for each group")
	c.flags = nil
	c.refused(2, []string{"key", "build", "--owner", "o", "--type", "e", "--index", "x"}, "--index x needs --value")
}
