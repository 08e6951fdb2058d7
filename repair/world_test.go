package repair_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// item is the record of these tests.
type item struct {
	ID, Color, Code string
	Tags            []string
	Weight          float64
	Serial          int64
	Net             string
	Note            string `json:",omitempty"`
}

var (
	byColor  = membership.New("color", func(i item) string { return i.Color })
	byCode   = membership.Unique("code", func(i item) (string, bool) { return i.Code, i.Code != "" })
	byTag    = membership.Multi("tag", func(i item) []string { return i.Tags })
	byWeight = ranked.New("weight", func(i item) float64 { return i.Weight })
	bySerial = ranked.Exact("serial", func(i item) int64 { return i.Serial })

	items = define(index.Forever, byColor, byCode, byTag, byWeight, bySerial)
)

func define(lifetime time.Duration, ixs ...index.Index[item]) *index.Entity[item] {
	return index.Define("acme", "item", index.Options[item]{
		ID: func(i item) string { return i.ID }, Version: 1, Lifetime: lifetime, Indexes: ixs,
	})
}

// The keys of the partition, written out by hand.
const (
	prefix   = "acme:item:{item}:"
	meta     = prefix + "~~meta:v1"
	manifest = prefix + "~~manifest:v1"
	floors   = prefix + "~~floor:v1"
	catalog  = "acme:item:~~catalog:v1"
)

func record(id string) string     { return prefix + id + ":v1" }
func entryKey(body string) string { return prefix + "~" + body + ":v1" }
func serialOf(n int64) string {
	return string([]byte{byte(uint64(n)>>56) ^ 0x80, byte(n >> 48), byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func numbered(n int) item {
	return item{
		ID: fmt.Sprintf("i%05d", n), Color: fmt.Sprintf("c%d", n%50), Code: fmt.Sprintf("code%d", n),
		Tags: []string{fmt.Sprintf("t%d", n%7), fmt.Sprintf("u%d", n%11)}, Weight: float64(n%1000) - 500.25, Serial: int64(n) - 5000,
		Net: fmt.Sprintf("n%d", n%3),
	}
}

// oracle knows what the keys of items must hold, by itself.
var oracle = redistest.Oracle[item]{
	Prefix: "acme:item:", Version: 1,
	Decode: func(raw string) (i item, err error) {
		err = json.Unmarshal([]byte(raw), &i)
		return i, err
	},
	ID:        func(i item) string { return i.ID },
	RecordKey: record,
	Expect: func(i item) map[string]string {
		out := map[string]string{
			entryKey("color.1:" + i.Color): "",
			entryKey("weight.1"):           strconv.FormatFloat(i.Weight, 'g', -1, 64),
		}
		if i.Code != "" {
			out[entryKey("code.1:"+i.Code)] = ""
		}
		for _, t := range i.Tags {
			out[entryKey("tag.1:"+t)] = ""
		}
		return out
	},
}

// check has the oracle find nothing. It reads the members of scored keys as ids, so those of serial are checked apart, and
// knows nothing of best, which keeps only some.
func check(t testing.TB, rdb redis.UniversalClient) {
	t.Helper()
	ctx := context.Background()
	var wrong []string
	for _, line := range oracle.Check(ctx, rdb) {
		if !strings.Contains(line, "~serial.") && !strings.Contains(line, "~best.") {
			wrong = append(wrong, line)
		}
	}
	require.Empty(t, wrong)
	want := map[string]string{}
	for k, e := range redistest.Snapshot(t, rdb) {
		if e.Type != "string" || !strings.HasPrefix(k, prefix) {
			continue
		}
		if i, err := oracle.Decode(e.Value); err == nil {
			want[serialOf(i.Serial)+i.ID] = "0"
		}
	}
	got := redistest.Snapshot(t, rdb)[entryKey("serial.1")].Elements
	if len(want) == 0 && len(got) == 0 {
		return
	}
	require.Equal(t, want, got)
}

// open opens an entity type under the watch that refuses undeclared keys.
func open(t testing.TB, s *redistest.Server, e *index.Entity[item], o ...index.OpenOptions) (*index.Collection[item], redis.UniversalClient) {
	t.Helper()
	rdb := s.Client(t)
	if s.Name != redistest.NameMini {
		redistest.Checked(rdb, lua.Sources)
	}
	c, err := index.Open(context.Background(), rdb, e, o...)
	require.NoError(t, err)
	return c, rdb
}

// fill puts n items.
func fill(t testing.TB, c *index.Collection[item], n int) {
	t.Helper()
	recs := make([]item, n)
	for i := range recs {
		recs[i] = numbered(i)
	}
	_, err := c.PutMany(context.Background(), recs)
	require.NoError(t, err)
}

// verify verifies, and gives the report.
func verify(t testing.TB, c index.Opened) repair.Report {
	t.Helper()
	rep, err := repair.Verify(context.Background(), c, repair.Options{})
	require.NoError(t, err)
	return rep
}

// run repairs, and gives the report.
func run(t testing.TB, c index.Opened) repair.Report {
	t.Helper()
	rep, err := repair.Run(context.Background(), c, repair.Options{})
	require.NoError(t, err)
	return rep
}

// clean fails the test unless a pass finds nothing and changes nothing.
func clean(t testing.TB, c index.Opened, rdb redis.UniversalClient) {
	t.Helper()
	before := redistest.Snapshot(t, rdb)
	rep := verify(t, c)
	require.Empty(t, rep.Findings)
	require.Zero(t, rep.ExitCode(), "%+v", rep)
	require.Zero(t, rep.Rows)
	require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, rdb)), "verify changes nothing")
}

func exec(t testing.TB, rdb redis.UniversalClient, args ...any) {
	t.Helper()
	require.NoError(t, rdb.Do(context.Background(), args...).Err())
}
