package lua

import (
	"context"
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

//go:embed *.lua
var luaFiles embed.FS

// header is the contract that stands at the top of a .lua file.
type header struct {
	purpose string
	section map[string][]string // name -> its lines
	body    string
}

var sections = []string{"KEYS", "ARGV", "Returns", "Errors", "Cost"}

var titleLine = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// headerOf takes the header of a script apart and fails the test if a section is missing, empty or out of order.
func headerOf(t *testing.T, name string) header {
	t.Helper()
	text, err := luaFiles.ReadFile(name + ".lua")
	require.NoError(t, err)
	h := header{section: map[string][]string{}}
	var order []string
	current := ""
	rest := string(text)
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(line, "--") {
			break
		}
		rest = after
		line = strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(line, "--"), " "), " ")
		switch {
		case h.purpose == "":
			require.True(t, strings.HasPrefix(line, name+": "), "%s.lua begins with its name and purpose", name)
			h.purpose = strings.TrimPrefix(line, name+": ")
		case titleLine.MatchString(line):
			current = line
			order = append(order, line)
		case line != "" && current != "":
			h.section[current] = append(h.section[current], line)
		}
	}
	h.body = rest
	require.NotEmpty(t, h.purpose, name)
	if slices.Contains(shared, name) {
		return h
	}
	require.Equal(t, sections, order, "%s.lua: every section, in this order", name)
	for _, s := range sections {
		require.NotEmpty(t, h.section[s], "%s.lua: %s says nothing", name, s)
	}
	return h
}

// shared are the texts that scripts begin with.
var shared = []string{"common", "floor"}

// positions are the names that KEYS or ARGV lists, in order, and whether the last of them repeats.
func (h header) positions(section string) (names []string, open bool) {
	line := regexp.MustCompile(`^  \d\S*( \.\.(?: \S+)?)? +(\S+)`)
	for _, l := range h.section[section] {
		if m := line.FindStringSubmatch(l); m != nil {
			names = append(names, m[2])
			open = m[1] != ""
		}
	}
	return names, open
}

var (
	listedReply = regexp.MustCompile(`\{'([a-z]+)'`)
	codedReply  = regexp.MustCompile(`(?:return|reply =|refuse\(i,) \{'([a-z]+)'`)
)

// codes are the first words of the replies that a text names.
func codes(reply *regexp.Regexp, text string) []string {
	set := map[string]bool{}
	for _, m := range reply.FindAllStringSubmatch(text, -1) {
		set[m[1]] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// canned answers every script with a reply of the test's and keeps what was sent.
type canned struct {
	redis.Hook
	reply any
	sent  *[]any
}

func (c canned) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c canned) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c canned) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		*c.sent = cmd.Args()
		cmd.(command).SetVal(c.reply)
		return nil
	}
}

