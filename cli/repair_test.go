package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// passOf is what verify, repair and build give with --json.
type passOf struct {
	Records, Entries, Missing, Stale, Orphan, Misranked, Undecodable, Foreign, Fixed int64

	NotReady []string `json:"not_ready"`
	Findings []struct {
		Kind, Index, ID, Key string
		Fixed                bool
	}
}

// pass runs a pass with --json, which must end with a code.
func (c *tool) pass(code int, args ...string) passOf {
	c.t.Helper()
	a := c.run(append(args, "--json")...)
	require.Equal(c.t, code, a.code, "%v: %s%s", args, a.out, a.err)
	require.Equal(c.t, 1, strings.Count(a.out, "\n"), "one object: %s", a.out)
	for _, field := range strings.Fields("records entries missing stale orphan misranked undecodable foreign fixed findings") {
		require.Contains(c.t, a.out, fmt.Sprintf("%q:", field))
	}
	var p passOf
	require.NoError(c.t, json.Unmarshal([]byte(a.out), &p))
	return p
}

const damageSchema = `owner: o
entity: e
version: 1
id: id
lifetime: forever
indexes:
  tag: {membership: tag}
  rank: {ranked: v, keep: 100}
`

// damaged is a tool over ten records whose indexes hold one finding of each kind of an entry.
func damaged(t *testing.T, s *redistest.Server) *tool {
	t.Helper()
	c := newTool(t, s, damageSchema)
	for i := range 10 {
		c.fineInput(fmt.Sprintf(`{"id":"r%d","tag":"a","v":%d}`, i, i), "put")
	}
	ctx, rdb := t.Context(), s.Client(t)
	const tag, rank = "o:e:{e}:~tag.1:a:v1", "o:e:{e}:~rank.1:v1"
	require.EqualValues(t, 1, rdb.SRem(ctx, tag, "r1").Val())
	require.EqualValues(t, 1, rdb.SAdd(ctx, "o:e:{e}:~tag.1:b:v1", "r2").Val())
	require.EqualValues(t, 1, rdb.SAdd(ctx, tag, "ghost").Val())
	require.NoError(t, rdb.ZAdd(ctx, rank, redis.Z{Score: 77, Member: "r3"}).Err())
	return c
}

func TestVerifyFindsRepairFixesAndTheExitCodeSaysIt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := damaged(t, s)
		before := redistest.Snapshot(t, s.Client(t))
		found := c.pass(1, "verify")
		want := passOf{Records: 10, Entries: 20, Missing: 1, Stale: 1, Orphan: 1, Misranked: 1}
		require.Len(t, found.Findings, 4)
		found.Findings, found.NotReady = nil, nil
		require.Equal(t, want, found)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, s.Client(t))), "verify changed something")

		fixed := c.pass(0, "repair")
		require.EqualValues(t, 4, fixed.Fixed)
		for _, f := range fixed.Findings {
			require.True(t, f.Fixed, "%+v", f)
		}
		clean := c.pass(0, "verify")
		require.Empty(t, clean.Findings)
		require.Equal(t, []string{}, clean.NotReady, "a list, never null")
		require.EqualValues(t, 0, clean.Missing+clean.Stale+clean.Orphan+clean.Misranked+clean.Fixed)
		require.Equal(t, "10", c.fine("count", "tag=a"))
		require.Equal(t, "r9\nr8", c.fine("top", "rank", "--ids", "-n", "10")[:5])
	})
}

func TestAReportForPeopleIsATableWithTheFirstFindings(t *testing.T) {
	c := damaged(t, redistest.Mini(t))
	a := c.run("verify", "--findings", "3")
	require.Equal(t, 1, a.code)
	require.Empty(t, a.err)
	require.Regexp(t, `^verify o:e: 10 records, 20 entries in \S+\n`, a.out)
	require.Regexp(t, `\nmissing +1\nstale +1\norphan +1\nmisranked +1\nundecodable +0\nforeign +0\nfixed +0\n`, a.out)
	require.Regexp(t, `\nkind +index +id +key +state\n`, a.out)
	require.Contains(t, a.out, "\nand 1 finding not shown (--findings N)\n4 findings left\n")
	require.Contains(t, c.run("verify", "--findings", "0").out, "fixed            0\n4 findings left\n")

	c.terminal = true
	a = c.run("repair", "--rate", "100000")
	require.Equal(t, 0, a.code)
	require.Contains(t, a.err, "repair records", "no progress bar")
	require.Contains(t, a.out, "\nclean: all that was found is fixed\n")
	c.terminal = false
	require.Regexp(t, `\nclean$`, c.fine("verify"))
}

func TestWhatNobodyCanFixIsReportedAndNotTouched(t *testing.T) {
	s := redistest.Redis(t)
	c := damaged(t, s)
	rdb := s.Client(t)
	require.NoError(t, rdb.Set(t.Context(), "o:e:{e}:r5:v1", "not JSON", 0).Err())
	require.EqualValues(t, 1, c.pass(1, "verify").Undecodable)
	require.EqualValues(t, 1, c.pass(1, "repair").Undecodable)
	require.Equal(t, "not JSON", rdb.Get(t.Context(), "o:e:{e}:r5:v1").Val())
	a := c.run("verify")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.out, "undecodable")
	require.Contains(t, a.out, "1 finding left")
}

func TestAnIndexThatIsNewAnswersWhenItIsBuilt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newTool(t, s, quakeSchema)
		c.fine("load", quakeFile(t, same))
		c = newTool(t, s, rankedQuakes)
		c.refused(2, []string{"top", "recent"}, "not ready")
		require.Equal(t, 0, c.run("load", quakeFile(t, same)).code)
		c.refused(2, []string{"top", "recent"}, "the index is not ready: recent is building")

		require.Equal(t, []string{"due", "recent", "strongest"}, c.pass(1, "verify").NotReady)
		built := c.pass(0, "build", "recent")
		require.EqualValues(t, 1707, built.Records)
		require.Equal(t, []string{"ci37868143", "ci37868135", "ci37868127"}, c.top("recent", "-n", "3").ids())
		c.refused(2, []string{"top", "due"}, "not ready")
		require.Equal(t, 0, c.run("build", "due", "--rate", "1000000").code)
		c.pass(0, "build", "strongest")
		require.Equal(t, "1214", c.fine("count", "status=reviewed"))
		c.pass(0, "verify")
	})
}

func TestAPassThatCannotRunEndsWithTwo(t *testing.T) {
	c := newTool(t, redistest.Mini(t), damageSchema)
	a := c.refused(2, []string{"verify"}, "not ready")
	require.Empty(t, a.out)
	c.env[envRedis] = "redis://127.0.0.1:1"
	c.refused(2, []string{"repair"}, "cannot reach the server")
}
