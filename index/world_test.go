package index_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/membership"
)

// item is the record of these tests.
type item struct {
	ID, Color, Code string
	Tags            []string
	Weight          float64
}

var (
	byColor = membership.New("color", func(i item) string { return i.Color })
	byCode  = membership.Unique("code", func(i item) (string, bool) { return i.Code, i.Code != "" })
	byTag   = membership.Multi("tag", func(i item) []string { return i.Tags })

	items = define(index.Forever, byColor, byCode, byTag)
)

func define(lifetime time.Duration, ixs ...index.Index[item]) *index.Entity[item] {
	return index.Define("acme", "item", index.Options[item]{
		ID: func(i item) string { return i.ID }, Version: 1, Lifetime: lifetime, Indexes: ixs,
	})
}

// quick is a retry policy for tests that wait for a failure.
var quick = index.OpenOptions{Retry: index.Retry{Budget: 150 * time.Millisecond}}

// open opens items under the watch that refuses undeclared keys.
func open(t testing.TB, s *redistest.Server, e *index.Entity[item], o ...index.OpenOptions) (*index.Collection[item], redis.UniversalClient) {
	t.Helper()
	rdb := s.Client(t)
	redistest.Checked(rdb, lua.Sources)
	c, err := index.Open(context.Background(), rdb, e, o...)
	require.NoError(t, err)
	return c, rdb
}

// verify holds every index of items against the records, by keys written out by hand.
func verify(t testing.TB, rdb redis.UniversalClient) {
	t.Helper()
	redistest.Oracle[item]{
		Prefix: "acme:item:", Version: 1, Decode: func(raw string) (item, error) { return items.Codec().Decode("", []byte(raw)) },
		ID:        func(i item) string { return i.ID },
		RecordKey: func(id string) string { return "acme:item:{item}:" + id + ":v1" },
		Expect: func(i item) map[string]string {
			want := map[string]string{"acme:item:{item}:~color.1:" + i.Color + ":v1": ""}
			if i.Code != "" {
				want["acme:item:{item}:~code.1:"+i.Code+":v1"] = ""
			}
			for _, tag := range i.Tags {
				want["acme:item:{item}:~tag.1:"+tag+":v1"] = ""
			}
			return want
		},
	}.Verify(t, rdb)
}

// unchanged runs fn and fails if it changed anything on the server.
func unchanged(t testing.TB, rdb redis.UniversalClient, fn func()) {
	t.Helper()
	before := redistest.Snapshot(t, rdb)
	fn()
	require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, rdb)))
}

// about asserts that an error says which entity, id and index it is about.
func about(t testing.TB, err error, id, ix string) {
	t.Helper()
	var e *index.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "acme:item", e.Entity)
	require.Equal(t, id, e.ID)
	require.Equal(t, ix, e.Index)
}
