package index_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

// TestAForeignValueAtOneOfOurKeysStopsTheWriteWhole puts something else at every kind of key in turn.
func TestAForeignValueAtOneOfOurKeysStopsTheWriteWhole(t *testing.T) {
	plant := map[string]func(context.Context, redis.UniversalClient, string) error{
		"acme:item:{item}:~color.1:red:v1": func(ctx context.Context, r redis.UniversalClient, k string) error { return r.Set(ctx, k, "x", 0).Err() },
		"acme:item:{item}:~code.1:c9:v1":   func(ctx context.Context, r redis.UniversalClient, k string) error { return r.RPush(ctx, k, "x").Err() },
		"acme:item:{item}:~tag.1:t1:v1": func(ctx context.Context, r redis.UniversalClient, k string) error {
			return r.HSet(ctx, k, "x", 1).Err()
		},
		"acme:item:{item}:new:v1":        func(ctx context.Context, r redis.UniversalClient, k string) error { return r.SAdd(ctx, k, "x").Err() },
		"acme:item:{item}:~~manifest:v1": func(ctx context.Context, r redis.UniversalClient, k string) error { return r.Set(ctx, k, "x", 0).Err() },
		"acme:item:{item}:~~meta:v1":     func(ctx context.Context, r redis.UniversalClient, k string) error { return r.Set(ctx, k, "x", 0).Err() },
		"acme:item:{item}:~~expiry:v1":   func(ctx context.Context, r redis.UniversalClient, k string) error { return r.Set(ctx, k, "x", 0).Err() },
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		for k, put := range plant {
			s.Flush(t)
			c, rdb := open(t, s, items)
			require.NoError(t, c.Put(ctx, item{ID: "old", Color: "blue", Tags: []string{"t0"}}))
			require.NoError(t, rdb.Del(ctx, k).Err())
			require.NoError(t, put(ctx, rdb, k))
			unchanged(t, rdb, func() {
				for name, write := range map[string]func() error{
					"put":    func() error { return c.Put(ctx, item{ID: "new", Color: "red", Code: "c9", Tags: []string{"t1"}}) },
					"create": func() error { return c.Create(ctx, item{ID: "new", Color: "red", Code: "c9", Tags: []string{"t1"}}) },
					"put many": func() error {
						out, err := c.PutMany(ctx, []item{{ID: "new", Color: "red", Code: "c9", Tags: []string{"t1"}}})
						require.Len(t, out, 1)
						require.False(t, out[0].Applied)
						return err
					},
				} {
					err := write()
					require.ErrorIs(t, err, index.ErrKeyType, "%s with a foreign value at %s", name, k)
					var wrong *index.KeyTypeError
					require.ErrorAs(t, err, &wrong)
					require.Equal(t, k, wrong.Key)
					require.NotContains(t, err.Error(), "c9", "a unique value must not reach a log")
					about(t, err, "new", "")
				}
			})
		}
	})
}

func TestAForeignValueAtAnIndexKeyIsATypedErrorOfTheQuery(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, rdb.Set(ctx, "acme:item:{item}:~color.1:red:v1", "x", 0).Err())
		for _, err := range c.Find(ctx, byColor.Is("red")) {
			require.ErrorIs(t, err, index.ErrKeyType)
			about(t, err, "", "color")
		}
		_, err := c.Count(ctx, byColor.Is("red"))
		require.ErrorIs(t, err, index.ErrKeyType)
	})
}

// TestAMissingPermissionShowsWhenTheCollectionIsOpened takes every command of the write path away in turn.
func TestAMissingPermissionShowsWhenTheCollectionIsOpened(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	admin := s.Client(t)
	c, _ := open(t, s, items)
	require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}))
	for _, command := range []string{"zadd", "srem", "sadd", "set", "hset", "hdel", "hincrby", "zrem", "del", "type", "time"} {
		require.NoError(t, admin.Do(ctx, "acl", "setuser", "app", "reset", "on", ">pw", "~acme:item:*", "+@all", "-"+command).Err())
		rdb := s.Client(t, func(o *redis.UniversalOptions) { o.Username, o.Password = "app", "pw" })
		unchanged(t, admin, func() {
			_, err := index.Open(ctx, rdb, items, quick)
			require.ErrorIs(t, err, index.ErrDenied, "without %s", command)
			require.Contains(t, err.Error(), strings.ToUpper(command))
		})
	}
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "app", "reset", "on", ">pw", "~acme:other:*", "+@all").Err())
	unchanged(t, admin, func() {
		_, err := index.Open(ctx, s.Client(t, func(o *redis.UniversalOptions) { o.Username, o.Password = "app", "pw" }), items, quick)
		require.ErrorIs(t, err, index.ErrDenied, "keys of another entity only")
	})
}

