package repair_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

func TestAStoppedRunHidesNothingFromTheNext(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := open(t, s, items)
		fill(t, c, 600)
		ctx, stop := context.WithCancel(context.Background())
		rep, err := repair.Run(ctx, c, repair.Options{Progress: func(p repair.Progress) {
			if p.Phase == repair.Records {
				stop()
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, repair.ExitStopped, rep.ExitCode())
		for i := range 600 {
			exec(t, rdb, "srem", entryKey("color.1:"+numbered(i).Color), numbered(i).ID)
		}
		rep = run(t, c)
		require.EqualValues(t, 600, rep.Missing)
		require.EqualValues(t, 600, rep.Fixed)
		check(t, rdb)
	})
}

func TestARecordThatASparseIndexLeavesOutIsNotMissing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sparse := membership.Sparse("some", func(i item) (string, bool) { return i.Color, i.Serial%2 == 0 })
		rank := ranked.Sparse("few", func(i item) (float64, bool) { return i.Weight, i.Serial%3 == 0 })
		c, rdb := open(t, s, define(index.Forever, sparse, rank, byCode))
		fill(t, c, 50)
		require.NoError(t, c.Put(context.Background(), item{ID: "no code"}))
		clean(t, c, rdb)
	})
}

func TestAWriteBehindTheLibrarysBackIsFoundAndMended(t *testing.T) {
	raw := func(id, color string) string {
		rec := numbered(1)
		rec.ID, rec.Color, rec.Code, rec.Serial = id, color, "raw", -7
		b, _ := json.Marshal(rec)
		return string(b)
	}
	// Missing, stale and orphaned entries. A row is no entry: what is wrong with one alone shows to a run.
	findings := map[string][3]int64{
		"set": {3, 3, 0}, "rename": {3, 3, 0}, "copy": {3, 3, 0}, "restore": {3, 3, 0}, "delete": {0, 0, 6}, "new record": {6, 0, 0},
	}
	for name, damage := range map[string]func(t *testing.T, rdb redis.UniversalClient){
		"set": func(t *testing.T, rdb redis.UniversalClient) {
			exec(t, rdb, "set", record("i00001"), raw("i00001", "x"))
		},
		"rename": func(t *testing.T, rdb redis.UniversalClient) {
			exec(t, rdb, "set", prefix+"scratch:v1", raw("i00001", "x"))
			exec(t, rdb, "rename", prefix+"scratch:v1", record("i00001"))
		},
		"copy": func(t *testing.T, rdb redis.UniversalClient) {
			exec(t, rdb, "set", prefix+"scratch:v1", raw("i00001", "x"))
			exec(t, rdb, "copy", prefix+"scratch:v1", record("i00001"), "replace")
			exec(t, rdb, "del", prefix+"scratch:v1")
		},
		"restore": func(t *testing.T, rdb redis.UniversalClient) {
			exec(t, rdb, "set", prefix+"scratch:v1", raw("i00001", "x"))
			dump, err := rdb.Dump(context.Background(), prefix+"scratch:v1").Result()
			require.NoError(t, err)
			exec(t, rdb, "restore", record("i00001"), 0, dump, "replace")
			exec(t, rdb, "del", prefix+"scratch:v1")
		},
		"delete":      func(t *testing.T, rdb redis.UniversalClient) { exec(t, rdb, "del", record("i00001")) },
		"new record":  func(t *testing.T, rdb redis.UniversalClient) { exec(t, rdb, "set", record("raw"), raw("raw", "x")) },
		"row":         func(t *testing.T, rdb redis.UniversalClient) { exec(t, rdb, "hdel", manifest, "i00001") },
		"damaged row": func(t *testing.T, rdb redis.UniversalClient) { exec(t, rdb, "hset", manifest, "i00001", "damaged row") },
		"row of lies": func(t *testing.T, rdb redis.UniversalClient) {
			exec(t, rdb, "hset", manifest, "i00001", "12345678"+"7\nscolor.1:lies\nq\nz")
		},
		"foreign row": func(t *testing.T, rdb redis.UniversalClient) {
			exec(t, rdb, "hset", manifest, "nobody", "12345678"+"7\nscolor.1:c1")
		},
		"wrong in row": func(t *testing.T, rdb redis.UniversalClient) {
			exec(t, rdb, "hset", manifest, "i00001", "12345678"+"7\nscolor.1:c2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				c, rdb := open(t, s, items)
				fill(t, c, 60)
				damage(t, rdb)
				before := redistest.Snapshot(t, rdb)
				rep := verify(t, c)
				require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, rdb)), "verify changes nothing")
				require.Equal(t, findings[name], [3]int64{rep.Missing, rep.Stale, rep.Orphan})
				run(t, c)
				check(t, rdb)
				clean(t, c, rdb)
				require.NoError(t, c.Put(context.Background(), numbered(1)), "it can be written again")
				clean(t, c, rdb)
			})
		})
	}
}