// wrappers call the Go wrapper of each script with two of everything, keys named as the header names them.
var wrappers = map[string]func(context.Context, *Runner) error{
	"apply": func(ctx context.Context, r *Runner) error {
		_, err := r.Apply(ctx, ApplyCall{
			Meta: "meta", Manifest: "manifest", Expiry: "expiry", Floor: "floor", Generation: 1, Entries: []string{"entries 1", "entries 2"},
			Records: []ApplyRecord{
				{Key: "records 1", ID: "a", WriteID: "12345678", Mode: Put, Ops: []Op{{Code: Add}, {Code: Remove, Key: 1}}},
				{Key: "records 2", ID: "b", WriteID: "12345678", Mode: Delete},
			},
		})
		return err
	},
	"read": func(ctx context.Context, r *Runner) error {
		_, _, err := r.Read(ctx, "meta", "manifest", []string{"records 1", "records 2"}, []string{"a", "b"}, true)
		return err
	},
	"find": func(ctx context.Context, r *Runner) error {
		_, err := r.Find(ctx, FindCall{Meta: "meta", Expiry: "expiry", Entries: "entries", State: "index:a.1", Cursor: "0", Page: 10})
		return err
	},
	"count": func(ctx context.Context, r *Runner) error {
		_, err := r.Count(ctx, "meta", "expiry", "index:a.1", []string{"entries 1", "entries 2"})
		return err
	},
	"enter": func(ctx context.Context, r *Runner) error {
		_, err := r.Enter(ctx, "meta", "manifest", 1, Ready, "e", []string{"index:a.1", "index:b.1"})
		return err
	},
	"register": func(ctx context.Context, r *Runner) error {
		_, err := r.Register(ctx, RegisterCall{Catalog: "catalog", Indexes: []IndexDefinition{{"a", "f"}, {"b", "g"}}})
		return err
	},
	"probe": func(ctx context.Context, r *Runner) error { return r.Probe(ctx, "probe") },
	"inspect": func(ctx context.Context, r *Runner) error {
		_, _, err := r.Inspect(ctx, InspectCall{Manifest: "manifest", Expiry: "expiry", Floor: "floor", Records: []InspectRecord{
			{Key: "records 1", ID: "a", Questions: []Question{{Key: "entries 1", Member: "a"}}},
			{Key: "records 2", ID: "b", Questions: []Question{{Key: "entries 2", Member: "b", Scored: true, Floor: "recent.1"}}},
		}})
		return err
	},
	"fence": func(ctx context.Context, r *Runner) error { return r.Fence(ctx, "meta", 1, "nonce") },
	"ready": func(ctx context.Context, r *Runner) error {
		return r.Ready(ctx, "meta", 1, "nonce", 7, []string{"index:a.1", "index:b.1"})
	},
	"touch": func(ctx context.Context, r *Runner) error {
		return r.Touch(ctx, "meta", "expiry", "record", "a", Forever)
	},
	"due": func(ctx context.Context, r *Runner) error {
		_, _, err := r.Due(ctx, "meta", "manifest", "expiry", 10, 0)
		return err
	},
	"retire": func(ctx context.Context, r *Runner) error {
		_, err := r.Retire(ctx, "meta", "manifest", "expiry", "floor", "e")
		return err
	},
	"rank": func(ctx context.Context, r *Runner) error {
		_, err := r.Rank(ctx, RankCall{Meta: "meta", Expiry: "expiry", Floor: "floor", Entries: "entries", State: "index:a.1", Body: "a.1", Limit: 10})
		return err
	},
	"refloor": func(ctx context.Context, r *Runner) error {
		return r.Refloor(ctx, "floor", "recent.1", "1", "1 4 1 b")
	},
}

// wrapped runs a wrapper against a canned reply and gives its error and the KEYS and ARGV that it sent.
func wrapped(t *testing.T, name string, reply any) (keys, args []string, err error) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:0"})
	t.Cleanup(func() { _ = rdb.Close() })
	var sent []any
	rdb.AddHook(canned{reply: reply, sent: &sent})
	err = wrappers[name](t.Context(), NewRunner(rdb, Retry{Budget: -1}, nil))
	n := sent[2].(int)
	for i, a := range sent[3:] {
		if text, ok := a.(*string); ok {
			a = *text
		}
		if i < n {
			keys = append(keys, a.(string))
			continue
		}
		args = append(args, fmt.Sprint(a))
	}
	return keys, args, err
}

func TestEveryScriptHasAHeaderAndAWrapper(t *testing.T) {
	files, err := luaFiles.ReadDir(".")
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".lua")
		headerOf(t, name)
		if !slices.Contains(shared, name) {
			names = append(names, name)
		}
	}
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(wrappers)), "a new script needs its case in this test")
	require.Len(t, scripts, len(names))
	for _, s := range scripts {
		require.Contains(t, names, s.name)
	}
}

func TestAWrapperSendsItsKeysWhereTheHeaderSays(t *testing.T) {
	for name := range wrappers {
		want, open := headerOf(t, name).positions("KEYS")
		keys, _, _ := wrapped(t, name, []any{"ok"})
		var got []string
		for _, k := range keys {
			base, _, _ := strings.Cut(k, " ")
			if len(got) == 0 || got[len(got)-1] != base {
				got = append(got, base)
			}
		}
		require.Equal(t, want, got, "%s.lua: KEYS", name)
		require.Equal(t, open, strings.HasSuffix(keys[len(keys)-1], " 2"), "%s.lua: the last of KEYS repeats", name)
	}
}

