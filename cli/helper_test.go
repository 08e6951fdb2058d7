package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/quakes"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
)

const quakeSchema = `owner: usgs:feed
entity: quake
version: 1
id: id
lifetime: forever
indexes:
  status: {membership: status}
  net: {membership: net}
  source: {membership: sources, split: ","}
`

// tool runs commands in process against one server.
type tool struct {
	t        *testing.T
	entities []index.Declared
	env      map[string]string
	flags    []string // before every command
	terminal bool
	opaque   func(index.Declared) opaque.Options
	writes   int // of the race of the demonstration, 0 for as many as it has
}

// answer is what a command gave.
type answer struct {
	code     int
	out, err string
}

// newTool is a tool with a schema file on a server.
func newTool(t *testing.T, s *redistest.Server, schema string) *tool {
	t.Helper()
	return &tool{
		t: t, env: map[string]string{envRedis: s.URL()},
		flags: []string{"--timeout", "10s", "-s", write(t, "schema.yaml", schema)},
	}
}

func (c *tool) run(args ...string) answer { c.t.Helper(); return c.input("", args...) }

// input runs a command with a standard input.
func (c *tool) input(stdin string, args ...string) answer {
	c.t.Helper()
	var out, stderr bytes.Buffer
	a := New(c.entities...)
	a.Name, a.Stdin, a.Stdout, a.Stderr = "lockstep", strings.NewReader(stdin), &out, &stderr
	a.Getenv = func(name string) string { return c.env[name] }
	a.Opaque = c.opaque
	if c.writes > 0 {
		a.raceWrites = c.writes
	}
	if c.terminal {
		a.isTerminal = func(stream any) bool { return stream != a.Stdin }
	}
	code := a.Run(c.t.Context(), append(slices.Clone(c.flags), args...))
	return answer{code, out.String(), stderr.String()}
}

// fine runs a command that must succeed without a word on standard error, and gives its output without the last line end.
func (c *tool) fine(args ...string) string {
	c.t.Helper()
	return c.fineInput("", args...)
}

func (c *tool) fineInput(stdin string, args ...string) string {
	c.t.Helper()
	a := c.input(stdin, args...)
	require.Equal(c.t, answer{0, a.out, ""}, a, "%v", args)
	return strings.TrimSuffix(a.out, "\n")
}

// refused runs a command that must end with a code and errors, each of which holds one of texts.
func (c *tool) refused(code int, args []string, texts ...string) answer {
	c.t.Helper()
	a := c.run(args...)
	require.Equal(c.t, code, a.code, "%v\n%s%s", args, a.out, a.err)
	for _, text := range texts {
		require.Contains(c.t, a.err, text, "%v", args)
	}
	require.NotEmpty(c.t, a.err, "%v", args)
	return a
}

// opened is the entity type of the schema, as a program opens it.
func (c *tool) opened() index.Opened {
	c.t.Helper()
	file := c.flags[slices.Index(c.flags, "-s")+1]
	text, err := os.ReadFile(file)
	require.NoError(c.t, err)
	e, err := ReadSchema(file, text)
	require.NoError(c.t, err)
	o, err := redis.ParseURL(c.env[envRedis])
	require.NoError(c.t, err)
	rdb := redis.NewClient(o)
	c.t.Cleanup(func() { _ = rdb.Close() })
	opened, err := e.OpenErased(c.t.Context(), rdb)
	require.NoError(c.t, err)
	return opened
}

// write makes a file in a directory of its own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sorted are the lines of an output, sorted.
func sorted(out string) []string {
	if out == "" {
		return nil
	}
	lines := strings.Split(out, "\n")
	slices.Sort(lines)
	return lines
}

// quakeFile is the file of all earthquakes, with change applied to each line.
func quakeFile(t *testing.T, change func(string) string) string {
	t.Helper()
	var b strings.Builder
	for line := range quakes.Lines() {
		fmt.Fprintln(&b, change(string(line)))
	}
	return write(t, "quakes.jsonl", b.String())
}

func same(line string) string { return line }
