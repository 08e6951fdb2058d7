package lockstep_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const (
	module   = "github.com/lockstep-go/lockstep"
	maxLines = 450 // of any Go file
)

// Modules outside the standard library.
const (
	goRedis      = "github.com/redis/go-redis/v9"
	xSync        = "golang.org/x/sync"
	xText        = "golang.org/x/text"
	xTime        = "golang.org/x/time"
	xTerm        = "golang.org/x/term"
	yaml         = "go.yaml.in/yaml/v3"
	progressbar  = "github.com/schollz/progressbar/v3"
	tables       = "github.com/jedib0t/go-pretty/v6"
	cobra        = "github.com/spf13/cobra"
	pflag        = "github.com/spf13/pflag"
	modMiniredis = "github.com/alicebob/miniredis/v2"
	testify      = "github.com/stretchr/testify"
	rapid        = "pgregory.net/rapid"
	porcupine    = "github.com/anishathalye/porcupine"
	goleak       = "go.uber.org/goleak"
)

// graph says, for every package, what its files other than tests may import: folders of this module, and modules outside
// the standard library. Imports only go down. A package that is not here fails the test, so that a new one is a decision.
var graph = map[string][]string{
	".":                  {},
	"key":                {},
	"internal/plan":      {"key"},
	"internal/primaries": {goRedis},
	"internal/typed":     {"key"},
	"internal/gather":    {},
	"internal/pace":      {xTime},
	"lua":                {"internal/gather", "key", goRedis},
	"index":              {"lua", "key", "internal/gather", "internal/plan", "internal/primaries", goRedis, xSync},
	"membership":         {"index", "key", "internal/plan", "internal/typed", xText},
	"ranked":             {"index", "key", "internal/plan", "internal/typed"},

	"repair":  {"index", "lua", "key", "internal/pace", "internal/plan", goRedis, xSync, xTime},
	"migrate": {"index", "lua", "key", "internal/plan", goRedis, xSync, xTime},

	"opaque":             {"index", "lua", "key", "internal/pace", "internal/plan", xSync, xTime},
	"opaque/rediskv":     {"opaque", "key", goRedis},
	"opaque/memcachekv":  {"opaque", "key"},
	"opaque/memkv":       {"opaque", "key"},
	"opaque/opaquetest":  {"opaque", "key", testify},
	"internal/redistest": {goRedis, xSync, modMiniredis, testify, rapid, porcupine, goleak},
	"internal/proof":     {}, // tests only
	"internal/quakes":    {},
	"indextest": {
		"repair", "ranked", "membership", "index", "lua", "key", "internal/plan", "internal/redistest",
		goRedis, modMiniredis, testify, rapid, porcupine, goleak,
	},

	"bench": {"repair", "ranked", "membership", "index", "internal/primaries", goRedis, xSync},

	"cli": {
		"bench", "migrate", "repair", "opaque", "opaque/rediskv", "opaque/memcachekv", "opaque/memkv",
		"ranked", "membership", "index", "lua", "key", "internal/plan", "internal/primaries", "internal/quakes",
		goRedis, xSync, xText, xTime, xTerm, yaml, progressbar, tables, cobra, pflag, modMiniredis,
	},
	"cmd/lockstep": {"cli", "repair", "ranked", "membership", "index", "key"},
}

// reserved says which packages alone may use a module or a folder outside of tests, whatever graph allows: what only
// tests need never reaches a user's binary.
var reserved = map[string][]string{
	testify:              {"indextest", "internal/redistest", "opaque/opaquetest"},
	modMiniredis:         {"indextest", "internal/redistest", "cli"}, // cli: the embedded server of the demo
	rapid:                {"indextest", "internal/redistest"},
	porcupine:            {"indextest", "internal/redistest"},
	goleak:               {"indextest", "internal/redistest"},
	cobra:                {"cli"},
	pflag:                {"cli"},
	"indextest":          {},
	"internal/redistest": {"indextest"},
}

// Only these packages send scripts, and only these spell the marks of index and bookkeeping keys.
var (
	scriptSenders = []string{"lua", "internal/redistest"}
	keyMakers     = []string{"key", "internal/redistest"}

	scriptMethods  = []string{"Eval", "EvalSha", "EvalRO", "EvalShaRO", "ScriptLoad", "NewScript", "FCall", "FCallRO", "FCallRo"}
	scriptCommands = []string{"eval", "evalsha", "eval_ro", "evalsha_ro", "script load", "fcall", "fcall_ro"}
	keyMarks       = []string{":~", "~~"}
)

func TestImportsOnlyGoDown(t *testing.T) {
	found, files := violations(t, os.DirFS("."))
	require.Positive(t, files, "no Go file was looked at")
	require.Empty(t, found, strings.Join(found, "\n"))
}