func TestAWrapperSendsAsManyArgumentsAsTheHeaderSays(t *testing.T) {
	// What comes after the fixed arguments, for the calls above.
	repeated := map[string]int{"apply": 2*3 + 2*6 + 2*(3+1), "enter": 2, "register": 4, "read": 2, "inspect": 2*2 + 2*4, "ready": 2}
	for name := range wrappers {
		fixed, open := headerOf(t, name).positions("ARGV")
		n := len(fixed)
		if open {
			n--
		}
		_, args, _ := wrapped(t, name, []any{"ok"})
		require.Len(t, args, n+repeated[name], "%s.lua: ARGV", name)
	}
}

func TestAScriptReturnsOnlyWhatItsHeaderSays(t *testing.T) {
	common := headerOf(t, "common")
	for name := range wrappers {
		h := headerOf(t, name)
		body := h.body
		for _, helper := range []string{"unready", "typed"} {
			if strings.Contains(body, helper+"(") {
				_, text, found := strings.Cut(common.body, "local function "+helper)
				require.True(t, found, helper)
				text, _, _ = strings.Cut(text, "\nend\n")
				body += text
			}
		}
		require.Equal(t, codes(listedReply, strings.Join(h.section["Returns"], "\n")), codes(codedReply, body), "%s.lua: Returns against the code", name)
	}
}

func TestEveryReplyOfAHeaderIsUnderstoodByItsWrapper(t *testing.T) {
	named := map[string]bool{}
	for name := range wrappers {
		returns := headerOf(t, name).section["Returns"]
		if name == "apply" {
			returns = returns[:slices.Index(returns, "A status is")]
		}
		for _, code := range codes(listedReply, strings.Join(returns, "\n")) {
			named[code] = true
			if code == "ok" {
				continue
			}
			_, _, err := wrapped(t, name, []any{code, int64(1), "x"})
			if code == "new" {
				require.NoError(t, err)
				continue
			}
			require.Error(t, err, "%s: {'%s'}", name, code)
			require.NotContains(t, err.Error(), "unexpected reply", "%s: {'%s'}", name, code)
		}
		_, _, err := wrapped(t, name, []any{"nonsense"})
		require.ErrorContains(t, err, "unexpected reply", name)
	}
	known := casesOf(t, "reply.go", "refusal")
	require.NotEmpty(t, known)
	for _, code := range known {
		require.True(t, named[code], "refusal() knows %q, no header does", code)
	}
}

func TestEveryStatusOfApplyHasItsConstant(t *testing.T) {
	returns := headerOf(t, "apply").section["Returns"]
	returns = returns[slices.Index(returns, "A status is")+1:]
	var listed []string
	for _, line := range returns {
		switch fields := strings.Fields(line); fields[0] {
		case "1":
			listed = append(listed, string(Written))
		case "2":
			listed = append(listed, string(Repeated))
		default:
			listed = append(listed, codes(listedReply, line)...)
		}
	}
	require.ElementsMatch(t, statusConstants(t), listed)

	for _, code := range listed {
		raw := any([]any{code, int64(1), "found", "row"})
		if i := slices.Index([]string{string(Written), string(Repeated)}, code); i >= 0 {
			raw = int64(i + 1)
		}
		st, err := reply{"apply", []any{raw}, []string{"meta"}}.status(0)
		require.NoError(t, err, code)
		require.Equal(t, StatusCode(code), st.Code)
	}
	for _, raw := range []any{int64(0), int64(3), "ok", nil, []any{}, []any{"written"}, []any{"nonsense"}} {
		_, err := reply{"apply", []any{raw}, nil}.status(0)
		require.ErrorContains(t, err, "unexpected reply", "%v", raw)
	}
}

// statusConstants are the values of the constants of type StatusCode.
func statusConstants(t *testing.T) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "apply.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "StatusCode" {
				s, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				out = append(out, s)
			}
		}
		return true
	})
	return out
}

// casesOf are the texts of the case clauses in a function.
func casesOf(t *testing.T, file, function string) (out []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != function {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok {
				for _, x := range c.List {
					s, err := strconv.Unquote(x.(*ast.BasicLit).Value)
					require.NoError(t, err)
					out = append(out, s)
				}
			}
			return true
		})
	}
	return out
}
