package repair_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// TestAChangedDefinitionAnswersWholeOrNotAtAllForwardsAndBack folds an index that was case sensitive, and takes that back.
func TestAChangedDefinitionAnswersWholeOrNotAtAllForwardsAndBack(t *testing.T) {
	folded := membership.New("color", func(i item) string { return i.Color }, membership.Fold)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		before := define(index.Forever, byColor, byCode)
		old, rdb := open(t, s, before)
		fill(t, old, 200)
		whole := func(c *index.Collection[item], cond index.Condition[item]) {
			t.Helper()
			n, err := c.Count(ctx, cond)
			require.NoError(t, err)
			require.EqualValues(t, 4, n)
		}
		closed := func(c *index.Collection[item], cond index.Condition[item]) {
			t.Helper()
			_, err := c.Count(ctx, cond)
			require.ErrorIs(t, err, index.ErrNotReady)
		}
		whole(old, byColor.Is("c1"))
		young, _ := open(t, s, define(index.Forever, folded, byCode))
		closed(young, folded.Is("C1"))
		// From the moment at which a writer that does not maintain it may come, the old one is not whole either.
		closed(old, byColor.Is("c1"))
		one, err := old.One(ctx, byCode.Is("code7"))
		require.NoError(t, err, "an index that has not changed goes on, for both")
		require.Equal(t, "i00007", one.ID)
		rec := numbered(7)
		require.NoError(t, young.Put(ctx, rec))
		require.NoError(t, old.Put(ctx, numbered(8)), "the old release still writes")

		switched := false
		rep, err := repair.Build(ctx, young, "color", repair.Options{Progress: func(repair.Progress) {
			_, err := young.Count(ctx, folded.Is("C1"))
			switched = switched || err == nil
		}})
		require.NoError(t, err)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		require.False(t, switched, "not before the end")
		whole(young, folded.Is("C1"))
		require.ErrorIs(t, old.Put(ctx, rec), index.ErrSchema)

		// And back: the old declaration is entered again, as the newest.
		back, _ := open(t, s, before, index.OpenOptions{Supersede: true})
		closed(back, byColor.Is("c1"))
		rep, err = repair.Build(ctx, back, "color", repair.Options{})
		require.NoError(t, err)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		whole(back, byColor.Is("c1"))
		require.NoError(t, back.Put(ctx, rec))
		require.Zero(t, run(t, back).ExitCode())
		clean(t, back, rdb)
		for _, k := range s.Keys(t) {
			require.NotContains(t, k, "~color.2")
		}
	})
}

// twice makes every page of SCAN give each key twice, as a server may while its table grows.
type twice struct{ redis.Hook }

func (twice) DialHook(next redis.DialHook) redis.DialHook { return next }

func (twice) double(cmd redis.Cmder) {
	scan, ok := cmd.(*redis.ScanCmd)
	if !ok || cmd.Name() != "scan" {
		return
	}
	if page, cursor, err := scan.Result(); err == nil {
		scan.SetVal(append(page[:len(page):len(page)], page...), cursor)
	}
}

func (h twice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.double(cmd)
		return err
	}
}

func (h twice) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			h.double(cmd)
		}
		return err
	}
}

func TestARecordThatABuildMeetsTwiceIsNoDuplicate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, noUnique)
		fill(t, old, 120)
		doubled := s.Client(t)
		if cluster, ok := doubled.(*redis.ClusterClient); ok {
			cluster.OnNewNode(func(node *redis.Client) { node.AddHook(twice{}) })
		} else {
			doubled.AddHook(twice{})
		}
		c, err := index.Open(ctx, doubled, define(index.Forever, byColor, byTag, byWeight, bySerial, byCode))
		require.NoError(t, err)
		rep, err := repair.Build(ctx, c, "code", repair.Options{})
		require.NoError(t, err)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		require.EqualValues(t, 120, rep.Records)
		require.EqualValues(t, 120, rep.Fixed)
		check(t, rdb)
		clean(t, c, rdb)
	})
}