func TestACopyOfAnotherRecordIsReportedAndLeavesTheIndexOfWhatItReplaced(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		fill(t, c, 60)
		exec(t, rdb, "copy", record("i00001"), record("i00002"), "replace")
		rep := run(t, c)
		require.EqualValues(t, 1, rep.Foreign)
		require.EqualValues(t, 5, rep.Stale, "it stays in the order that holds every record")
		require.EqualValues(t, 5, rep.Fixed)
		rep = verify(t, c)
		require.Len(t, rep.Findings, 1)
		require.Equal(t, record("i00002"), rep.Findings[0].Key)
		one, err := c.One(ctx, byCode.Is("code1"))
		require.NoError(t, err)
		require.Equal(t, "i00001", one.ID)
		for k, e := range redistest.Snapshot(t, rdb) {
			if strings.Contains(k, "~color.") {
				require.NotContains(t, e.Elements, "i00002")
			}
		}
	})
}

func TestAHashOverARecordIsReported(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := open(t, s, items)
		fill(t, c, 10)
		exec(t, rdb, "del", record("i00003"))
		exec(t, rdb, "hset", record("i00003"), "f", "x")
		before := redistest.Snapshot(t, rdb)
		rep := run(t, c)
		require.Len(t, rep.Findings, 1)
		require.Equal(t, repair.Foreign, rep.Findings[0].Kind)
		require.Equal(t, record("i00003"), rep.Findings[0].Key)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, rdb)), "never touched")
	})
}

func TestNegativeAndEqualScoresAreAllRestored(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, define(index.Forever, byWeight, bySerial))
		want := 0
		for i := range 60 {
			require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("e", i), Weight: float64(i%3) - 7, Serial: int64(i%3) - 7}))
			want++
		}
		exec(t, rdb, "del", entryKey("weight.1"), entryKey("serial.1"))
		require.EqualValues(t, 120, run(t, c).Fixed)
		for size := 1; size <= 3; size++ {
			for _, order := range []func(int) index.Order[item]{byWeight.Bottom, bySerial.Bottom} {
				met := map[string]bool{}
				page, err := c.Top(ctx, order(size))
				for {
					require.NoError(t, err)
					for _, i := range page.Items {
						require.False(t, met[i.ID])
						met[i.ID] = true
					}
					if page.Next == "" {
						break
					}
					page, err = c.Top(ctx, order(size).After(page.Next))
				}
				require.Len(t, met, want)
			}
		}
	})
}

