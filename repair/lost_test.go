package repair_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// drop deletes the keys that match.
func drop(t testing.TB, s *redistest.Server, rdb redis.UniversalClient, match func(k string) bool) {
	t.Helper()
	n := 0
	for _, k := range s.Keys(t) {
		if match(k) {
			n++
			exec(t, rdb, "del", k)
		}
	}
	require.Positive(t, n)
}

func TestOneRunRestoresWhateverBookkeepingIsLost(t *testing.T) {
	indexKeys := func(k string) bool { return strings.Contains(k, ":~") && !strings.Contains(k, "~~") }
	is := func(names ...string) func(string) bool {
		return func(k string) bool {
			for _, n := range names {
				if k == n {
					return true
				}
			}
			return false
		}
	}
	either := func(fs ...func(string) bool) func(string) bool {
		return func(k string) bool {
			for _, f := range fs {
				if f(k) {
					return true
				}
			}
			return false
		}
	}
	for _, lost := range []struct {
		name   string
		match  func(string) bool
		reopen bool
		built  bool // nothing answers until it is repaired
	}{
		{"index keys", indexKeys, false, false},
		{"manifest", is(manifest), false, false},
		{"meta", is(meta), false, true},
		{"floor", is(floors), false, false},
		{"catalog", is(catalog), true, false},
		{"meta and manifest", is(meta, manifest), false, true},
		{"index keys, manifest and meta", either(indexKeys, is(meta, manifest)), false, true},
		{"everything but the records", func(k string) bool { return strings.Contains(k, ":~") }, true, true},
		{"one index", func(k string) bool { return strings.Contains(k, "~color.") }, false, false},
	} {
		t.Run(lost.name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				ctx := context.Background()
				best := ranked.New("best", func(i item) float64 { return i.Weight }, ranked.Keep(20), ranked.Slack(0))
				e := define(index.Forever, byColor, byCode, byTag, byWeight, bySerial, best)
				c, rdb := open(t, s, e)
				fill(t, c, 200)
				healthy := redistest.Snapshot(t, rdb)
				drop(t, s, rdb, lost.match)
				if lost.reopen {
					c, rdb = open(t, s, e)
				}
				rep := verify(t, c)
				require.Equal(t, lost.built, len(rep.NotReady) > 0, "%v", rep.NotReady)
				if lost.built {
					_, err := c.Count(ctx, byColor.Is("c1"))
					require.ErrorIs(t, err, index.ErrNotReady, "never a short answer")
				}

				rep = run(t, c)
				require.Zero(t, rep.ExitCode(), "%+v", rep)
				require.Empty(t, rep.NotReady)
				clean(t, c, rdb)
				n, err := c.Count(ctx, byColor.Is("c1"))
				require.NoError(t, err)
				require.EqualValues(t, 4, n)
				top, err := c.Top(ctx, best.Top(20))
				require.NoError(t, err)
				require.Len(t, top.Items, 20)
				require.InDelta(t, -301.25, top.Items[0].Score.Float64(), 0, "the best is the best")
				require.True(t, top.Complete)
				after := redistest.Snapshot(t, rdb)
				for k, e := range healthy {
					if strings.Contains(k, ":~") && !strings.Contains(k, "~~") {
						require.Equal(t, e.Elements, after[k].Elements, k)
					} else if !strings.Contains(k, "~~") {
						require.Equal(t, e.Value, after[k].Value)
					}
				}
			})
		})
	}
}

func TestAnIndexKeyThatIsSomethingElseIsReportedAndLeftAlone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := open(t, s, items)
		fill(t, c, 60)
		want := map[string]bool{}
		for _, k := range s.Keys(t) {
			if strings.Contains(k, ":~") && !strings.Contains(k, "~~") {
				exec(t, rdb, "set", k, "foreign")
				want[k] = true
			}
		}
		before := redistest.Snapshot(t, rdb)
		rep := verify(t, c)
		for _, f := range rep.Findings {
			require.Equal(t, repair.Foreign, f.Kind)
			require.True(t, want[f.Key])
			delete(want, f.Key)
		}
		require.Empty(t, want, "each is reported")
		require.EqualValues(t, 6*60, rep.Skipped, "no entry can be judged")
		require.Equal(t, repair.ExitFindings+repair.ExitSkipped, rep.ExitCode())
		rep = run(t, c)
		require.Zero(t, rep.Fixed)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, rdb)))
	})
}

// TestASweepDoesNotTakeALostPartitionForAnEmptyOne leaves nothing but the records and the catalog.
func TestASweepDoesNotTakeALostPartitionForAnEmptyOne(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		fill(t, c, 10)
		drop(t, s, rdb, func(k string) bool { return strings.Contains(k, "{item}:~") })
		rep, err := repair.Sweep(ctx, c, repair.Options{})
		require.NoError(t, err)
		require.Zero(t, rep.Records)
		for _, again := range []bool{false, true} {
			if again {
				c, _ = open(t, s, items)
			}
			_, err = c.Count(ctx, byColor.Is("c1"))
			require.ErrorIs(t, err, index.ErrNotReady, "never a short answer")
		}
		require.Zero(t, run(t, c).ExitCode())
		check(t, rdb)
	})
}
