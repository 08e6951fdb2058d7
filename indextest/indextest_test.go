package indextest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/indextest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
)

type session struct {
	ID, User string
	Seen     int64
}

var (
	byUser = membership.New("user", func(s session) string { return s.User })
	bySeen = ranked.New("seen", func(s session) int64 { return s.Seen }, ranked.Keep(2))

	sessions = index.Define("acme:web", "session", index.Options[session]{
		ID: func(s session) string { return s.ID }, Version: 1, Lifetime: time.Hour,
		Indexes: []index.Index[session]{byUser, bySeen},
	})
)

func TestAProgramIsTestedOnIndexesOfEveryKind(t *testing.T) {
	ctx := context.Background()
	c := indextest.Open(t, sessions)
	for n, id := range []string{"a", "b", "c", "d"} {
		require.NoError(t, c.Put(ctx, session{id, "ann", int64(n)}))
	}
	n, err := c.Count(ctx, byUser.Is("ann"))
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
}

func TestTheClockOfAStoreMakesRecordsExpire(t *testing.T) {
	ctx := context.Background()
	store := indextest.Start(t)
	c := indextest.OpenOn(t, store, sessions)
	require.NoError(t, c.Put(ctx, session{"a", "ann", 1}))
	store.Advance(2 * time.Hour)
	_, err := c.Get(ctx, "a")
	require.ErrorIs(t, err, index.ErrNotFound)
	n, err := c.Count(ctx, byUser.Is("ann"))
	require.NoError(t, err)
	require.Zero(t, n)
}

// failing is a test that is expected to fail.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Errorf(string, ...any) { f.failed = true }

func TestAnEntryMadeBehindTheLibrarysBackFailsTheTest(t *testing.T) {
	ctx := context.Background()
	store := indextest.Start(t)
	c := indextest.OpenOn(t, store, sessions)
	require.NoError(t, c.Put(ctx, session{"a", "ann", 1}))
	rdb := redis.NewClient(&redis.Options{Addr: store.Addr()})
	defer func() { _ = rdb.Close() }()
	const ghost = "acme:web:session:{session}:~user.1:bob:v1"
	require.NoError(t, rdb.SAdd(ctx, ghost, "a").Err())
	f := &failing{TB: t}
	indextest.Verify(f, c)
	require.True(t, f.failed)
	require.NoError(t, rdb.Del(ctx, ghost).Err())
}
