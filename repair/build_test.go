package repair_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/repair"
)

var (
	byNet    = membership.New("net", func(i item) string { return i.Net })
	withNet  = define(index.Forever, byColor, byCode, byTag, byWeight, bySerial, byNet)
	noUnique = define(index.Forever, byColor, byTag, byWeight, bySerial)
)

// countNet counts the members of the sets of byNet and what they should hold, both from the raw keys.
func countNet(t testing.TB, rdb redis.UniversalClient) (held, want int) {
	t.Helper()
	for k, e := range redistest.Snapshot(t, rdb) {
		if i, err := oracle.Decode(e.Value); err == nil && e.Type == "string" {
			want++
			value := i.Net
			if value == "" {
				value = "%_" // how the empty text stands in a key
			}
			if rdb.SIsMember(context.Background(), entryKey("net.1:"+value), i.ID).Val() {
				held++
			} else {
				t.Logf("%s is not in the index", k)
			}
		}
	}
	return held, want
}

func TestAnIndexBuiltUnderLoadNeverAnswersShort(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, items)
		n := s.Size(3000, 300)
		if s.Name == redistest.NameRedis {
			n = redistest.Full(100_000, n)
		}
		fill(t, old, n)
		require.NoError(t, old.Put(ctx, item{ID: "before", Color: "red", Net: "n0", Weight: 1}))

		c, _ := open(t, s, withNet)
		_, err := c.Count(ctx, byNet.Is("n0"))
		require.ErrorIs(t, err, index.ErrNotReady)
		require.NoError(t, old.Put(ctx, item{ID: "between", Color: "red", Net: "n0", Weight: 1}), "the old release still writes")

		stop := traffic(t, c, func(n int) string { return fmt.Sprintf("w%d", n) })
		done := make(chan struct{})
		var g errgroup.Group
		g.Go(func() error {
			for {
				ready := 0
				for _, err := range c.IDs(ctx, byNet.Is("n0")) {
					if errors.Is(err, index.ErrNotReady) {
						ready = -1
						break
					}
					if err != nil {
						return err
					}
					ready++
				}
				if ready >= 0 && ready < n/3 {
					return fmt.Errorf("a short list of %d", ready)
				}
				select {
				case <-done:
					return nil
				default:
				}
			}
		})
		rep, err := repair.Build(ctx, c, "net", repair.Options{Rate: 20 * n})
		require.NoError(t, err)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		require.GreaterOrEqual(t, rep.Missing, int64(n))
		require.Equal(t, rep.Missing, rep.Fixed)
		require.Empty(t, rep.Findings, "what a build is for is no news")
		stop()
		close(done)
		require.NoError(t, g.Wait())

		err = old.Put(ctx, item{ID: "late", Color: "red", Net: "n0"})
		require.ErrorIs(t, err, index.ErrSchema, "who does not maintain the index may not write any more")
		held, want := countNet(t, rdb)
		require.Equal(t, want, held)
		clean(t, c, rdb)

		// A writer that was paused over the whole build.
		require.NoError(t, c.Put(ctx, item{ID: "after", Color: "red", Net: "n0", Weight: 1}))
		for _, id := range []string{"before", "between", "after"} {
			require.True(t, rdb.SIsMember(ctx, entryKey("net.1:n0"), id).Val(), id)
		}
	})
}

func TestAWriterOfAnOlderReleaseThatSlippedThroughIsShutOutBeforeRecordsAreRead(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, items)
		fill(t, old, 50)
		c, _ := open(t, s, withNet)
		var late error
		_, err := repair.Build(ctx, c, "net", repair.Options{Progress: func(p repair.Progress) {
			if p.Phase == repair.Keys {
				late = old.Put(ctx, item{ID: "late", Color: "x", Net: "n1", Weight: 1})
			}
		}})
		require.NoError(t, err)
		require.ErrorIs(t, late, index.ErrSchema)
		held, want := countNet(t, rdb)
		require.Equal(t, want, held)
		rep, err := repair.Verify(ctx, old, repair.Options{})
		require.ErrorIs(t, err, index.ErrSchema, "an old declaration would take the new entries for damage")
		require.Equal(t, repair.ExitFailed, rep.ExitCode())
		_, err = repair.Run(ctx, old, repair.Options{})
		require.ErrorIs(t, err, index.ErrSchema)
	})
}

