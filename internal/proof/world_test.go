package proof

import (
	"context"
	"encoding/binary"
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
)

// thing is the record of these tests: a field for each kind of index.
type thing struct {
	ID     string
	Color  string   // membership.New
	Region string   // membership.Sparse, "" is none
	Tags   []string // membership.Multi
	Code   string   // membership.Unique, "" is none
	Score  int      // ranked.New, the best few
	Fine   int64    // ranked.Exact
	Group  string   // ranked.Within, the lowest few
	Heat   int
	Count  int
	Stamp  string // which write this state is from
}

// The bounds of the ranked indexes that trim.
const (
	keptScores = 4
	keptHeats  = 2
	slack      = 1
)

var (
	byColor  = membership.New("color", func(x thing) string { return x.Color })
	byRegion = membership.Sparse("region", func(x thing) (string, bool) { return x.Region, x.Region != "" })
	byTag    = membership.Multi("tag", func(x thing) []string { return x.Tags })
	byCode   = membership.Unique("code", func(x thing) (string, bool) { return x.Code, x.Code != "" })
	byScore  = ranked.New("score", func(x thing) int { return x.Score }, ranked.Keep(keptScores), ranked.Slack(slack))
	byFine   = ranked.Exact("fine", func(x thing) int64 { return x.Fine })
	byHeat   = ranked.Within(func(x thing) string { return x.Group },
		ranked.New("heat", func(x thing) int { return x.Heat }, ranked.Keep(keptHeats), ranked.Slack(slack), ranked.LowestFirst()))

	things = index.Define("acme", "thing", index.Options[thing]{
		ID: func(x thing) string { return x.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[thing]{byColor, byRegion, byTag, byCode, byScore, byFine, byHeat},
	})
)

// Keys are written out by hand: what is checked shares no code with what checks it.
const (
	space    = "acme:thing:{thing}:"
	version  = ":v1"
	manifest = space + "~~manifest" + version
	floors   = space + "~~floor" + version
	expiry   = space + "~~expiry" + version
	fineKey  = space + "~fine.1" + version
	foreign  = space + "~color.1:foreign" + version // a string where an index would be
)

func recordKey(id string) string { return space + id + version }

// bounded is one entry of a record in an index that trims: its key, its field in the floors, its score.
type bounded struct {
	body  string
	score float64
	low   bool
}

func (b bounded) key() string { return space + "~" + b.body + version }

func (x thing) bounded() []bounded {
	return []bounded{
		{"score.1", float64(x.Score), false},
		{"heat.1:" + x.Group, float64(x.Heat), true},
	}
}

// world is one server with a collection on it.
type world struct {
	t      testing.TB
	s      *redistest.Server
	direct redis.UniversalClient // past every fault
	rdb    redis.UniversalClient
	c      *index.Collection[thing]
}

// patient repeats quickly and for long: what a test waits for comes.
var patient = index.Retry{Budget: 30 * time.Second, MinBackoff: 50 * time.Microsecond, MaxBackoff: 5 * time.Millisecond}

// newWorld opens things on rdb, a client of s.
func newWorld(t testing.TB, s *redistest.Server, rdb redis.UniversalClient, o ...index.OpenOptions) *world {
	t.Helper()
	w := &world{t: t, s: s, direct: s.Client(t), rdb: rdb}
	for _, source := range lua.Sources() { // so that a script that is new to the server does not shift a count of requests
		require.NoError(t, w.direct.ScriptLoad(context.Background(), source).Err())
	}
	w.fresh(o...)
	return w
}

// fresh empties the server and opens the collection again.
func (w *world) fresh(o ...index.OpenOptions) {
	w.t.Helper()
	if len(o) == 0 {
		o = []index.OpenOptions{{Retry: patient}}
	}
	o[0].AssumeEmpty = true
	ctx := context.Background()
	require.NoError(w.t, w.direct.FlushAll(ctx).Err())
	require.NoError(w.t, w.direct.Set(ctx, foreign, "x", 0).Err())
	var err error
	w.c, err = index.Open(ctx, w.rdb, things, o...)
	require.NoError(w.t, err)
}

// stored is the record of an id as the server has it, past the library.
func (w *world) stored(id string) (thing, bool) {
	raw, err := w.direct.Get(context.Background(), recordKey(id)).Result()
	if err == redis.Nil { //nolint:errorlint // as the client documents it
		return thing{}, false
	}
	require.NoError(w.t, err)
	return decode(w.t, raw), true
}

func decode(t testing.TB, raw string) thing {
	var x thing
	require.NoError(t, json.Unmarshal([]byte(raw), &x))
	return x
}

// findings is what is wrong on the server: every index held against the records, and every bounded one against its floor.
func (w *world) findings() []string { return findings(w.t, w.direct) }

func findings(t testing.TB, rdb redis.UniversalClient) []string {
	t.Helper()
	ctx := context.Background()
	held := map[string]map[string]string{}
	for k, e := range redistest.Snapshot(t, rdb) {
		if e.Type == "zset" || k == floors {
			held[k] = e.Elements
		}
	}
	var found []string
	oracle := redistest.Oracle[thing]{
		Prefix: "acme:thing:", Version: 1, RecordKey: recordKey,
		Decode: func(raw string) (x thing, err error) { return x, json.Unmarshal([]byte(raw), &x) },
		ID:     func(x thing) string { return x.ID },
		Members: func(key string, elements map[string]string) map[string]string {
			if key != fineKey {
				return elements
			}
			plain := map[string]string{}
			for m := range elements {
				if len(m) < 8 {
					plain[m] = "unreadable"
					continue
				}
				plain[m[8:]] = strconv.FormatInt(int64(binary.BigEndian.Uint64([]byte(m))^1<<63), 10)
			}
			return plain
		},
		Expect: func(x thing) map[string]string {
			want := map[string]string{
				space + "~color.1:" + x.Color + version: "",
				fineKey:                                 strconv.FormatInt(x.Fine, 10),
			}
			if x.Region != "" {
				want[space+"~region.1:"+x.Region+version] = ""
			}
			if x.Code != "" {
				want[space+"~code.1:"+x.Code+version] = ""
			}
			for _, tag := range x.Tags {
				want[space+"~tag.1:"+tag+version] = ""
			}
			for _, b := range x.bounded() {
				if _, in := held[b.key()][x.ID]; in {
					want[b.key()] = strconv.FormatFloat(b.score, 'f', -1, 64)
				} else if !b.below(held[floors][b.body], x.ID) {
					found = append(found, fmt.Sprintf("missing: %q is not in %s, and not below its floor %q", x.ID, b.body, held[floors][b.body]))
				}
			}
			return want
		},
	}
	for _, f := range oracle.Check(ctx, rdb) {
		if !strings.Contains(f, foreign) {
			found = append(found, f)
		}
	}
	return found
}

// below reports whether an entry of id is what a floor says was trimmed, or further from the kept end.
func (b bounded) below(floor, id string) bool {
	parts := strings.SplitN(floor, " ", 5) // ids hold no space
	if len(parts) < 4 {
		return false
	}
	edge, err := strconv.ParseFloat(parts[1], 64)
	switch {
	case err != nil:
		return false
	case b.score == edge:
		return id == parts[3] || (id > parts[3]) == b.low
	}
	return (b.score > edge) == b.low
}
