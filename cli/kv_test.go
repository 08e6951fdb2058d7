package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/quakes"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memcachekv"
	"github.com/lockstep-go/lockstep/opaque/rediskv"
)

// bytesStore is a server as a store of bytes: how the tool reaches it, and how a test does behind its back.
type bytesStore struct {
	url string
	kv  opaque.KV
}

// remove takes a key away.
func (b bytesStore) remove(t *testing.T, key string) {
	t.Helper()
	item, err := b.kv.Get(t.Context(), key)
	require.NoError(t, err, key)
	require.NoError(t, b.kv.Delete(t.Context(), key, item.Token))
}

func onMemcached(t *testing.T) bytesStore {
	s := redistest.Memcached(t, "-M")
	kv := memcachekv.New(s.Addr)
	t.Cleanup(func() { require.NoError(t, kv.Close()) })
	return bytesStore{"memcache://" + s.Addr, kv}
}

func onRedis(t *testing.T) bytesStore {
	s := redistest.Redis(t, "--requirepass", "secret")
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Password: "secret", DB: 3})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	return bytesStore{"redis-opaque://:secret@" + s.Addr + "/3", rediskv.New(rdb)}
}

// eachBytesStore runs a test on a memcached and on a Redis.
func eachBytesStore(t *testing.T, fn func(t *testing.T, b bytesStore)) {
	t.Run("memcached", func(t *testing.T) { fn(t, onMemcached(t)) })
	t.Run("redis", func(t *testing.T) { fn(t, onRedis(t)) })
}

// newKVTool is a tool with a schema file on a store of bytes. LOCKSTEP_REDIS, which it must not look at, leads nowhere.
func newKVTool(t *testing.T, b bytesStore, schema string) *tool {
	t.Helper()
	return &tool{
		t: t, env: map[string]string{envRedis: "redis://127.0.0.1:1"},
		flags: []string{"--timeout", "10s", "--kv", b.url, "-s", write(t, "schema.yaml", schema)},
	}
}

// someQuakes is a file of every n-th earthquake, with the ids under their values.
func someQuakes(t *testing.T, n int) (file string, ids map[string][]string) {
	t.Helper()
	var b strings.Builder
	ids, i := map[string][]string{}, 0
	for line := range quakes.Lines() {
		if i++; i%n != 0 {
			continue
		}
		var q quake
		require.NoError(t, json.Unmarshal(line, &q))
		ids["status="+q.Status] = append(ids["status="+q.Status], q.ID)
		ids["net="+q.Net] = append(ids["net="+q.Net], q.ID)
		fmt.Fprintf(&b, "%s\n", line)
	}
	return write(t, "quakes.jsonl", b.String()), ids
}

func TestEveryEarthquakeIsFoundOnAStoreOfBytes(t *testing.T) {
	eachBytesStore(t, func(t *testing.T, b bytesStore) {
		every := 1
		if strings.HasPrefix(b.url, "redis") {
			every = 12
		}
		c := newKVTool(t, b, strings.Replace(quakeSchema, "{membership: net}", "{membership: net, buckets: 4}", 1))
		file, want := someQuakes(t, every)
		all := len(want["status=reviewed"]) + len(want["status=automatic"])
		require.Regexp(t, fmt.Sprintf(`^loaded %d records in \S+ \(\d+ records/s\)$`, all), c.fine("load", file))
		for _, condition := range []string{"status=reviewed", "status=automatic", "net=ci", "net=ak"} {
			require.Equal(t, fmt.Sprint(len(want[condition])), c.fine("count", condition), condition)
		}
		require.ElementsMatch(t, want["net=ci"], sorted(c.fine("find", "net=ci", "--ids")))
		require.Len(t, sorted(c.fine("find", "status=reviewed", "--limit", "3")), 3)

		moved := want["status=automatic"][0]
		record := c.fine("get", moved)
		require.Contains(t, record, `"status":"automatic"`)
		require.Equal(t, `{"id":"`+moved+`","written":true}`,
			c.fineInput(strings.Replace(record, "automatic", "reviewed", 1), "put", "--json"))
		require.Contains(t, sorted(c.fine("find", "status=reviewed", "--ids")), moved)
		require.Equal(t, fmt.Sprint(len(want["status=automatic"])-1), c.fine("count", "status=automatic"))

		gone := want["status=automatic"][1]
		a := c.run("delete", gone, "never")
		require.Equal(t, answer{1, "deleted " + gone + "\nnot found never\n", ""}, a)
		c.refused(1, []string{"get", gone}, "error: get usgs:feed:quake")
		require.Equal(t, fmt.Sprintf(`{"count":%d,"index":"status","value":"automatic"}`, len(want["status=automatic"])-2),
			c.fine("count", "status=automatic", "--json"))
	})
}

