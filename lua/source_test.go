package lua

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

var commandCall = regexp.MustCompile(`(?:\b(?:call|pcall|each)\(|\b(?:and|or) )'([A-Z]{3,})'`)

// commandsOf are the server commands that a Lua text names in its calls and where it chooses between some.
func commandsOf(body string) []string {
	set := map[string]bool{}
	for _, m := range commandCall.FindAllStringSubmatch(body, -1) {
		set[m[1]] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func TestTheProbeTriesEveryCommandOfTheOtherScripts(t *testing.T) {
	var used []string
	for _, name := range append(slices.Collect(maps.Keys(wrappers)), shared...) {
		if name != "probe" {
			used = append(used, commandsOf(headerOf(t, name).body)...)
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	require.Contains(t, used, "SADD", "the search for commands works")
	require.Contains(t, used, "HDEL", "each() counts as a call")

	var tried []string
	for _, m := range regexp.MustCompile(`\{'([A-Z]+)'`).FindAllStringSubmatch(headerOf(t, "probe").body, -1) {
		tried = append(tried, m[1])
	}
	for _, command := range used {
		require.Contains(t, tried, command, "a user without %s would find out in the middle of a write", command)
	}
}

func TestTheProbeLeavesNothingBehindAndNamesADeniedCommand(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := t.Context()
		rdb := s.Client(t)
		redistest.Checked(rdb, Sources)
		require.NoError(t, NewRunner(rdb, Retry{}, nil).Probe(ctx, "acme:billing:account:{account}:~~probe:v1"))
		require.Empty(t, s.Keys(t))
	})
	t.Run("denied", func(t *testing.T) {
		s := redistest.Redis(t)
		ctx := context.Background()
		admin := s.Client(t)
		for _, command := range []string{"zadd", "srem", "hincrby"} {
			require.NoError(t, admin.Do(ctx, "ACL", "SETUSER", "default", "+@all", "-"+command).Err())
			err := NewRunner(admin, Retry{}, nil).Probe(ctx, "probe")
			require.ErrorIs(t, err, ErrDenied)
			require.ErrorContains(t, err, strings.ToUpper(command))
			require.Empty(t, s.Keys(t), "a probe that was refused cleans up")
		}
	})
}

// Lists of a length that the caller decides must be chunked. These are not of that kind.
var boundedUnpack = map[string]string{
	"apply unpack(bodies)": "a step of at most 1000",
	"probe unpack(step)":   "a constant of the script",
	"count unpack(due)":    "LIMIT 1000",
	"rank unpack(ids)":     "a step of at most 500",
}

func TestNoScriptUnpacksAListOfUnknownLength(t *testing.T) {
	chunked := regexp.MustCompile(`^unpack\(\w+, \w+(?: - 1)?, ((?:math\.)?min\(\w+(?:\[\w+\])? ?\+? ?\d*, #?\w+\)|to(?: - 1)?)\)`)
	plain := regexp.MustCompile(`^unpack\(\w+\)`)
	found := 0
	for _, name := range append(slices.Collect(maps.Keys(wrappers)), shared...) {
		body := headerOf(t, name).body
		for from := 0; ; {
			i := strings.Index(body[from:], "unpack(")
			if i < 0 {
				break
			}
			from += i
			found++
			at := body[from:]
			from += len("unpack(")
			if chunked.MatchString(at) {
				continue
			}
			use := plain.FindString(at)
			require.Contains(t, boundedUnpack, name+" "+use, "%s.lua: %.60q", name, at)
		}
	}
	require.Greater(t, found, 5, "the search works")
}

func TestNoUserDataEverBecomesPartOfAScript(t *testing.T) {
	for _, name := range append(slices.Collect(maps.Keys(wrappers)), shared...) {
		body := headerOf(t, name).body
		for _, bad := range []string{"loadstring", "load(", "dofile", "require", "redis.log", "cjson", "cmsgpack", "tostring("} {
			require.NotContains(t, body, bad, name)
		}
		for _, m := range regexp.MustCompile(`string\.format\(([^,)]*)`).FindAllStringSubmatch(body, -1) {
			require.Regexp(t, `^'[^']*'$`, m[1], "%s.lua: a format is a constant", name)
		}
		for _, m := range regexp.MustCompile(`KEYS\[[^\]]*\]\s*\.\.|\.\.\s*KEYS`).FindAllString(body, -1) {
			t.Errorf("%s.lua builds a name: %s", name, m)
		}
	}
	for sha, text := range Sources() {
		require.Len(t, sha, 40)
		require.Regexp(t, `^-- lockstep [a-z]+\n`, text, "a script is known by its first line")
		require.Contains(t, text, compact(commonSource))
	}
}

func TestAScriptThatGoesToReplicasWritesNothing(t *testing.T) {
	writes := regexp.MustCompile(`'(SET|MSET|DEL|HSET|HDEL|HINCRBY|SADD|SREM|ZADD|ZREM)'`)
	for _, s := range scripts {
		require.Equal(t, !s.reads, writes.MatchString(s.source), s.name)
	}
}