// TestARecordThatIsWrittenAgainWhileItsEntryIsBuiltIsIndexedAsItIsNow acts between the builder's look and its write.
func TestARecordThatIsWrittenAgainWhileItsEntryIsBuiltIsIndexedAsItIsNow(t *testing.T) {
	for name, act := range map[string]func(t *testing.T, c *index.Collection[item]){
		"deleted": func(t *testing.T, c *index.Collection[item]) {
			require.NoError(t, c.Delete(context.Background(), "i00001"))
		},
		"deleted and created elsewhere": func(t *testing.T, c *index.Collection[item]) {
			require.NoError(t, c.Delete(context.Background(), "i00001"))
			rec := numbered(1)
			rec.Net = "elsewhere"
			require.NoError(t, c.Create(context.Background(), rec))
		},
		"deleted and created alike": func(t *testing.T, c *index.Collection[item]) {
			require.NoError(t, c.Delete(context.Background(), "i00001"))
			require.NoError(t, c.Create(context.Background(), numbered(1)))
		},
		"moved": func(t *testing.T, c *index.Collection[item]) {
			_, err := c.Update(context.Background(), "i00001", func(i *item) error { i.Net = "elsewhere"; return nil })
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				ctx := context.Background()
				old, rdb := open(t, s, items)
				fill(t, old, 5)
				c, builder, _, slow := mend(t, s, withNet)
				acted := false
				between(slow, t, "apply", func() { acted = true; act(t, c) })
				rep, err := repair.Build(ctx, builder, "net", repair.Options{})
				require.NoError(t, err)
				require.Zero(t, rep.ExitCode(), "%+v", rep)
				require.True(t, acted)
				held, want := countNet(t, rdb)
				require.Equal(t, want, held)
				n, err := c.Count(ctx, byNet.In("n0", "n1", "n2", "elsewhere"))
				require.NoError(t, err)
				require.EqualValues(t, want, n)
				clean(t, c, rdb)
			})
		})
	}
}

// TestAToolThatDoesNotKnowAnIndexRefusesInsteadOfClearingIt has a release with an index of another kind beside a tool that was
// built before it.
func TestAToolThatDoesNotKnowAnIndexRefusesInsteadOfClearingIt(t *testing.T) {
	latest := ranked.Within(func(i item) string { return i.Net }, ranked.Exact("latest", func(i item) int64 { return i.Serial }, ranked.Keep(3)))
	tools := map[string]func(context.Context, index.Opened) (repair.Report, error){
		"verify": func(ctx context.Context, c index.Opened) (repair.Report, error) {
			return repair.Verify(ctx, c, repair.Options{})
		},
		"run": func(ctx context.Context, c index.Opened) (repair.Report, error) {
			return repair.Run(ctx, c, repair.Options{})
		},
		"build": func(ctx context.Context, c index.Opened) (repair.Report, error) {
			return repair.Build(ctx, c, "color", repair.Options{})
		},
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, items)
		fill(t, old, 30)
		young, _ := open(t, s, define(index.Forever, byColor, byCode, byTag, byWeight, bySerial, latest))
		for n := range 30 { // before its index is built, when the old release may still write
			require.NoError(t, young.Put(ctx, numbered(n)))
		}
		refuses := func() {
			t.Helper()
			before := redistest.Snapshot(t, rdb)
			for name, tool := range tools {
				rep, err := tool(ctx, old)
				require.ErrorIs(t, err, index.ErrSchema, name)
				require.Empty(t, rep.Findings, "%s: what it does not know is no damage", name)
				require.Equal(t, repair.ExitFailed, rep.ExitCode(), name)
			}
			_, err := repair.Sweep(ctx, old, repair.Options{})
			require.NoError(t, err)
			require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, rdb)))
		}
		refuses()
		rep, err := repair.Build(ctx, young, "latest", repair.Options{})
		require.NoError(t, err)
		require.Zero(t, rep.ExitCode())
		refuses()
		page, err := young.Top(ctx, latest.Of("n0").Top(3))
		require.NoError(t, err)
		require.Len(t, page.Items, 3)
		clean(t, young, rdb)
	})
}

