package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestNumbersAreStoredAndFoundExactly(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, "owner: o\nentity: e\nversion: 1\nid: id\nlifetime: forever\nindexes:\n  n: {membership: n}\n")
		records := []string{
			`{"id":"a","n":9007199254740993}`,
			`{"id":"b","n":9007199254740992.0}`,
			`{"id":"c","n":1e21}`,
			`{"id":"d","n":0.1}`,
			`{"id":"e","n":0.1000000000000000055511151231257827}`,
			`{"id":"f","n":-0, "x": 1.10}`,
			`{ "id" : "g" , "n" : [1, 1.0, "1", true, null, "true"] }`,
			`{"id":"h","n":1e400}`,
		}
		c.fineInput(strings.Join(records, "\n"), "load", "-")
		for i, r := range records {
			id := string(rune('a' + i))
			require.Equal(t, r, c.fine("get", id), "not byte for byte")
		}
		for value, ids := range map[string][]string{
			"9007199254740993": {"a"}, "9007199254740992": {"b"}, "1e21": {"c"}, "1000000000000000000000": {"c"},
			"0.1": {"d"}, "1e-1": {"d"}, "0.1000000000000000055511151231257827": {"e"}, "0": {"f"}, "-0.0": {"f"},
			"1": {"g"}, "true": {"g"}, "2": nil, "null": nil, "": nil, "1e400": {"h"},
		} {
			require.Equal(t, ids, sorted(c.fine("find", "n="+value, "--ids")), value)
		}
	})
}

func TestEveryKindOfFieldIsIndexedAsItsTypeSays(t *testing.T) {
	c := newTool(t, redistest.Mini(t), `owner: o
entity: e
version: 1
id: the id
lifetime: forever
indexes:
  rating: {membership: MPAA Rating}
  dotted: {membership: a.b}
  tags:   {membership: tags, fold: true, trim: true}
  parts:  {membership: parts, split: "||", trim: true}
  code:   {membership: code, type: string}
  size:   {membership: size, type: number}
  flag:   {membership: flag, type: bool}
  mail:   {unique: mail, fold: true}
`)
	c.fineInput(`{"the id":"1","MPAA Rating":"PG-13","a.b":"lit","a":{"b":"nested"},"tags":["Go"," go ","REDIS"],"parts":"||x|| y ||  ||x","code":"007","size":7,"flag":true,"mail":"A@x"}`+"\n"+
		`{"the id":2,"MPAA Rating":"","a.b":null,"tags":[],"parts":["p||q","r"],"code":"7","size":7.0,"flag":false,"mail":""}`+"\n"+
		`{"the id":"true","MPAA Rating":13,"tags":"go","parts":null,"size":[1,2,2]}`, "load", "-")
	for condition, ids := range map[string][]string{
		"rating=PG-13": {"1"}, "rating=": {"2"}, "rating=13": {"true"}, "dotted=lit": {"1"}, "dotted=nested": nil,
		"tags=GO": {"1", "true"}, "tags= redis": {"1"}, "tags=": nil,
		"parts=x": {"1"}, "parts=y": {"1"}, "parts=": nil, "parts=q": {"2"}, "parts=r": {"2"},
		"code=007": {"1"}, "code=7": {"2"}, "size=7": {"1", "2"}, "size=7.00": {"1", "2"}, "size=2": {"true"},
		"flag=true": {"1"}, "flag=false": {"2"}, "mail=a@X": {"1"}, "mail=": nil,
	} {
		require.Equal(t, ids, sorted(c.fine("find", condition, "--ids")), condition)
	}
	for record, want := range map[string]string{
		`{"the id":"9","code":7}`:          `"9": field "code" (index code) is a number, must be a text, the declared type`,
		`{"the id":"9","size":"7"}`:        `"9": field "size" (index size) is a text, must be a number, the declared type`,
		`{"the id":"9","size":[1,"7"]}`:    `is a text, must be a number`,
		`{"the id":"9","flag":"true"}`:     `"9": field "flag" (index flag) is a text, must be true or false`,
		`{"the id":"9","parts":5}`:         `is a number, must be a text, because the index splits it`,
		`{"the id":"9","mail":["a","b"]}`:  `"9": field "mail" (index mail) is an array, must be one value`,
		`{"the id":"9","tags":{"a":1}}`:    `"9": field "tags" (index tags) is an object`,
		`{"the id":{"a":1}}`:               `field "the id" is an object, must be the id`,
		`{"the id":true}`:                  `field "the id" is a truth value`,
		`{"the id":"\udc00"}`:              "surrogate",
		`{"the id":"9","tags":"\ud83d\n"}`: "surrogate",
	} {
		a := c.input(record, "put")
		require.Equal(t, 1, a.code, record)
		require.Contains(t, a.err, want)
		require.Contains(t, a.err, "nothing written")
	}
	c.refused(1, []string{"get", "9"}, `"9"`)
	c.refused(2, []string{"find", "size=big"}, `"big" is not a number`)
	c.refused(2, []string{"find", "flag=1"}, "neither true nor false")
}