func TestABuilderKilledHalfWayIsFinishedByTheNext(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		old, rdb := open(t, s, noUnique)
		n := s.Size(2000, 900)
		fill(t, old, n)
		c, _ := open(t, s, define(index.Forever, byColor, byTag, byWeight, bySerial, byCode))
		ctx, kill := context.WithCancel(context.Background())
		// At this rate a batch of 200 takes longer than the time between two calls of Progress, so that the middle is seen.
		rep, err := repair.Build(ctx, c, "code", repair.Options{Rate: 1500, Progress: func(p repair.Progress) {
			if p.Phase == repair.Records && p.Done >= p.Total/2 {
				kill()
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, repair.ExitStopped, rep.ExitCode())
		require.NotZero(t, rep.Fixed)
		require.Less(t, rep.Fixed, int64(n))
		_, err = c.Count(context.Background(), byCode.Is("code1"))
		require.ErrorIs(t, err, index.ErrNotReady)

		rest, err := repair.Build(context.Background(), c, "code", repair.Options{})
		require.NoError(t, err)
		require.Zero(t, rest.ExitCode(), "its own entries are no duplicates: %+v", rest)
		require.LessOrEqual(t, rep.Fixed+rest.Fixed, int64(n), "what was done is not done again")
		check(t, rdb)
		clean(t, c, rdb)
	})
}

func TestOfTwoBuildersNoneMarksAShortIndexReady(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, items)
		n := s.Size(1500, 200)
		fill(t, old, n)
		c, _ := open(t, s, withNet)
		second := make(chan error, 1)
		started := false
		rep, err := repair.Build(ctx, c, "net", repair.Options{Rate: 10 * n, Progress: func(p repair.Progress) {
			if p.Phase == repair.Records && !started {
				started = true
				rep, err := repair.Build(ctx, c, "net", repair.Options{})
				if err == nil && rep.ExitCode() != 0 {
					err = fmt.Errorf("%+v", rep)
				}
				second <- err
			}
		}})
		require.NoError(t, <-second, "the later one takes over")
		// The first is either shut out, or finds at its end that everything is ready.
		if err != nil {
			require.ErrorIs(t, err, repair.ErrActive)
			require.Equal(t, repair.ExitActive, rep.ExitCode())
		}
		held, want := countNet(t, rdb)
		require.Equal(t, want, held)
		clean(t, c, rdb)
	})
}

func TestABuildWhoseWritesAFailoverLostStartsOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, items)
		fill(t, old, 300)
		exec(t, rdb, "set", record("broken"), "{")
		c, _ := open(t, s, withNet)
		lost := false
		rep, err := repair.Build(ctx, c, "net", repair.Options{Progress: func(p repair.Progress) {
			if p.Phase == repair.Leftovers && !lost {
				// The new primary has seen neither the last entries nor that they were counted.
				lost = true
				require.Equal(t, "300", rdb.HGet(ctx, meta, "built").Val(), "each write counts")
				exec(t, rdb, "del", entryKey("net.1:n1"))
				exec(t, rdb, "hincrby", meta, "built", -100)
			}
		}})
		require.NoError(t, err)
		require.True(t, lost)
		require.EqualValues(t, 1, rep.Undecodable, "met twice, reported once")
		require.Len(t, rep.Findings, 1)
		require.Empty(t, rep.NotReady)
		held, want := countNet(t, rdb)
		require.Equal(t, want, held)

		_, err = repair.Build(ctx, c, "nobody", repair.Options{})
		require.ErrorIs(t, err, index.ErrInvalid)
	})
}

func TestAStoreThatKeepsLosingWritesMakesNothingReady(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	old, rdb := open(t, s, items)
	fill(t, old, 50)
	c, _ := open(t, s, withNet)
	rep, err := repair.Build(ctx, c, "net", repair.Options{Progress: func(p repair.Progress) {
		if p.Phase == repair.Leftovers {
			exec(t, rdb, "hset", meta, "built", "999")
		}
	}})
	require.ErrorIs(t, err, repair.ErrUnsteady)
	require.Equal(t, repair.ExitFailed, rep.ExitCode())
	require.NotEqual(t, "ready", rdb.HGet(ctx, meta, lua.StateField("net", 1)).Val())
}

func TestADeclarationThatEntersDuringABuildKeepsTheIndexUnready(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	old, rdb := open(t, s, items)
	fill(t, old, 50)
	c, _ := open(t, s, withNet)
	once := false
	_, err := repair.Build(ctx, c, "net", repair.Options{Progress: func(p repair.Progress) {
		if p.Phase == repair.Leftovers && !once {
			once = true
			newer, err := index.Open(ctx, rdb, noUnique)
			require.NoError(t, err)
			require.NoError(t, newer.Put(ctx, item{ID: "unseen", Color: "x", Net: "n1", Weight: 1}))
		}
	}})
	require.ErrorIs(t, err, index.ErrSchema)
	require.NotEqual(t, "ready", rdb.HGet(ctx, meta, lua.StateField("net", 1)).Val(), "the newer one does not maintain it")
}