// TestAToolIsToldOfANewerReleaseThatComesWhileItWorks does not end as clean, and what it did to the new index does not last.
func TestAToolIsToldOfANewerReleaseThatComesWhileItWorks(t *testing.T) {
	for name, tool := range map[string]func(context.Context, index.Opened, repair.Options) (repair.Report, error){
		"verify": repair.Verify, "run": repair.Run,
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				ctx := context.Background()
				old, rdb := open(t, s, items)
				fill(t, old, 30)
				var young *index.Collection[item]
				rep, err := tool(ctx, old, repair.Options{Progress: func(p repair.Progress) {
					if p.Phase == repair.Entries && young == nil {
						young, _ = open(t, s, withNet)
						for n := range 30 {
							require.NoError(t, young.Put(ctx, numbered(n)))
						}
					}
				}})
				require.NotNil(t, young)
				require.ErrorIs(t, err, index.ErrSchema)
				require.Equal(t, repair.ExitFailed, rep.ExitCode()&repair.ExitFailed)
				_, err = young.Count(ctx, byNet.Is("n0"))
				require.ErrorIs(t, err, index.ErrNotReady)
				built, err := repair.Build(ctx, young, "net", repair.Options{})
				require.NoError(t, err)
				require.Zero(t, built.ExitCode(), "%+v", built)
				held, want := countNet(t, rdb)
				require.Equal(t, want, held)
				clean(t, young, rdb)
			})
		})
	}
}

// TestAKeyOfATypeThatNoIndexHasIsReportedAndNeverTouched puts other types where index keys belong.
func TestAKeyOfATypeThatNoIndexHasIsReportedAndNeverTouched(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, rdb := open(t, s, items)
		fill(t, c, 30)
		for _, key := range []string{entryKey("color.1:other"), entryKey("shape.1:round"), entryKey("color.9:red")} {
			exec(t, rdb, "rpush", key+"l", "i00001") // no key of ours either
			exec(t, rdb, "hset", key, "i00001", "1")
		}
		exec(t, rdb, "rpush", entryKey("code.1:list"), "i00001")
		exec(t, rdb, "zadd", entryKey("tag.1:ranked"), "1", "i00001")
		before := redistest.Snapshot(t, rdb)
		for _, tool := range []func(context.Context, index.Opened, repair.Options) (repair.Report, error){repair.Verify, repair.Run} {
			rep, err := tool(context.Background(), c, repair.Options{})
			require.NoError(t, err)
			require.EqualValues(t, 8, rep.Foreign, "%+v", rep.Findings)
			require.Len(t, rep.Findings, 8)
			require.Equal(t, repair.ExitFindings, rep.ExitCode())
			require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, rdb)))
		}
	})
}

// TestAnIndexIsRenamedWithoutAnOutageWhereOneReleaseHasBoth declares both names, builds the new one, and drops the old one.
func TestAnIndexIsRenamedWithoutAnOutageWhereOneReleaseHasBoth(t *testing.T) {
	byColour := membership.New("colour", func(i item) string { return i.Color })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		first, rdb := open(t, s, define(index.Forever, byColor, byCode))
		fill(t, first, 100)
		whole := func(c *index.Collection[item], cond index.Condition[item]) {
			t.Helper()
			n, err := c.Count(ctx, cond)
			require.NoError(t, err)
			require.EqualValues(t, 2, n)
		}
		both, _ := open(t, s, define(index.Forever, byColor, byColour, byCode))
		whole(first, byColor.Is("c1"))
		whole(both, byColor.Is("c1"))
		rep, err := repair.Build(ctx, both, "colour", repair.Options{Progress: func(repair.Progress) { whole(both, byColor.Is("c1")) }})
		require.NoError(t, err)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		whole(both, byColor.Is("c1"))
		whole(both, byColour.Is("c1"))
		last, _ := open(t, s, define(index.Forever, byColour, byCode))
		whole(last, byColour.Is("c1"))
		rep = run(t, last)
		require.Zero(t, rep.ExitCode(), "%+v", rep)
		require.EqualValues(t, 100, rep.Stale)
		whole(last, byColour.Is("c1"))
		for _, k := range s.Keys(t) {
			require.NotContains(t, k, "~color.")
		}
		clean(t, last, rdb)
	})
}

func TestAnIndexThatIsNoLongerUniqueRefusesNothing(t *testing.T) {
	plain := membership.Sparse("code", func(i item) (string, bool) { return i.Code, i.Code != "" })
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, define(index.Forever, byColor, byCode))
		fill(t, old, 20)
		c, _ := open(t, s, define(index.Forever, byColor, plain))
		require.NoError(t, c.Create(ctx, item{ID: "before", Code: "code3"}))
		require.Zero(t, run(t, c).ExitCode())
		require.NoError(t, c.Create(ctx, item{ID: "after", Code: "code3"}))
		n, err := c.Count(ctx, plain.Is("code3"))
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		clean(t, c, rdb)
	})
}
