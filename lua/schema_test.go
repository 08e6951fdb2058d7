package lua

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

const catalog = "acme:billing:account:~~catalog:v1"

func (w *world) state(field string) string { return w.rdb.HGet(w.ctx, meta, field).Val() }

func TestANewerDeclarationMakesWhatItDoesNotMaintainUnready(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		w := newWorld(t, s)
		enter := func(generation int64, states ...string) error {
			return w.enter(generation, Ready, states)
		}
		require.NoError(t, enter(1, "index:a.1", "index:b.1"))
		require.Equal(t, "ready", w.state("index:a.1"))
		before := redistest.Snapshot(t, w.rdb)
		require.NoError(t, enter(1, "index:a.1", "index:b.1"))
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)), "entering twice changes nothing")

		require.NoError(t, enter(2, "index:a.1", "index:c.1"))
		require.Equal(t, []string{"ready", "dropping", "building"},
			[]string{w.state("index:a.1"), w.state("index:b.1"), w.state("index:c.1")})
		require.NoError(t, enter(1, "index:a.1", "index:b.1"), "the old release still writes")
		require.Equal(t, "dropping", w.state("index:b.1"), "and does not undo the new one")

		require.NoError(t, enter(3, "index:a.1", "index:b.1"))
		require.Equal(t, []string{"ready", "building", "dropping"},
			[]string{w.state("index:a.1"), w.state("index:b.1"), w.state("index:c.1")}, "a rollback has missed writes")

		require.NoError(t, w.rdb.HSet(w.ctx, meta, "schema", "3 3 e").Err())
		before = redistest.Snapshot(t, w.rdb)
		var schema *SchemaError
		require.ErrorAs(t, enter(2, "index:z.1"), &schema)
		require.Equal(t, SchemaError{Generation: 2, Min: 3}, *schema)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)))
	})
}

func TestAPartitionThatLostItsMetaIsNotTakenForNew(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		w := newWorld(t, s)
		require.NoError(t, w.rdb.HSet(w.ctx, manifest, "a", "write0011").Err())
		require.NoError(t, w.enter(1, Ready, []string{"index:a.1"}))
		require.Equal(t, "building", w.state("index:a.1"))

		for _, key := range []string{meta, manifest} {
			s.Flush(t)
			require.NoError(t, w.rdb.Set(w.ctx, key, "x", 0).Err())
			var typed *KeyTypeError
			require.ErrorAs(t, w.enter(1, Ready, nil), &typed)
			require.Equal(t, KeyTypeError{Key: key, Found: "string"}, *typed)
			require.Equal(t, []string{key}, s.Keys(t))
		}
	})
}

func TestADeclarationKeepsItsGenerationAndAChangedOneGetsTheNext(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		w := newWorld(t, s)
		register := func(c RegisterCall) Registration {
			t.Helper()
			c.Catalog = catalog
			reg, err := w.r.Register(w.ctx, c)
			require.NoError(t, err)
			return reg
		}
		ab := RegisterCall{Fingerprint: "ab", Text: "text of ab", Indexes: []IndexDefinition{{"a", "a1"}, {"b", "b1"}}}
		require.Equal(t, Registration{New: true}, register(ab))
		require.Empty(t, s.Keys(t), "asking writes nothing")

		ab.Start = Ready
		first := Registration{Generation: 1, Start: Ready, Indexes: []int{1, 1}}
		require.Equal(t, first, register(ab))
		ab.Start = Building
		require.Equal(t, first, register(ab), "the first start stays")
		require.NoError(t, w.r.Planted(w.ctx, catalog))
		first.Planted = true
		require.Equal(t, first, register(ab))

		ac := RegisterCall{Fingerprint: "ac", Start: Ready, Indexes: []IndexDefinition{{"a", "a2"}, {"c", "c1"}}}
		require.Equal(t, Registration{Generation: 2, Start: Ready, Planted: true, Indexes: []int{2, 1}}, register(ac))
		require.Equal(t, first, register(ab), "an older declaration finds its own generations again")
		ab.Supersede = true
		first.Generation = 3
		require.Equal(t, first, register(ab), "a rollback becomes the newest, over the same definitions")
		before := redistest.Snapshot(t, w.rdb)
		require.Equal(t, first, register(ab), "once")
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)))
		require.Equal(t, "text of ab", w.rdb.HGet(w.ctx, catalog, "text:1").Val())

		ab.Catalog = catalog
		read, err := w.r.Catalog(w.ctx, ab)
		require.NoError(t, err)
		require.Equal(t, first, read, "read without writing")
		read, err = w.r.Catalog(w.ctx, RegisterCall{Catalog: catalog, Fingerprint: "unknown"})
		require.NoError(t, err)
		require.Equal(t, Registration{New: true}, read)
	})
}

func TestAForeignValueAtTheCatalogIsRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		w := newWorld(t, s)
		require.NoError(t, w.rdb.Set(w.ctx, catalog, "x", 0).Err())
		_, err := w.r.Register(w.ctx, RegisterCall{Catalog: catalog, Fingerprint: "ab", Start: Ready})
		var typed *KeyTypeError
		require.ErrorAs(t, err, &typed)
		require.Equal(t, KeyTypeError{Key: catalog, Found: "string"}, *typed)
		require.Equal(t, "x", w.rdb.Get(w.ctx, catalog).Val())
		_, err = w.r.Catalog(w.ctx, RegisterCall{Catalog: catalog})
		require.ErrorContains(t, err, catalog)
	})
}

func TestManyIndexesFitIntoOneDeclaration(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		w := newWorld(t, s)
		c := RegisterCall{Catalog: catalog, Fingerprint: "many", Start: Ready}
		var states []string
		for i := range 1200 {
			name := "i" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
			c.Indexes = append(c.Indexes, IndexDefinition{name, "f"})
			states = append(states, StateField(name, 1))
		}
		reg, err := w.r.Register(w.ctx, c)
		require.NoError(t, err)
		require.Len(t, reg.Indexes, 1200)
		require.NoError(t, w.enter(reg.Generation, reg.Start, states))
		require.Equal(t, "ready", w.state(states[1199]))
	})
}