func TestIdsHoldAnythingThatJSONCanSay(t *testing.T) {
	c := newTool(t, redistest.Mini(t), itemSchema)
	ids := []string{"a b", "{x}", "{}", "a:b:c", "é漢😀", "~tag", "all", "*", "%41", "a\nb", "\x1b[31m", "\x00"}
	records := []string{
		`{"id":"a b","tag":"t","mail":null}`, `{"id":"{x}","tag":"t"}`, `{"id":"{}","tag":"t"}`, `{"id":"a:b:c","tag":"t"}`,
		`{"id":"é漢\ud83d\ude00","tag":"t"}`, `{"id":"~tag","tag":"t"}`, `{"id":"all","tag":"t"}`, `{"id":"*","tag":"t"}`,
		`{"id":"%41","tag":"t"}`, `{"id":"a\nb","tag":"t"}`, `{"id":"\u001b[31m","tag":"t"}`, `{"id":"\u0000","tag":"t"}`,
	}
	c.fineInput(strings.Join(records, "\n"), "load", "-")
	for i, id := range ids {
		require.Equal(t, records[i], c.fine("get", id))
	}
	require.Len(t, sorted(c.fine("find", "tag=t", "--ids", "--json")), len(ids))
	require.Contains(t, c.fine("find", "tag=t", "--ids", "--json"), `"a\nb"`)

	// A terminal is not steered by an id.
	c.terminal = true
	a := c.run("find", "tag=t", "--ids")
	require.NotContains(t, a.out, "\x1b")
	require.NotContains(t, a.out, "\x00")
	require.Contains(t, a.out, `\u001b[31m`)
	require.Contains(t, a.out, "é漢😀")
	a = c.run("delete", "\x1b]0;x\x07")
	require.Equal(t, "not found \\u001b]0;x\\u0007\n", a.out)

	c.terminal = false
	c.fine(append([]string{"delete"}, ids...)...)
	require.Equal(t, "0", c.fine("count", "tag=t"))
}

func TestPrintableKeepsTextAndShowsTheRest(t *testing.T) {
	for in, want := range map[string]string{
		"plain é漢😀": "plain é漢😀", "a\tb": `a\u0009b`, "\u202e": `\u202e`, "\xff": `\xff`, "\u009b": `\u009b`,
		"\U000e0001": `\udb40\udc01`, "\ufffd": "\ufffd", "": "",
	} {
		require.Equal(t, want, printable(in))
	}
	require.Equal(t, "{\n\t\\u001b}", printable("{\n\t\x1b}", '\n', '\t'))
}

func TestLoneSurrogatesAreSeenAndPairsAreNot(t *testing.T) {
	for text, lone := range map[string]bool{
		`"\ud83d\ude00"`: false, `"\ud83d"`: true, `"\ude00"`: true, `"\ud83d\ud83d\ude00"`: true, `"\\ud83d"`: false,
		`"\\\ud83d"`: true, `"\uD83D\uDE00\u00e9"`: false, `"\ud83dx"`: true, `"é"`: false, `"\ud83d\\ude00"`: true,
		`"\ud83d\ude00\ude00"`: true, `"\u0041"`: false,
	} {
		require.Equal(t, lone, loneSurrogate([]byte(text)), text)
	}
}
