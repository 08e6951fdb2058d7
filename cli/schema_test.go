package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
)

// A schema that works, one line for each key; the table below changes single lines of it.
var goodSchema = []string{
	"owner: usgs:feed", "entity: quake", "version: 1", "id: id", "lifetime: forever", "indexes:",
	"  status: {membership: status}", "  mail: {unique: mail}",
}

func TestEveryMistakeInASchemaIsReportedWithItsLine(t *testing.T) {
	for _, c := range []struct {
		name string
		line int // that is replaced, from 1; 0 replaces the whole file
		text string
		want []string
	}{
		{"unknown key", 1, "ownr: x", []string{`1: unknown key "ownr": did you mean owner?`, "1: owner is missing"}},
		{"no lifetime", 5, "", []string{`1: lifetime is missing: write "lifetime: forever"`}},
		{"bad lifetime", 5, "lifetime: 3", []string{"5: lifetime must be a text, not the number 3"}},
		{"day", 5, "lifetime: 7d", []string{`5: lifetime "7d" is neither forever nor a duration`}},
		{"zero lifetime", 5, "lifetime: 0s", []string{"5: lifetime 0s is under a millisecond"}},
		{"null lifetime", 5, "lifetime:", []string{"5: lifetime must be a text, not nothing"}},
		{"twice", 4, "owner: b", []string{`4: "owner" is there twice, first at line 1`, "1: id is missing"}},
		{"owner", 1, "owner: 'a b'", []string{"1: owner: "}},
		{"owner empty", 1, "owner: ''", []string{"1: owner is empty"}},
		{"owner number", 1, "owner: 7", []string{`1: owner must be a text, not the number 7: write "7" in quotes`}},
		{"entity", 2, "entity: 'x:y'", []string{"2: entity: "}},
		{"version", 3, "version: '1'", []string{`3: version must be a whole number, not the text "1"`}},
		{"version zero", 3, "version: 0", []string{"3: version must be a number from 1 up, not 0"}},
		{"version huge", 3, "version: 99999999999", []string{"3: version: "}},
		{"id", 4, "id: [a]", []string{"4: id must be a text, not a list"}},
		{"no id", 4, "", []string{"1: id is missing: it names the field"}},
		{"no kind", 7, "  mag: {fold: true}", []string{"7: index mag names no field"}},
		{"both kinds", 7, "  mag: {membership: a, unique: b}", []string{"7: index mag is either membership or unique"}},
		{"field number", 7, "  mag: {membership: 2018}", []string{`7: index mag: membership must be a text, not the number 2018: write "2018" in quotes`}},
		{"field null", 7, "  mag: {membership: }", []string{"7: index mag: membership must be a text, not nothing"}},
		{"index name", 7, "  'a b': {membership: a}", []string{`7: index "a b": `}},
		{"index twice", 8, "  status: {membership: b}", []string{`8: indexes: "status" is there twice, first at line 7`}},
		{"index key", 7, "  a: {membership: a, splt: ','}", []string{`7: index a: unknown key "splt": did you mean split?`}},
		{"index odd key", 7, "  a: {membership: a, order: x}", []string{`7: index a: unknown key "order": there are membership, unique`}},
		{"index text", 7, "  a: b", []string{`7: index a must hold keys with values, not the text "b"`}},
		{"indexes list", 0, "owner: a\nentity: b\nversion: 1\nid: id\nlifetime: 3s\nindexes: [a]", []string{"6: indexes must hold keys with values, not a list"}},
		{"fold", 7, "  a: {membership: a, fold: 1}", []string{"7: index a: fold must be true or false, not the number 1"}},
		{"type", 7, "  a: {membership: a, type: float}", []string{`7: index a: type "float" is none of string, number, bool`}},
		{"type and fold", 7, "  a: {membership: a, type: number, fold: true}", []string{"7: index a: fold is for texts, the type is number"}},
		{"buckets", 7, "  a: {membership: a, buckets: 257}", []string{"7: index a: buckets: 257, at most 256"}},
		{"no buckets", 7, "  a: {membership: a, buckets: 0}", []string{"7: index a: buckets must be a number from 1 up, not 0"}},
		{"buckets unique", 8, "  a: {unique: a, buckets: 2}", []string{"8: index a: a value of a unique index has one record"}},
		{"buckets ranked", 8, "  a: {ranked: a, keep: 1, buckets: 2}", []string{"8: index a: buckets is not for a ranked index"}},
		{"id buckets", 4, "id: id\nid_buckets: 65537", []string{"5: id_buckets: 65537, at most 65536"}},
		{"split unique", 8, "  a: {unique: a, split: ','}", []string{"8: index a: a unique index has one value"}},
		{"split empty", 7, "  a: {membership: a, split: ''}", []string{"7: index a: split is empty"}},
		{"alias", 7, "  a: &x {membership: a}\n  b: *x", []string{"8: index b must hold keys with values, not an alias"}},
		{"no anchor", 7, "  a: *x", []string{"not YAML: unknown anchor 'x'"}},
		{"merge", 7, "  a: {<<: {fold: true}, membership: a}", []string{"7: index a: a key must be a text, not !!merge <<"}},
		{"syntax", 7, "  a: {membership", []string{"not YAML: "}},
		{"tab", 7, "\ta: b", []string{"7: not YAML: "}},
		{"empty", 0, "", []string{"1: the file is empty"}},
		{"comment", 0, "# nothing", []string{"1: "}},
		{"list", 0, "- a", []string{"1: the file must hold keys"}},
		{"two documents", 8, "---\nowner: a", []string{": a second document"}},
		{"several at once", 0, "owner: a b\nentity: q\nversion: x\nid: id\nindexes:\n  a: {membership: a, x: 1}\n  b: {}", []string{
			"1: lifetime is missing", "1: owner: ", "3: version must be", `6: index a: unknown key "x"`, "7: index b names no field",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.text
			if c.line > 0 {
				lines := append([]string{}, goodSchema...)
				lines[c.line-1] = c.text
				text = strings.Join(lines, "\n")
			}
			_, err := ReadSchema("s.yaml", []byte(text))
			require.Error(t, err)
			got := strings.Split(err.Error(), "\n")
			require.Len(t, got, len(c.want), err.Error())
			for _, line := range got {
				require.Regexp(t, `^s\.yaml:\d+: `, line)
			}
			for _, want := range c.want {
				if want[0] != ':' && want[0] >= '0' && want[0] <= '9' {
					want = "s.yaml:" + want
				}
				require.Contains(t, err.Error(), want)
			}
		})
	}
}

