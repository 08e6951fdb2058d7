package repair_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/repair"
)

// between calls fn once, right before the first script of the kind is sent by a pass.
func between(rdb redis.UniversalClient, t testing.TB, script string, fn func()) {
	sha := ""
	for s, source := range lua.Sources() {
		if strings.HasPrefix(source, "-- lockstep "+script+"\n") {
			sha = s
		}
	}
	require.NotEmpty(t, sha)
	rdb.AddHook(&before{sha: sha, fn: fn})
}

// before is a hook that runs a function before a script, once.
type before struct {
	redis.Hook
	sha  string
	fn   func()
	done bool
}

func (b *before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); !b.done && len(args) > 1 && args[1] == b.sha {
			b.done = true
			b.fn()
		}
		return next(ctx, cmd)
	}
}

// mend opens an entity type twice: c for the test's own writes, and mender whose fixes are held up by between.
func mend(t testing.TB, s *redistest.Server, e *index.Entity[item]) (c, mender *index.Collection[item], rdb, slow redis.UniversalClient) {
	t.Helper()
	c, rdb = open(t, s, e)
	slow = s.Client(t)
	mender, err := index.Open(context.Background(), slow, e)
	require.NoError(t, err)
	return c, mender, rdb, slow
}

func TestARecordThatComesBackWhileItsGhostIsClearedKeepsItsEntry(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, mender, rdb, slow := mend(t, s, define(index.Forever, byColor))
		fill(t, c, 3)
		exec(t, rdb, "sadd", entryKey("color.1:red"), "r1")
		between(slow, t, "apply", func() {
			require.NoError(t, c.Create(ctx, item{ID: "r1", Color: "red", Weight: 1}))
		})
		rep := run(t, mender)
		require.Zero(t, rep.Fixed)
		require.Empty(t, rep.Findings, "it is no ghost any more")
		require.True(t, rdb.SIsMember(ctx, entryKey("color.1:red"), "r1").Val())
		clean(t, c, rdb)
	})
}

func TestARecordThatIsDeletedWhileItsEntryIsAddedLeavesNone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, mender, rdb, slow := mend(t, s, items)
		fill(t, c, 3)
		rec := numbered(1)
		exec(t, rdb, "srem", entryKey("color.1:"+rec.Color), rec.ID)
		between(slow, t, "apply", func() { require.NoError(t, c.Delete(ctx, rec.ID)) })
		run(t, mender)
		check(t, rdb)
		clean(t, c, rdb)
	})
}

func TestAStaleEntryThatAWriterMakesTrueWhileItIsRepairedStays(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, mender, rdb, slow := mend(t, s, items)
		fill(t, c, 3)
		rec := numbered(1)
		exec(t, rdb, "sadd", entryKey("color.1:red"), rec.ID)
		between(slow, t, "apply", func() {
			rec.Color = "red"
			require.NoError(t, c.Put(ctx, rec))
		})
		run(t, mender)
		require.True(t, rdb.SIsMember(ctx, entryKey("color.1:red"), rec.ID).Val())
		check(t, rdb)
		clean(t, c, rdb)
	})
}

func TestARecordChangedBehindTheLibrarysBackWhileItIsRepairedIsJudgedAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, mender, rdb, slow := mend(t, s, items)
		fill(t, c, 3)
		rec := numbered(1)
		exec(t, rdb, "srem", entryKey("color.1:"+rec.Color), rec.ID)
		between(slow, t, "apply", func() {
			rec.Color = "raw"
			b, err := json.Marshal(rec)
			require.NoError(t, err)
			exec(t, rdb, "set", record(rec.ID), b)
		})
		run(t, mender)
		require.True(t, rdb.SIsMember(ctx, entryKey("color.1:raw"), rec.ID).Val())
		check(t, rdb)
	})
}

func TestTwoRepairsAtOnceLeaveOneTruth(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := open(t, s, items)
		fill(t, c, 600)
		plant(t, rdb, 20)
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := repair.Run(context.Background(), c, repair.Options{})
				errs <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-errs)
		}
		rep := verify(t, c)
		require.Zero(t, rep.Missing+rep.Stale+rep.Orphan+rep.Misranked)
	})
}
