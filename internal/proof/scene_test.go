package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
)

// scene is a collection behind a proxy, under a mutant or none, beside another one that is whole and goes past both.
type scene struct {
	*world
	proxy *redistest.Proxy
	other *index.Collection[thing]
}

func newScene(t *testing.T, m mutant) *scene {
	s := redistest.Redis(t)
	p := redistest.NewProxy(t, s)
	rdb := p.Client(t)
	if m.name != "" {
		m.apply(t)(rdb)
	}
	sc := &scene{world: newWorld(t, s, rdb), proxy: p}
	sc.other = sc.open()
	return sc
}

func (sc *scene) open() *index.Collection[thing] {
	c, err := index.Open(context.Background(), sc.direct, things, index.OpenOptions{Retry: patient, AssumeEmpty: true})
	require.NoError(sc.t, err)
	return c
}

// between makes the next call of a script meet a fault, and fn happen before the one that follows is handed on.
func (sc *scene) between(f redistest.FaultKind, fn func()) {
	sc.proxy.Inject(redistest.Writes, func(n int, _ string) redistest.Fault {
		switch n {
		case 1:
			return redistest.Fault{Kind: f}
		case 2:
			fn()
		}
		return redistest.Fault{}
	})
}

func (sc *scene) put(c *index.Collection[thing], id, color, stamp string) {
	require.NoError(sc.t, c.Put(context.Background(), thing{ID: id, Color: color, Group: "g0", Stamp: stamp}))
}

// want gives an error unless err is target and the record has a stamp.
func (sc *scene) want(err, target error, id, stamp string) error {
	now, _ := sc.stored(id)
	if !is(err, target) || now.Stamp != stamp {
		return fmt.Errorf("%v, and the store has %q, want %v and %q", err, now.Stamp, target, stamp) //nolint:errorlint // either may be nil
	}
	if found := sc.findings(); len(found) > 0 {
		return fmt.Errorf("the oracle: %q", found)
	}
	return nil
}

// sceneRollback: a failover goes back to before what the client has seen, and somebody writes the record there.
func sceneRollback(t *testing.T, m mutant) error {
	sc := newScene(t, m)
	sc.put(sc.c, "i0", "c0", "first")
	dumps := map[string]string{}
	for _, k := range sc.s.Keys(t) {
		dumps[k] = sc.direct.Dump(t.Context(), k).Val()
	}
	for range 5 {
		sc.put(sc.c, "i0", "c0", "lost")
	}
	sc.between(redistest.CutBefore, func() {
		sc.direct.FlushAll(context.Background())
		for k, dump := range dumps {
			sc.direct.Restore(context.Background(), k, 0, dump)
		}
		sc.put(sc.other, "i0", "c0", "after")
	})
	err := sc.c.Put(t.Context(), thing{ID: "i0", Color: "c0", Group: "g0", Stamp: "ours"})
	return sc.want(err, index.ErrUnknown, "i0", "after")
}

// sceneBeganAnew: the partition is emptied and begins again while a reply is lost.
func sceneBeganAnew(t *testing.T, m mutant) error {
	sc := newScene(t, m)
	for range 3 {
		sc.put(sc.c, "i0", "c0", "first")
	}
	sc.between(redistest.CutAfter, func() {
		sc.direct.FlushAll(context.Background())
		again := sc.open()
		sc.put(again, "i0", "c0", "after")
		for range 5 {
			sc.put(again, "i1", "c0", "other")
		}
	})
	err := sc.c.Put(t.Context(), thing{ID: "i0", Color: "c0", Group: "g0", Stamp: "ours"})
	return sc.want(err, index.ErrUnknown, "i0", "after")
}

