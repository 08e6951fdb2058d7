package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSchema reads texts as schema files: each is a declaration, or an error that names file and line.
func FuzzSchema(f *testing.F) {
	f.Add(schemaExample)
	f.Add("owner: a\nentity: b\nversion: 1\nid: id\nlifetime: 3s\nindexes: {x: {ranked: r, keep: 3, within: g}}")
	f.Add("a: &a [*a]\n<<: *a")
	f.Add("owner: [\nversion: 99999999999999999999")
	f.Add("---\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ReadSchema("f.yaml", []byte(text))
		if err != nil {
			require.Nil(t, e)
			for line := range strings.Lines(err.Error()) {
				require.True(t, strings.HasPrefix(line, "f.yaml:"), "a line that names no place: %q", line)
			}
			return
		}
		require.NoError(t, e.Err())
		require.NotEmpty(t, e.Fingerprint())
	})
}