func TestVerifyAndRepairMendAStoreOfBytes(t *testing.T) {
	eachBytesStore(t, func(t *testing.T, b bytesStore) {
		c := newKVTool(t, b, quakeSchema)
		file, want := someQuakes(t, 40)
		c.fine("load", file)
		clean := c.pass(0, "verify")
		require.EqualValues(t, 42, clean.Records)
		require.Equal(t, passOf{Records: 42, Entries: clean.Entries, NotReady: []string{}, Findings: clean.Findings}, clean)

		list := "usgs:feed:quake:{}:~status.1:reviewed:v1"
		b.remove(t, list)
		lost := want["status=reviewed"]
		found := c.pass(1, "verify", "--findings", "2")
		require.EqualValues(t, len(lost), found.Missing)
		require.Len(t, found.Findings, 2)
		require.Equal(t, "missing", found.Findings[0].Kind)
		require.Equal(t, list, found.Findings[0].Key)
		require.Equal(t, "0", c.fine("count", "status=reviewed"))
		a := c.run("verify", "--findings", "1")
		require.Equal(t, 1, a.code)
		require.Regexp(t, `^verify usgs:feed:quake: 42 records, \d+ entries in \S+\n`, a.out)
		require.Regexp(t, fmt.Sprintf(`\nmissing +%d\nstale +0\norphan +0\npending +0\noutdated +0\nconflict +0\n`, len(lost)), a.out)
		require.Regexp(t, `\nmissing  status  \S+  `+regexp.QuoteMeta(list), a.out)
		require.Contains(t, a.out, fmt.Sprintf("\nand %d findings not shown (--findings N)\n%[2]d findings left\n", len(lost)-1, len(lost)))

		fixed := c.pass(0, "repair", "--rate", "100000")
		require.EqualValues(t, len(lost), fixed.Fixed)
		require.Equal(t, fmt.Sprint(len(lost)), c.fine("count", "status=reviewed"))
		c.terminal = true
		a = c.run("repair")
		require.Contains(t, a.err, "repair records", "no progress bar")
		require.Contains(t, a.out, "\nclean\n")
		a = c.run("load", file)
		require.Contains(t, a.err, "records", "no progress bar")
	})
}

func TestWhatDiedOnAStoreOfBytesIsFoundAndRemoved(t *testing.T) {
	b := onMemcached(t)
	c := &tool{
		t: t, entities: []index.Declared{accounts("acme", "account")}, flags: []string{"--kv", b.url},
		opaque: func(index.Declared) opaque.Options { return opaque.Options{Grace: time.Nanosecond, MaxEntries: 2} },
	}
	require.Equal(t, "written a", c.fineInput(`{"ID":"a","Email":"a@x","Status":"new"}`, "put"))
	c.fineInput(`{"ID":"b","Email":"b@x","Status":"new"}`, "put")
	a := c.input(`{"ID":"c","Email":"a@x","Status":"old"}`, "put")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.err, `another record holds a unique value: acme:account "c" (index email)`)

	b.remove(t, "acme:account:{}:b:v1")
	require.Positive(t, c.pass(1, "verify").Orphan)
	require.Positive(t, c.pass(0, "repair").Fixed)
	require.Zero(t, c.pass(0, "verify").Orphan)

	c.fineInput(`{"ID":"d","Email":"d@x","Status":"new"}`, "put")
	a = c.input(`{"ID":"e","Email":"e@x","Status":"new"}`, "load", "-")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.err, "error: line 1: ")
	require.Contains(t, a.err, "entries under one value of index status")
	require.Equal(t, "2", c.fine("count", "status=new"), "what did not fit left something")
}