func TestAFullServerRefusesAWriteWholeAndStillDeletes(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	c, rdb := open(t, s, items, quick)
	require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red", Code: "c1"}))
	require.NoError(t, c.Put(ctx, item{ID: "b", Color: "blue"}))
	require.NoError(t, rdb.ConfigSet(ctx, "maxmemory", "1mb").Err())
	unchanged(t, rdb, func() {
		err := c.Put(ctx, item{ID: "new", Color: "red"})
		require.ErrorIs(t, err, index.ErrOutOfMemory)
		about(t, err, "new", "")
		require.ErrorIs(t, c.Put(ctx, item{ID: "a", Color: "green"}), index.ErrOutOfMemory, "a change begins with removals, which the server allows")
		_, err = c.Update(ctx, "a", func(i *item) error { i.Color = "green"; return nil })
		require.ErrorIs(t, err, index.ErrOutOfMemory)
		_, err = c.PutMany(ctx, []item{{ID: "n1", Color: "x"}, {ID: "a", Color: "y"}})
		require.ErrorIs(t, err, index.ErrOutOfMemory)
		n, err := c.Count(ctx, byColor.Is("red"))
		require.NoError(t, err)
		require.EqualValues(t, 1, n, "queries go on")
	})
	require.NoError(t, c.Delete(ctx, "a"), "a delete frees memory and is allowed")
	_, err := index.Open(ctx, rdb, items, quick)
	require.NoError(t, err, "a full server can be opened, for queries and deletes")
	require.NoError(t, rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	verify(t, rdb)
}

func TestAReadOnlyReplicaRefusesWritesWholeAndAnswersQueries(t *testing.T) {
	primary := redistest.Redis(t)
	ctx := context.Background()
	c, _ := open(t, primary, items)
	require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}))
	require.NoError(t, c.Put(ctx, item{ID: "b", Color: "red"}))
	replica := redistest.Replica(t, primary)
	rdb := replica.Client(t)
	require.Eventually(t, func() bool { return rdb.DBSize(ctx).Val() == primary.Client(t).DBSize(ctx).Val() }, 5*time.Second, 5*time.Millisecond)

	unchanged(t, rdb, func() {
		_, err := index.Open(ctx, rdb, items, quick)
		require.ErrorIs(t, err, index.ErrReadOnly)
	})
	readers := quick
	readers.ReadOnly = true
	r, err := index.Open(ctx, rdb, items, readers)
	require.NoError(t, err)
	n, err := r.Count(ctx, byColor.Is("red"))
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	require.ErrorIs(t, r.Put(ctx, item{ID: "c", Color: "red"}), index.ErrReadOnly)

	// The primary becomes a replica under an open collection.
	other := redistest.Redis(t)
	w, wdb := open(t, other, items, quick)
	require.NoError(t, w.Put(ctx, item{ID: "a", Color: "red"}))
	require.NoError(t, wdb.ConfigSet(ctx, "replica-serve-stale-data", "yes").Err())
	require.NoError(t, wdb.SlaveOf(ctx, "127.0.0.1", "1").Err())
	unchanged(t, wdb, func() {
		err := w.Put(ctx, item{ID: "a", Color: "blue"})
		require.ErrorIs(t, err, index.ErrReadOnly)
		require.NotErrorIs(t, err, index.ErrUnknown, "it is known that nothing happened")
		require.ErrorIs(t, w.Delete(ctx, "a"), index.ErrReadOnly)
	})
}

func TestAServerThatIsGoneIsATypedErrorWithinTheBudget(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	c, _ := open(t, s, items, quick)
	require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}))
	s.Kill()
	err := c.Put(ctx, item{ID: "a", Color: "blue"})
	require.ErrorIs(t, err, index.ErrUnavailable)
	about(t, err, "a", "")
	_, err = c.Get(ctx, "a")
	require.ErrorIs(t, err, index.ErrUnavailable)
	_, err = c.Count(ctx, byColor.Is("red"))
	require.ErrorIs(t, err, index.ErrUnavailable)
	for _, err := range c.Find(ctx, byColor.Is("red")) {
		require.ErrorIs(t, err, index.ErrUnavailable)
	}
}

func TestACancelledCallThatWasNeverSentSaysSo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := open(t, s, items)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		unchanged(t, rdb, func() {
			err := c.Put(ctx, item{ID: "a", Color: "red"})
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, index.ErrUnknown)
		})
	})
}
