package lua

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script, not a safeguard
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed common.lua
var commonSource string

//go:embed floor.lua
var floorSource string

//go:embed apply.lua
var applySource string

//go:embed read.lua
var readSource string

//go:embed find.lua
var findSource string

//go:embed rank.lua
var rankSource string

//go:embed count.lua
var countSource string

//go:embed touch.lua
var touchSource string

//go:embed due.lua
var dueSource string

//go:embed retire.lua
var retireSource string

//go:embed enter.lua
var enterSource string

//go:embed register.lua
var registerSource string

//go:embed probe.lua
var probeSource string

//go:embed inspect.lua
var inspectSource string

//go:embed fence.lua
var fenceSource string

//go:embed ready.lua
var readySource string

//go:embed refloor.lua
var refloorSource string

// script is one constant text that the server runs, known to it by its SHA-1.
type script struct {
	name   string
	source string
	sha    string
	reads  bool // writes nothing: may go to a replica where the server has EVALSHA_RO
}

var (
	applyScript    = newScript("apply", floorSource+applySource, false)
	readScript     = newScript("read", readSource, true)
	findScript     = newScript("find", findSource, true)
	rankScript     = newScript("rank", rankSource, true)
	countScript    = newScript("count", countSource, true)
	touchScript    = newScript("touch", touchSource, false)
	dueScript      = newScript("due", dueSource, true)
	retireScript   = newScript("retire", retireSource, false)
	enterScript    = newScript("enter", enterSource, false)
	registerScript = newScript("register", registerSource, false)
	probeScript    = newScript("probe", probeSource, false)
	inspectScript  = newScript("inspect", inspectSource, true)
	fenceScript    = newScript("fence", fenceSource, false)
	readyScript    = newScript("ready", readySource, false)
	refloorScript  = newScript("refloor", refloorSource, false)

	scripts = []*script{
		applyScript, readScript, findScript, rankScript, countScript,
		touchScript, dueScript, retireScript, enterScript, registerScript, probeScript,
		inspectScript, fenceScript, readyScript, refloorScript,
	}
)

func newScript(name, body string, reads bool) *script {
	source := "-- lockstep " + name + "\n" + compact(commonSource) + compact(body)
	sum := sha1.Sum([]byte(source)) //nolint:gosec // as above
	return &script{name: name, source: source, sha: hex.EncodeToString(sum[:]), reads: reads}
}

// compact leaves comments and indentation out of a Lua text. A server compiles a script once; the embedded one does at each
// call. The lines stay, so that the line of an error, less one and those of the texts before it, is that of the file.
func compact(source string) string {
	var b strings.Builder
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Sources gives the text of every script by the SHA-1 under which it is sent, for tests that run the scripts under
// watch and for operators who want to know what EVALSHA names.
func Sources() map[string]string {
	m := make(map[string]string, len(scripts))
	for _, s := range scripts {
		m[s.sha] = s.source
	}
	return m
}

// command is a script call that the client must not send twice: only the code that knows the write id may repeat it.
type command struct{ *redis.Cmd }

// NoRetry keeps go-redis from sending the command again after a timeout or a broken connection.
func (command) NoRetry() bool { return true }