func TestABadLineForAStoreOfBytesStopsTheLoadOrIsLeftOut(t *testing.T) {
	c := newKVTool(t, onMemcached(t), itemSchema)
	input := `{"id":"1","mail":"m"}` + "\n[1]\n" + `{"id":"2","mail":"M"}` + "\n" + `{"id":"3","tag":"a"}`
	a := c.input(input, "load", "-")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.err, "error: line 2: put shop:item: lockstep: invalid: the record is an array")
	require.Contains(t, a.err, "(stopped: 1 record before it loaded, nothing of it or after it)")
	c.refused(1, []string{"get", "3"}, "not found")

	a = c.input(input, "load", "--skip-bad", "-")
	require.Equal(t, 1, a.code)
	require.Regexp(t, `^loaded 2 records in \S+ \(\d+ records/s\), left out 2 bad lines\n$`, a.out)
	require.Contains(t, a.err, "error: line 2: ")
	require.Contains(t, a.err, `error: line 3: lockstep: another record holds a unique value: shop:item "2" (index mail)`)
	require.Equal(t, `{"id":"3","tag":"a"}`, c.fine("find", "tag=a"))
	require.Equal(t, `{"id":"1","mail":"m"}`, c.fine("find", "mail=M", "--json"))
}

func TestAQueryLeavesAStoreOfBytesAsItIs(t *testing.T) {
	s := redistest.Redis(t)
	b := bytesStore{"redis-opaque://" + s.Addr, nil}
	c := newKVTool(t, b, itemSchema)
	for _, args := range [][]string{{"count", "tag=a"}, {"find", "tag=a"}, {"get", "x"}, {"verify"}} {
		c.refused(2, args, "not ready", "a query does not")
	}
	require.Empty(t, s.Keys(t), "a query registered its schema")
	c.fineInput(`{"id":"1","tag":"a"}`, "put")
	before := redistest.Snapshot(t, s.Client(t))
	require.Equal(t, "1", c.fine("count", "tag=a"))
	other := newKVTool(t, b, strings.Replace(itemSchema, "{membership: tag}", "{membership: tag, buckets: 2}", 1))
	other.refused(2, []string{"count", "tag=a"}, "another declaration of shop:item is in force")
	require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, s.Client(t))))

	// The same entity type with indexes that Redis keeps is another thing.
	byRedis := newTool(t, s, itemSchema)
	byRedis.refused(2, []string{"load", "/dev/null"}, "a key holds another type")
	s.Flush(t)
	byRedis.fineInput(`{"id":"1","tag":"a"}`, "put")
	c.refused(2, []string{"load", "/dev/null"}, "a key holds another type", "those are for --redis")
}

func TestAStoreOfBytesThatWasRestartedIsSuspectUntilSomebodyVouchesForIt(t *testing.T) {
	s := redistest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	c := newKVTool(t, bytesStore{"redis-opaque://" + s.Addr, nil}, itemSchema)
	c.fineInput(`{"id":"1","tag":"a"}`, "put")
	for _, args := range [][]string{{"--trust"}, {"--ids-from", write(t, "ids", "1\n")}} {
		s.Restart(t)
		a := c.refused(2, []string{"find", "tag=a", "--ids"}, "the store has lost data", "more may be missing")
		require.Equal(t, "1\n", a.out)
		a = c.run("verify")
		require.Equal(t, 1, a.code)
		require.Contains(t, a.out, "\nthe indexes are suspect, the store has lost data: the server was restarted")
		require.Equal(t, 1, c.run("repair").code)
		require.Regexp(t, `\nclean$`, c.fine(append([]string{"repair"}, args...)...))
		require.Equal(t, "1", c.fine("find", "tag=a", "--ids"))
	}
	c.refused(2, []string{"repair", "--ids-from", "/no/such"}, "/no/such")
}