// sceneLostRowMoves: a record without a row gets another value, without a row again, before the plan from its bytes arrives.
func sceneLostRowMoves(t *testing.T, m mutant) error {
	sc := newScene(t, m)
	sc.put(sc.c, "i0", "c0", "first")
	lose := func() { require.NoError(t, sc.direct.HDel(context.Background(), manifest, "i0").Err()) }
	lose()
	sc.between(redistest.Pass, func() {
		sc.put(sc.other, "i0", "c2", "other")
		lose()
	})
	err := sc.c.Put(t.Context(), thing{ID: "i0", Color: "c1", Group: "g0", Stamp: "ours"})
	return sc.want(err, nil, "i0", "ours")
}

// sceneForeignRecord: something else sits at a record's key.
func sceneForeignRecord(t *testing.T, m mutant) error {
	sc := newScene(t, m)
	ctx := t.Context()
	require.NoError(t, sc.direct.SAdd(ctx, recordKey("i0"), "x").Err())
	err := sc.c.Put(ctx, thing{ID: "i0", Color: "c0", Group: "g0"})
	if kept := sc.direct.Type(ctx, recordKey("i0")).Val(); !errors.Is(err, index.ErrKeyType) || kept != "set" {
		return fmt.Errorf("%v, and the key is a %s", err, kept) //nolint:errorlint // it may be nil
	}
	return nil
}

// sceneFullServer: no memory is left, then a record moves from one value to another, which would begin with a removal.
func sceneFullServer(t *testing.T, m mutant) error {
	sc := newScene(t, m)
	ctx := t.Context()
	sc.put(sc.c, "i0", "c0", "first")
	require.NoError(t, sc.direct.ConfigSet(ctx, "maxmemory", "1").Err())
	full := sc.c.Put(ctx, thing{ID: "i0", Color: "c1", Group: "g0", Stamp: "ours"})
	_, many := sc.c.PutMany(ctx, []thing{{ID: "i0", Color: "c1", Group: "g0"}, {ID: "i1", Color: "c1", Group: "g0"}})
	if err := sc.want(full, index.ErrOutOfMemory, "i0", "first"); err != nil {
		return err
	}
	if err := sc.want(many, index.ErrOutOfMemory, "i0", "first"); err != nil {
		return err
	}
	frees := sc.c.Delete(ctx, "i0")
	require.NoError(t, sc.direct.ConfigSet(ctx, "maxmemory", "0").Err())
	return sc.want(frees, nil, "i0", "")
}

// sceneLifetime: an update of a record that expires.
func sceneLifetime(t *testing.T, m mutant) error {
	sc := newScene(t, m)
	ctx := t.Context()
	timed := index.Define("acme", "timed", index.Options[thing]{
		ID: func(x thing) string { return x.ID }, Version: 1, Lifetime: time.Hour, Indexes: []index.Index[thing]{byColor},
	})
	c, err := index.Open(ctx, sc.rdb, timed)
	require.NoError(t, err)
	require.NoError(t, c.Put(ctx, thing{ID: "i0", Color: "c0"}))
	_, err = c.Update(ctx, "i0", func(x *thing) error { x.Color = "c1"; return nil })
	require.NoError(t, err)
	if left := sc.direct.PTTL(ctx, "acme:timed:{timed}:i0:v1").Val(); left <= 0 || left > time.Hour {
		return fmt.Errorf("%v are left of an hour", left)
	}
	return nil
}