func TestRecordsBehindManyForeignKeysAreAllFound(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	rdb := s.Client(t)
	pipe := rdb.Pipeline()
	for i := range 200 {
		var pairs []any
		for j := range 1000 {
			pairs = append(pairs, fmt.Sprint("other:", i*1000+j), "x")
		}
		pipe.MSet(ctx, pairs...)
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	c, _ := open(t, s, items)
	fill(t, c, 300)
	drop(t, s, rdb, func(k string) bool { return strings.Contains(k, ":~") && !strings.Contains(k, "~~catalog") })
	rep := run(t, c)
	require.EqualValues(t, 300, rep.Records)
	require.Zero(t, rep.ExitCode(), "%+v", rep)
	check(t, rdb)
}

func TestOtherVersionsAndFieldsAreNobodysFinding(t *testing.T) {
	s := redistest.Redis(t)
	c, rdb := open(t, s, items)
	fill(t, c, 10)
	exec(t, rdb, "set", prefix+"i00001:avatar:v1", "x")
	exec(t, rdb, "set", prefix+"i00001:v2", "x")
	exec(t, rdb, "sadd", prefix+"~color.1:red:v2", "x")
	exec(t, rdb, "set", "acme:items:{items}:a:v1", "x")
	exec(t, rdb, "set", "acme:item:sub:{sub}:a:v1", "x")
	clean(t, c, rdb)
}

func TestLongIdsAreFoundByWhatTheRecordSays(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		long := strings.Repeat("long ", 100)
		require.NoError(t, c.Put(ctx, item{ID: long, Color: "red", Code: "l", Weight: 1}))
		require.NoError(t, c.Put(ctx, item{ID: long + "2", Color: strings.Repeat("r", 300), Code: "m", Weight: 2}))
		clean(t, c, rdb)
		drop(t, s, rdb, func(k string) bool {
			return strings.Contains(k, "~") && !strings.Contains(k, "~~catalog") && !strings.Contains(k, ":~x")
		})
		rep := run(t, c)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		require.True(t, rdb.SIsMember(ctx, entryKey("color.1:red"), long).Val())
		clean(t, c, rdb)
		one, err := c.One(ctx, byCode.Is("l"))
		require.NoError(t, err)
		require.Equal(t, long, one.ID)
	})
}

func TestExpiredRecordsAreNoDamageAndAreCollected(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, define(40*time.Millisecond, byColor, byCode, byWeight, bySerial))
		fill(t, c, 20)
		require.Eventually(t, func() bool {
			if s.Mini != nil {
				s.Mini.FastForward(50 * time.Millisecond) // its clock is the real one; the expiry of its keys is not
			}
			return rdb.Exists(ctx, record("i00001")).Val() == 0
		}, 5*time.Second, 10*time.Millisecond)
		require.Eventually(t, func() bool {
			rep := verify(t, c)
			require.Zero(t, rep.Stale+rep.Missing+rep.Misranked)
			return rep.Expired == 80 && rep.Orphan == 0 && rep.ExitCode() == 0
		}, 5*time.Second, 10*time.Millisecond)
		rep := run(t, c)
		require.EqualValues(t, 80, rep.Expired)
		require.Empty(t, rep.Findings)
		for _, k := range s.Keys(t) {
			require.True(t, strings.Contains(k, "~~meta") || strings.Contains(k, "~~catalog"), k)
		}
	})
}

func TestAUniqueValueOfAGhostIsFreedForWhoAsksForIt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		fill(t, c, 10)
		// i00001 has lost its code to a ghost, and i00002 to a record that does not ask for it.
		exec(t, rdb, "srem", entryKey("code.1:code1"), "i00001")
		exec(t, rdb, "sadd", entryKey("code.1:code1"), "ghost")
		exec(t, rdb, "srem", entryKey("code.1:code2"), "i00002")
		exec(t, rdb, "sadd", entryKey("code.1:code2"), "i00003")
		rep := run(t, c)
		require.EqualValues(t, 2, rep.Missing)
		require.EqualValues(t, 1, rep.Orphan)
		require.EqualValues(t, 1, rep.Stale)
		require.EqualValues(t, 4, rep.Fixed)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		one, err := c.One(ctx, byCode.Is("code1"))
		require.NoError(t, err)
		require.Equal(t, "i00001", one.ID)
		check(t, rdb)
		clean(t, c, rdb)
	})
}

func TestTwoRecordsThatAskForOneUniqueValueAreNamed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := open(t, s, items)
		fill(t, c, 10)
		rec := numbered(1)
		rec.Code, rec.Color = "code5", "other"
		b, err := json.Marshal(rec)
		require.NoError(t, err)
		exec(t, rdb, "set", record(rec.ID), b)
		rep := run(t, c)
		require.Equal(t, repair.ExitSkipped, rep.ExitCode(), "%+v", rep)
		var conflict *index.ConflictError
		for _, f := range rep.Findings {
			if f.Err != nil {
				require.True(t, errors.As(f.Err, &conflict))
			} else {
				require.True(t, f.Fixed, "the rest of the record is put right: %+v", f)
			}
		}
		require.Equal(t, index.ConflictError{Entity: "acme:item", ID: "i00001", Index: "code", Value: "code5", Holder: "i00005"}, *conflict)
		require.True(t, rdb.SIsMember(context.Background(), entryKey("color.1:other"), "i00001").Val())
	})
}
