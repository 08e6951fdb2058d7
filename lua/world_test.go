package lua

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// The keys of one partition, written out by hand.
const (
	prefix   = "acme:billing:account:{account}:"
	meta     = prefix + "~~meta:v1"
	manifest = prefix + "~~manifest:v1"
	expiry   = prefix + "~~expiry:v1"
	statusOf = prefix + "~status.1:"
	emailOf  = prefix + "~email.1:"
)

// stored is a record as these tests keep it: its id and the bodies of its entries, "status.1:new".
type stored struct {
	ID   string
	In   []string
	Note string `json:",omitempty"`
}

// world is one partition on one server, with the client of a well-behaved writer.
type world struct {
	t   *testing.T
	ctx context.Context
	s   *redistest.Server
	rdb redis.UniversalClient
	r   *Runner
	n   int
}

// each runs fn on every kind of server, with a partition that generation 1 has entered.
func each(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		w := newWorld(t, s)
		require.NoError(t, w.enter(1, Ready, []string{"index:status.1", "index:email.1"}))
		fn(t, w)
	})
}

func newWorld(t *testing.T, s *redistest.Server) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), s: s, rdb: s.Client(t)}
	redistest.Checked(w.rdb, Sources)
	w.r = NewRunner(w.rdb, patient, nil)
	return w
}

// verified has the brute-force check at the end find nothing.
func (w *world) verified() {
	w.t.Cleanup(func() {
		redistest.Oracle[stored]{
			Prefix: "acme:billing:account:", Version: 1,
			Decode: func(raw string) (rec stored, err error) {
				err = json.Unmarshal([]byte(raw), &rec)
				return rec, err
			},
			ID: func(rec stored) string { return rec.ID },
			Expect: func(rec stored) map[string]string {
				keys := map[string]string{}
				for _, body := range rec.In {
					keys[prefix+"~"+body+":v1"] = ""
				}
				return keys
			},
			RecordKey: record,
		}.Verify(w.t, w.rdb)
	})
}

func record(id string) string { return prefix + id + ":v1" }

// rows writes bodies as a manifest row does.
func rows(bodies []string) string {
	tokens := make([]string, len(bodies))
	for i, b := range bodies {
		tokens[i] = "s" + b
	}
	return strings.Join(tokens, "\n")
}

// change is one record of a call in the making.
type change struct {
	id, writeID string
	mode        Mode
	had, in     []string // bodies of the entries assumed and wanted
	condition   string
	lifetime    string
	note        string
}

// call makes the call that carries the changes out.
func (w *world) call(changes ...change) ApplyCall {
	c := ApplyCall{Meta: meta, Manifest: manifest, Expiry: expiry, Floor: prefix + "~~floor:v1", Generation: 1, Epoch: epoch}
	place := func(body string) int {
		k := prefix + "~" + body + ":v1"
		if i := slices.Index(c.Entries, k); i >= 0 {
			return i
		}
		c.Entries = append(c.Entries, k)
		return len(c.Entries) - 1
	}
	for _, ch := range changes {
		if ch.writeID == "" {
			w.n++
			ch.writeID = fmt.Sprintf("w%07d", w.n)
		}
		if ch.mode == 0 {
			ch.mode = Put
		}
		if ch.lifetime == "" {
			ch.lifetime = Forever
		}
		value, err := json.Marshal(stored{ch.id, ch.in, ch.note})
		require.NoError(w.t, err)
		rec := ApplyRecord{
			Key: record(ch.id), ID: ch.id, WriteID: ch.writeID, Mode: ch.mode, Condition: ch.condition,
			Assumed: rows(ch.had), Entries: rows(ch.in), Value: value, Lifetime: ch.lifetime,
		}
		for _, b := range ch.had {
			if !slices.Contains(ch.in, b) {
				rec.Ops = append(rec.Ops, Op{Code: Remove, Key: place(b)})
			}
		}
		for _, b := range ch.in {
			code := Add
			if strings.HasPrefix(b, "email.") {
				code = AddUnique
			}
			rec.Ops = append(rec.Ops, Op{Code: code, Key: place(b)})
		}
		c.Records = append(c.Records, rec)
	}
	return c
}

// apply sends changes and gives their statuses.
func (w *world) apply(changes ...change) []Status {
	w.t.Helper()
	out, err := w.r.Apply(w.ctx, w.call(changes...))
	require.NoError(w.t, err)
	return out.Statuses
}

// written sends changes that must be written.
func (w *world) written(changes ...change) {
	w.t.Helper()
	for i, st := range w.apply(changes...) {
		require.Equal(w.t, Status{Code: Written}, st, "record %d", i)
	}
}

// refused sends one change that must end with the status and change nothing.
func (w *world) refused(ch change, want Status) {
	w.t.Helper()
	before := redistest.Snapshot(w.t, w.rdb)
	require.Equal(w.t, []Status{want}, w.apply(ch))
	require.Empty(w.t, redistest.Diff(before, redistest.Snapshot(w.t, w.rdb)))
}

// row is the manifest row of an id.
func (w *world) row(id string) string {
	w.t.Helper()
	row, err := w.rdb.HGet(w.ctx, manifest, id).Result()
	require.NoError(w.t, err)
	return row
}

func (w *world) members(key string) []string {
	w.t.Helper()
	ids, err := w.rdb.SMembers(w.ctx, key).Result()
	require.NoError(w.t, err)
	slices.Sort(ids)
	return ids
}

// seq is the write counter of the partition.
func (w *world) seq() int64 {
	w.t.Helper()
	n, err := w.rdb.HGet(w.ctx, meta, "seq").Int64()
	require.NoError(w.t, err)
	return n
}

// through gives a runner whose script calls go through steps, on a client of its own.
func (w *world) through(steps ...func(func() error) error) *Runner {
	w.t.Helper()
	rdb := w.s.Client(w.t)
	rdb.AddHook(&fault{steps: steps})
	redistest.Checked(rdb, Sources)
	return NewRunner(rdb, patient, nil)
}

// epoch is the name of the partition's life in these tests.
const epoch = "e"

// enter enters the partition.
func (w *world) enter(generation int64, start Start, states []string) error {
	_, err := w.r.Enter(w.ctx, meta, manifest, generation, start, epoch, states)
	return err
}