// byName is unique over data that was written without it.
var byName = membership.Unique("name", func(i item) (string, bool) { return i.Note, i.Note != "" })

func TestDuplicatesUnderAUniqueIndexAreNamedAndKeepItUnready(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, noUnique)
		fill(t, old, 20)
		for _, id := range []string{"r1", "r2"} {
			require.NoError(t, old.Put(ctx, item{ID: id, Color: "red", Note: "same", Weight: 1}))
		}
		c, _ := open(t, s, define(index.Forever, byColor, byTag, byWeight, bySerial, byName))
		rep, err := repair.Build(ctx, c, "name", repair.Options{})
		require.NoError(t, err)
		require.Equal(t, repair.ExitSkipped, rep.ExitCode(), "%+v", rep)
		require.EqualValues(t, 1, rep.Skipped)
		require.Equal(t, []string{"name"}, rep.NotReady)
		require.Len(t, rep.Findings, 1)
		var conflict *index.ConflictError
		require.ErrorAs(t, rep.Findings[0].Err, &conflict)
		require.Equal(t, "same", conflict.Value)
		require.ElementsMatch(t, []string{"r1", "r2"}, []string{conflict.ID, conflict.Holder})
		_, err = c.One(ctx, byName.Is("same"))
		require.ErrorIs(t, err, index.ErrNotReady)

		// A duplicate that is gone before the end is none.
		rep, err = repair.Build(ctx, c, "name", repair.Options{Progress: func(p repair.Progress) {
			if p.Phase == repair.Leftovers {
				exec(t, rdb, "del", record(conflict.Holder))
			}
		}})
		require.NoError(t, err)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		one, err := c.One(ctx, byName.Is("same"))
		require.NoError(t, err)
		require.Equal(t, conflict.ID, one.ID)
		run(t, c)
		clean(t, c, rdb)
	})
}

func TestAChangedDefinitionIsBuiltAndItsOldEntriesGo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, items)
		fill(t, old, 100)
		folded := membership.New("color", func(i item) string { return i.Color }, membership.Fold)
		c, _ := open(t, s, define(index.Forever, folded, byCode, byWeight, bySerial))
		rep := run(t, c)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		require.EqualValues(t, 100, rep.Missing, "the new generation")
		require.EqualValues(t, 300, rep.Stale, "the old one, and the tags that are not declared any more")
		for _, k := range s.Keys(t) {
			require.NotContains(t, k, "~color.1")
			require.NotContains(t, k, "~tag.")
		}
		n, err := c.Count(ctx, folded.Is("C1"))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		clean(t, c, rdb)
	})
}

func TestProgressAndOptionsAreWhatTheySay(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	c, rdb := open(t, s, items)
	fill(t, c, 600)
	_, err := repair.Verify(ctx, c, repair.Options{Rate: -1})
	require.ErrorIs(t, err, repair.ErrOptions)

	var phases []repair.Phase
	last := repair.Progress{}
	begin := time.Now()
	rep, err := repair.Run(ctx, c, repair.Options{Rate: 10_000, Progress: func(p repair.Progress) {
		if p.Phase != last.Phase {
			phases = append(phases, p.Phase)
		} else {
			require.GreaterOrEqual(t, p.Done, last.Done)
		}
		require.LessOrEqual(t, p.Done, p.Total)
		last = p
	}})
	require.NoError(t, err)
	require.Equal(t, []repair.Phase{repair.Keys, repair.Entries, repair.Records, repair.Leftovers, repair.Floors}, phases)
	require.Greater(t, time.Since(begin), 300*time.Millisecond, "throttled: rows, members and records")
	require.EqualValues(t, 600, rep.Records)

	for i := range 30 {
		exec(t, rdb, "sadd", entryKey("color.1:x"), fmt.Sprint("ghost", i))
	}
	heard := 0
	rep, err = repair.Verify(ctx, c, repair.Options{MaxFindings: 10, OnFinding: func(repair.Finding) { heard++ }})
	require.NoError(t, err)
	require.Len(t, rep.Findings, 10)
	require.EqualValues(t, 20, rep.Truncated)
	require.EqualValues(t, 30, rep.Orphan)
	require.Equal(t, 30, heard)

	ro, err := index.Open(ctx, rdb, items, index.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	require.EqualValues(t, 30, verify(t, ro).Orphan, "verify needs no right to write")
	rep, err = repair.Run(ctx, ro, repair.Options{})
	require.ErrorIs(t, err, index.ErrReadOnly)
	require.Equal(t, repair.ExitFailed, rep.ExitCode())
}
