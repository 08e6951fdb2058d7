package ranked_test

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at begins every key of the partition below, written out by hand.
const at = "acme:arcade:score:{score}:"

// entry is a record with a score of any type. JSON would mend what is no UTF-8, so its bytes are quoted words.
type entry[S any] struct {
	ID, Group string
	Score     S
}

type textCodec[S any] struct {
	write func(S) string
	read  func(string) (S, error)
}

// codec stores entries, with their bytes as they are.
func codec[S any](c textCodec[S]) index.Codec[entry[S]] {
	return index.Codec[entry[S]]{
		Encode: func(e entry[S]) ([]byte, error) {
			return fmt.Appendf(nil, "%q %q %q", e.ID, e.Group, c.write(e.Score)), nil
		},
		Decode: func(_ string, b []byte) (e entry[S], err error) {
			var words [3]string
			rest := string(b)
			for i := range words {
				quoted, err := strconv.QuotedPrefix(rest)
				if err != nil {
					return e, err
				}
				rest = strings.TrimPrefix(rest[len(quoted):], " ")
				if words[i], err = strconv.Unquote(quoted); err != nil {
					return e, err
				}
			}
			e.ID, e.Group = words[0], words[1]
			e.Score, err = c.read(words[2])
			return e, err
		},
	}
}

var (
	ints   = textCodec[int64]{func(n int64) string { return strconv.FormatInt(n, 10) }, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }}
	uints  = textCodec[uint64]{func(n uint64) string { return strconv.FormatUint(n, 10) }, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }}
	floats = textCodec[float64]{func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }}
	texts  = textCodec[string]{func(s string) string { return s }, func(s string) (string, error) { return s, nil }}
	times  = textCodec[time.Time]{
		func(t time.Time) string { return t.Format(time.RFC3339Nano) },
		func(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, s) },
	}
)

// store is a collection of entries on one server.
type store[S any] struct {
	*index.Collection[entry[S]]
	t   *testing.T
	s   *redistest.Server
	rdb redis.UniversalClient
}

// declare is an entity type of entries with indexes.
func declare[S any](c textCodec[S], lifetime time.Duration, ix ...index.Index[entry[S]]) *index.Entity[entry[S]] {
	return index.Define("acme:arcade", "score", index.Options[entry[S]]{
		ID: func(e entry[S]) string { return e.ID }, Version: 1, Lifetime: lifetime, Codec: codec(c), Indexes: ix,
	})
}

// open opens entries that live for ever, under the watch that refuses undeclared keys.
func open[S any](t *testing.T, s *redistest.Server, c textCodec[S], ix ...index.Index[entry[S]]) store[S] {
	t.Helper()
	return openEntity(t, s, declare(c, index.Forever, ix...))
}

func openEntity[S any](t *testing.T, s *redistest.Server, e *index.Entity[entry[S]], o ...index.OpenOptions) store[S] {
	t.Helper()
	rdb := s.Client(t)
	redistest.Checked(rdb, lua.Sources)
	c, err := index.Open(t.Context(), rdb, e, o...)
	require.NoError(t, err)
	return store[S]{c, t, s, rdb}
}

func (s store[S]) put(recs ...entry[S]) {
	s.t.Helper()
	for _, rec := range recs {
		require.NoError(s.t, s.Put(s.t.Context(), rec), "%q", rec.ID)
	}
}

// page asks for one page.
func (s store[S]) page(o index.Order[entry[S]], conditions ...index.Condition[entry[S]]) index.Page[entry[S]] {
	s.t.Helper()
	p, err := s.Top(s.t.Context(), o, conditions...)
	require.NoError(s.t, err)
	return p
}

// whole asks for one page that must be complete, and gives its ids.
func (s store[S]) whole(o index.Order[entry[S]], conditions ...index.Condition[entry[S]]) []string {
	s.t.Helper()
	p := s.page(o, conditions...)
	require.True(s.t, p.Complete, "%v", idsOf(p))
	return idsOf(p)
}

// pages are the ids of all pages of an order, each complete.
func (s store[S]) pages(o index.Order[entry[S]]) []string {
	s.t.Helper()
	ids := []string{}
	for range 10_000 {
		p := s.page(o)
		require.True(s.t, p.Complete)
		ids = append(ids, idsOf(p)...)
		if p.Next == "" {
			return ids
		}
		require.NotEmpty(s.t, p.Items, "an empty page that goes on")
		o = o.After(p.Next)
	}
	s.t.Fatal("the pages do not end")
	return nil
}

// unchanged fails the test if fn changes anything on the server.
func (s store[S]) unchanged(fn func()) {
	s.t.Helper()
	before := redistest.Snapshot(s.t, s.rdb)
	fn()
	require.Empty(s.t, redistest.Diff(before, redistest.Snapshot(s.t, s.rdb)))
}

// size is how many members a ranked key holds.
func (s store[S]) size(key string) int {
	s.t.Helper()
	n, err := s.rdb.ZCard(s.t.Context(), at+key+":v1").Result()
	require.NoError(s.t, err)
	return int(n)
}

func idsOf[T any](p index.Page[T]) []string {
	ids := make([]string, len(p.Items))
	for i, item := range p.Items {
		ids[i] = item.ID
	}
	return ids
}

// drain gives what a sequence gives, and the error that it ends with.
func drain[V any](seq iter.Seq2[V, error]) (out []V, err error) {
	out = []V{}
	for v, e := range seq {
		if e != nil {
			return out, e
		}
		out = append(out, v)
	}
	return out, nil
}

func recordIDs[S any](recs []entry[S]) []string {
	ids := make([]string, len(recs))
	for i, r := range recs {
		ids[i] = r.ID
	}
	return ids
}

// about asserts that an error says which id and index it is about.
func about(t *testing.T, err error, id, ix string) {
	t.Helper()
	var e *index.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []string{"acme:arcade:score", id, ix}, []string{e.Entity, e.ID, e.Index})
}

func score[S any](e entry[S]) S { return e.Score }

func group[S any](e entry[S]) string { return e.Group }