// Each rule is broken once, so that a guard that has gone blind shows.
func TestTheGraphGuardSeesEachViolation(t *testing.T) {
	imports := func(name string, paths ...string) string {
		src := "package " + name + "\n"
		for _, p := range paths {
			src += "import _ " + strconv.Quote(p) + "\n"
		}
		return src
	}
	for _, c := range []struct{ file, src, want string }{
		{"key/x.go", imports("key", "fmt", "crypto/sha256"), ""},
		{"key/x.go", imports("key", xText+"/cases"), "key may not import " + xText},
		{"key/x.go", imports("key", module+"/lua"), "key may not import " + module + "/lua"},
		{"key/x_test.go", imports("key", module+"/internal/redistest", testify+"/require"), ""},
		{"lua/x.go", imports("lua", goRedis, module+"/key"), ""},
		{"lua/x.go", imports("lua", module+"/index"), "lua may not import"},
		{"internal/plan/x.go", imports("plan", goRedis), "internal/plan may not import"},
		{"index/x.go", imports("index", module+"/membership"), "index may not import"},
		{"index/x.go", imports("index", goRedis, xSync+"/errgroup", module+"/internal/plan"), ""},
		{"index/x.go", imports("index", testify+"/require"), "reserved"},
		{"index/x.go", imports("index", module+"/indextest"), "reserved"},
		{"membership/x.go", imports("membership", module+"/ranked"), "membership may not import"},
		{"repair/x.go", imports("repair", module+"/cli"), "repair may not import"},
		{"repair/x.go", imports("repair", cobra), "reserved"},
		{"internal/redistest/x.go", imports("redistest", module+"/key"), "internal/redistest may not import"},
		{"cli/x.go", imports("cli", cobra, modMiniredis, module+"/index"), ""},
		{"cli/x.go", imports("cli", module+"/cmd/lockstep"), "cli may not import"},
		{"cli/x.go", imports("cli", module+"/internal/redistest"), "reserved"},
		{"cmd/lockstep/x.go", imports("main", goRedis), "cmd/lockstep may not import"},
		{"util/x.go", imports("util"), "is not in the graph"},
		{"util/x_test.go", imports("util"), "is not in the graph"},
		{"index/x.go", "package index\nfunc f() { rdb.EvalSha(ctx, sha, keys) }", "only package lua"},
		{"index/x.go", "package index\nvar s = redis.NewScript(text)", "only package lua"},
		{"index/x.go", "package index\nvar c = redis.NewCmd(ctx, `EVAL`, text)", "only package lua"},
		{"index/x_test.go", "package index\nvar c = redis.NewCmd(ctx, `eval`, text)", ""},
		{"internal/redistest/x.go", "package redistest\nvar c = `evalsha`", ""},
		{"lua/x.go", "package lua\nvar c = `evalsha`", ""},
		{"lua/x.go", "package lua\nvar k = prefix + \":~\" + name", "only package key"},
		{"cli/x.go", "package cli\nvar k = `~~meta`", "only package key"},
		{"cli/x.go", "package cli\n// a comment may name ~~meta", ""},
		{"cli/x.go", "package cli\n" + strings.Repeat("//\n", maxLines), "451 lines"},
		{"cli/x_test.go", "package cli\n" + strings.Repeat("//\n", maxLines), "451 lines"},
		{"cli/x.go", "package cli\n" + strings.Repeat("//\n", maxLines-1), ""},
	} {
		found, files := violations(t, fstest.MapFS{c.file: {Data: []byte(c.src)}})
		require.Equal(t, 1, files)
		if c.want == "" {
			require.Empty(t, found, "%s:\n%s", c.file, c.src)
			continue
		}
		require.Contains(t, strings.Join(found, "\n"), c.want, "%s:\n%s", c.file, c.src)
	}
}

// violations reads every Go file below root, whatever its build tags, and returns what breaks a rule and how many files
// there were.
func violations(t *testing.T, root fs.FS) (found []string, files int) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(base) != ".go" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files++
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found = append(found, checkFile(fset, file, name, src)...)
		return nil
	})
	require.NoError(t, err)
	return found, files
}

func checkFile(fset *token.FileSet, file *ast.File, name string, src []byte) (found []string) {
	report := func(pos token.Pos, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: ", fset.Position(pos))+fmt.Sprintf(format, args...))
	}
	pkg := path.Dir(name)
	if n := strings.Count(string(src), "\n"); n > maxLines {
		report(file.Package, "%d lines, at most %d: split the file by what it holds", n, maxLines)
	}
	allowed, known := graph[pkg]
	if !known {
		report(file.Package, "package %s is not in the graph: say in graph_test.go what it may import", pkg)
		return found
	}
	if strings.HasSuffix(name, "_test.go") {
		return found
	}

	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			report(spec.Pos(), "%v", err)
			continue
		}
		unit, standard := unitOf(imported)
		if standard {
			continue
		}
		if users, only := reserved[unit]; only && !slices.Contains(users, pkg) {
			report(spec.Pos(), "%s may not import %s, which is reserved for %v and tests", pkg, imported, users)
		} else if !slices.Contains(allowed, unit) {
			report(spec.Pos(), "%s may not import %s: imports only go down (graph_test.go)", pkg, imported)
		}
	}

	sends, makes := slices.Contains(scriptSenders, pkg), slices.Contains(keyMakers, pkg)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			if !sends && slices.Contains(scriptMethods, n.Sel.Name) {
				report(n.Pos(), "%s: only package lua sends scripts", n.Sel.Name)
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(n.Value)
			if err != nil {
				report(n.Pos(), "%v", err)
				return true
			}
			if !sends && slices.Contains(scriptCommands, strings.ToLower(text)) {
				report(n.Pos(), "%s: only package lua sends scripts", n.Value)
			}
			for _, mark := range keyMarks {
				if !makes && strings.Contains(text, mark) {
					report(n.Pos(), "%s holds %s: only package key makes keys", n.Value, mark)
				}
			}
		}
		return true
	})
	return found
}

// unitOf returns what graph calls an import path: the folder for a package of this module, else its module.
func unitOf(imported string) (unit string, standard bool) {
	if imported == module {
		return ".", false
	}
	if folder, ok := strings.CutPrefix(imported, module+"/"); ok {
		return folder, false
	}
	if host, _, _ := strings.Cut(imported, "/"); !strings.Contains(host, ".") {
		return "", true
	}
	for _, m := range []string{
		goRedis, xSync, xText, xTime, xTerm, yaml, progressbar, tables, cobra, pflag, modMiniredis, testify, rapid, porcupine, goleak,
	} {
		if imported == m || strings.HasPrefix(imported, m+"/") {
			return m, false
		}
	}
	return imported, false
}
