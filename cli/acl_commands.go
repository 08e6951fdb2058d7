package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/lua"
)

// What the client sends. The server checks the commands of a script against the user that called it, so those come on top.
const (
	clientReads   = "eval_ro evalsha_ro get mget hmget"
	clientWrites  = "eval evalsha hset scan info multi exec"        // when an entity type is opened: are there records, does the server evict?
	clientRepair  = "scan hgetall hlen hscan sscan zscan time type" // of package repair
	clientCluster = "asking cluster|slots command readonly"
	clientReads6  = "eval evalsha" // where there is nothing that ends with _ro
)

// harmless are the commands by which a script that only uses them is known as one that a query sends.
const harmless = "exists get hget hgetall hmget mget pttl scard smembers smismember srandmember sscan time type zcard zcount " +
	"zlexcount zmscore zrange zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore zrevrank zscore"

// scriptCall is how a script names a command, in a call or in the list of those that Open tries.
var scriptCall = regexp.MustCompile(`[({]'([A-Z]{2,})'`)

// scriptCommands are the commands of the scripts: of all, or of those that only read. They are taken from the scripts
// themselves, so that the rule never falls behind.
func scriptCommands(readOnly bool) []string {
	reads := strings.Fields(harmless)
	var out []string
	for _, source := range lua.Sources() {
		var called []string
		for _, m := range scriptCall.FindAllStringSubmatch(source, -1) {
			called = append(called, strings.ToLower(m[1]))
		}
		writes := slices.ContainsFunc(called, func(c string) bool { return !slices.Contains(reads, c) })
		if !readOnly || !writes {
			out = append(out, called...)
		}
	}
	return out
}

// commands are those of the rule, sorted.
func (f aclFlags) commands() []string {
	out := append(scriptCommands(f.readOnly), strings.Fields(clientReads)...)
	if !f.readOnly {
		out = append(out, strings.Fields(clientWrites)...)
	}
	if !f.readOnly || f.verify {
		out = append(out, strings.Fields(clientRepair)...)
	}
	if f.before7 {
		out = slices.DeleteFunc(out, func(c string) bool { return strings.HasSuffix(c, "_ro") })
		out = append(out, strings.Fields(clientReads6)...)
	}
	if f.cluster {
		out = append(out, strings.Fields(clientCluster)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