func TestWhatCannotBeDoneOnAStoreOfBytesIsRefusedWithTheReason(t *testing.T) {
	c := newKVTool(t, bytesStore{"memcache://127.0.0.1:1", nil}, quakeSchema)
	for command, why := range map[string]string{
		"top status":     "an order needs a server that compares scores",
		"build net":      "repair builds every index",
		"sweep":          "the server drops records that expire",
		"acl":            "the rule is for the scripts",
		"bench":          "give --redis",
		"demo":           "give --redis",
		"key build":      "those of an opaque store are others",
		"verify extra":   "unknown command",
		"count status=x": "--kv memcache://127.0.0.1:1: open usgs:feed:quake: lockstep: the server is not available",
	} {
		args := strings.Fields(command)
		if command == "key build" {
			args = append(args, "--id", "x")
		}
		a := c.refused(2, args, why)
		require.Equal(t, 1, strings.Count(a.err, "\n"), "one line: %q", a.err)
	}
	require.ErrorIs(t, &kvError{}, index.ErrUnsupported)
	require.Contains(t, c.fine("key", "parse", "usgs:feed:quake:{}:x:v1"), "record")

	ranked := newKVTool(t, bytesStore{"memcache://127.0.0.1:1", nil}, rankedQuakes)
	a := ranked.refused(2, []string{"load", "-"}, "error: lockstep: cannot be kept on an opaque store: usgs:feed:quake\n",
		"error:   index recent: an order needs", "error:   index strongest: an order needs")
	require.Equal(t, 4, strings.Count(a.err, "\n"), a.err)

	plain := newTool(t, &redistest.Server{Addr: "127.0.0.1:1"}, quakeSchema)
	plain.refused(2, []string{"repair", "--trust"}, "--trust and --ids-from are for a store given by --kv")
}

func TestAWrongServerForAStoreOfBytesIsNamedWithItsFlag(t *testing.T) {
	c := newTool(t, &redistest.Server{Addr: "127.0.0.1:1"}, itemSchema)
	for url, want := range map[string]string{
		"":                             "must be memcache://HOST:PORT or redis-opaque://HOST:PORT",
		"host:11211":                   "must be",
		"http://host":                  "error: --kv http://host: must be memcache://HOST:PORT or redis-opaque://HOST:PORT",
		"memcache://":                  "no host",
		"memcache://h:x":               "error: --kv memcache://h:x: ",
		"memcache://h/2":               "has no user, database or options",
		"memcache://h?x=1":             "has no user, database or options",
		"redis-opaque:///2":            "no host: write redis-opaque://HOST:PORT",
		"redis://h":                    "error: --kv redis://h: write redis-opaque://",
		"redis-opaque://127.0.0.1:1/x": "error: --kv redis-opaque://127.0.0.1:1/x: the URL of the server: ",
		"redis-opaque://127.0.0.1:1":   "error: --kv redis-opaque://127.0.0.1:1: cannot reach the server at 127.0.0.1:1",
		"redis-opaque://u:hidden@h:x":  "does not parse",
		"redis://u:hidden@h":           "error: --kv (not shown, it may hold a password): write redis-opaque://",
		"memcache://u:hidden@h":        "has no user",
	} {
		a := c.refused(2, []string{"--kv", url, "count", "tag=a"}, "--kv", want)
		require.NotContains(t, a.err, "hidden")
		require.Equal(t, 1, strings.Count(a.err, "\n"), a.err)
	}
	c.refused(2, []string{"--kv", "memcache://h", "--redis", "redis://h", "count", "tag=a"}, "--kv and --redis name two servers")
	c.refused(2, []string{"--kv", "memcache://h", "--password-file", "/no/such", "count", "tag=a"}, "are for Redis")
	c.refused(2, []string{"--kv", "memcache://h", "--timeout", "0s", "count", "tag=a"}, "must be over zero")
	s := session{kv: "memcache://[::1]"}
	at, err := s.kvServer()
	require.NoError(t, err)
	require.Equal(t, kvServer{memcached: "[::1]:11211"}, at)
}
