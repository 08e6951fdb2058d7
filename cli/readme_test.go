package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// TestTheReadmesCommandsRunOnTheReadmesSchema runs every line that the README shows for its earthquakes.
func TestTheReadmesCommandsRunOnTheReadmesSchema(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	require.True(t, found)
	schema, rest, found := strings.Cut(rest, "```\n")
	require.True(t, found)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, schema)
		data := quakeFile(t, func(line string) string { return line })
		var ran []string
		for line := range strings.Lines(rest) {
			line, _, _ = strings.Cut(line, "#")
			for command := range strings.SplitSeq(line, " && ") {
				args, ours := strings.CutPrefix(strings.TrimSpace(command), "lockstep -s quake.yaml ")
				if !ours {
					continue
				}
				fields := strings.Fields(strings.ReplaceAll(args, "earthquakes.jsonl", data))
				a := c.run(fields...)
				require.Zero(t, a.code, "%s: %s", args, a.err)
				require.NotEmpty(t, a.out, args)
				ran = append(ran, fields[0])
			}
		}
		require.Equal(t, []string{"load", "count", "find", "top", "verify", "repair", "sweep", "acl"}, ran)
	})
}