func TestAGoodSchemaDeclaresWhatItSays(t *testing.T) {
	e, err := ReadSchema("s.yaml", []byte(strings.Join(goodSchema, "\n")))
	require.NoError(t, err)
	require.NoError(t, e.Err())
	require.Equal(t, "usgs:feed:quake", e.String())
	require.Equal(t, index.Forever, e.Lifetime())
	require.Len(t, e.Definitions(), 2)
	e, err = ReadSchema("s.yaml", []byte(schemaExample))
	require.NoError(t, err, "the example of the help")
	require.Len(t, e.Definitions(), 8)
	e, err = ReadSchema("s.yaml", []byte("owner: a\nentity: b\nversion: 2\nid: k\nlifetime: 90m\n"))
	require.NoError(t, err, "an entity type without indexes")
	require.Equal(t, 90*time.Minute, e.Lifetime())
	require.Equal(t, 2, e.Version())
}

func TestAnIndexThatReadsAnotherFieldIsAnotherIndex(t *testing.T) {
	fingerprint := func(declaration string) string {
		lines := append([]string{}, goodSchema...)
		lines[6] = "  status: " + declaration
		e, err := ReadSchema("s.yaml", []byte(strings.Join(lines, "\n")))
		require.NoError(t, err)
		return e.Fingerprint()
	}
	met := map[string]string{}
	for _, d := range []string{
		"{membership: a}", "{membership: b}", `{membership: a, split: ","}`, `{membership: a, split: ";"}`,
		"{membership: a, fold: true}", "{membership: a, trim: true}", "{unique: a}",
	} {
		f := fingerprint(d)
		require.Empty(t, met[f], "%s would answer from the entries of %s", d, met[f])
		met[f] = d
	}
	require.Equal(t, fingerprint("{membership: a}"), fingerprint("{membership: a, type: string}"), "a type changes no key")
}

func TestTooManyIndexesAreRefused(t *testing.T) {
	text := "owner: a\nentity: b\nversion: 1\nid: id\nlifetime: forever\nindexes:\n"
	for i := range 40 {
		text += fmt.Sprintf("  i%d: {membership: f}\n", i)
	}
	_, err := ReadSchema("s.yaml", []byte(text))
	require.ErrorContains(t, err, "the budget is")
}