// sceneOldGeneration: a newer declaration has taken over, and the older one writes.
func sceneOldGeneration(t *testing.T, m mutant) error {
	sc := newScene(t, m)
	ctx := t.Context()
	extra := membership.New("extra", func(x thing) string { return x.Stamp })
	wider := index.Define("acme", "thing", index.Options[thing]{
		ID: func(x thing) string { return x.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[thing]{byColor, byRegion, byTag, byCode, byScore, byFine, byHeat, extra},
	})
	_, err := index.Open(ctx, sc.direct, wider)
	require.NoError(t, err)
	// What the builder of the new index does first.
	meta := space + "~~meta" + version
	schema := sc.direct.HGet(ctx, meta, "schema").Val()
	require.True(t, strings.HasPrefix(schema, "1 2 "), schema)
	require.NoError(t, sc.direct.HSet(ctx, meta, "schema", "2"+schema[1:]).Err())
	err = sc.c.Put(ctx, thing{ID: "i0", Color: "c0", Group: "g0", Stamp: "ours"})
	return sc.want(err, index.ErrSchema, "i0", "")
}

// The same scenes with every safeguard in place.
func TestARepeatAfterTheServerLostWritesIsUnknown(t *testing.T) {
	require.NoError(t, sceneRollback(t, mutant{}))
}

func TestARepeatInAPartitionThatBeganAnewIsUnknown(t *testing.T) {
	require.NoError(t, sceneBeganAnew(t, mutant{}))
}

func TestARecordWithoutARowThatMovesMeanwhileLeavesNothingBehind(t *testing.T) {
	require.NoError(t, sceneLostRowMoves(t, mutant{}))
}

func TestAForeignValueAtARecordsKeyStays(t *testing.T) {
	require.NoError(t, sceneForeignRecord(t, mutant{}))
}

func TestAFullServerRefusesWholeWritesAndAllowsDeletes(t *testing.T) {
	require.NoError(t, sceneFullServer(t, mutant{}))
}

func TestAnUpdateKeepsTheLifetimeOfItsRecord(t *testing.T) {
	require.NoError(t, sceneLifetime(t, mutant{}))
}

func TestAWriterOfAnOldDeclarationIsRefused(t *testing.T) {
	require.NoError(t, sceneOldGeneration(t, mutant{}))
}

// TestAWriteRefusedWhenItIsRepeatedIsUnknown: a newer declaration takes over while the reply of an applied write is lost. That
// the repeat is refused says nothing about the write.
func TestAWriteRefusedWhenItIsRepeatedIsUnknown(t *testing.T) {
	sc := newScene(t, mutant{})
	meta := space + "~~meta" + version
	sc.between(redistest.CutAfter, func() {
		schema := sc.direct.HGet(context.Background(), meta, "schema").Val()
		sc.direct.HSet(context.Background(), meta, "schema", "2 2"+schema[3:])
	})
	err := sc.c.Put(t.Context(), thing{ID: "i0", Color: "c0", Group: "g0", Stamp: "ours"})
	require.NoError(t, sc.want(err, index.ErrUnknown, "i0", "ours"))
}

// TestAValueOfAVanishedRecordIsFreeInABatchThatWritesThatRecordToo: the record that is gone is written by the same call, and
// either takes the value of the record that takes its own, or fails because another one holds what it asks for.
func TestAValueOfAVanishedRecordIsFreeInABatchThatWritesThatRecordToo(t *testing.T) {
	rec := func(id, code string) thing { return thing{ID: id, Color: "c0", Group: "g0", Code: code} }
	for name, c := range map[string]struct {
		batch []thing
		want  []error
	}{
		"they change places":      {[]thing{rec("i0", "k1"), rec("gone", "k0")}, []error{nil, nil}},
		"the vanished one fails":  {[]thing{rec("gone", "k2"), rec("i0", "k1")}, []error{index.ErrConflict, nil}},
		"the vanished one is new": {[]thing{rec("gone", "k3"), rec("i0", "k1")}, []error{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t, mutant{})
			ctx := t.Context()
			for _, x := range []thing{rec("i0", "k0"), rec("gone", "k1"), rec("i2", "k2")} {
				require.NoError(t, sc.c.Put(ctx, x))
			}
			require.NoError(t, sc.direct.Del(ctx, recordKey("gone")).Err())
			outcomes, _ := sc.c.PutMany(ctx, c.batch)
			for i, out := range outcomes {
				require.ErrorIs(t, out.Err, c.want[i], c.batch[i].ID)
			}
			require.Empty(t, sc.findings())
		})
	}
}
