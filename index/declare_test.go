package index_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
)

func TestEverythingWrongWithADeclarationIsReportedAtOnce(t *testing.T) {
	e := index.Define("acme::x", "it em", index.Options[item]{
		Codec: index.Codec[item]{Encode: func(item) ([]byte, error) { return nil, nil }},
		Indexes: []index.Index[item]{
			byColor,
			membership.New("color", func(i item) string { return i.ID }),
			membership.New[item, string]("nofunc", nil),
			membership.New("ptr", func(i item) *string { return &i.ID }),
			membership.New("bad name", func(i item) string { return i.ID }),
			nil,
		},
	})
	err := e.Err()
	require.ErrorIs(t, err, index.ErrInvalid)
	for _, want := range []string{"owner", "entity", "version", "no ID function", "Decode", "no lifetime", "taken by another index", "nofunc", "ptr", "bad name", "index 5 is nil"} {
		require.Contains(t, err.Error(), want)
	}
	s := redistest.Mini(t)
	rdb := s.Client(t)
	unchanged(t, rdb, func() {
		_, openErr := index.Open(context.Background(), rdb, e)
		require.Equal(t, err, openErr)
	})
}

func TestABadDeclarationIsAnErrorAndNeverAPanic(t *testing.T) {
	base := func() index.Options[item] {
		return index.Options[item]{ID: func(i item) string { return i.ID }, Version: 1, Lifetime: index.Forever}
	}
	for name, change := range map[string]func(*index.Options[item]){
		"negative lifetime": func(o *index.Options[item]) { o.Lifetime = -5 * time.Second },
		"tiny lifetime":     func(o *index.Options[item]) { o.Lifetime = time.Microsecond },
		"lifetime too long": func(o *index.Options[item]) { o.Lifetime = index.MaxLifetime + 1 },
		"no lifetime":       func(o *index.Options[item]) { o.Lifetime = 0 },
		"negative budget":   func(o *index.Options[item]) { o.KeyBudget = -1 },
		"negative size":     func(o *index.Options[item]) { o.MaxRecordBytes = -1 },
		"version 0":         func(o *index.Options[item]) { o.Version = 0 },
		"normaliser of other type": func(o *index.Options[item]) {
			o.Indexes = []index.Index[item]{membership.New("x", func(i item) string { return i.ID }, membership.Normalize(func(n int) int { return n }))}
		},
	} {
		o := base()
		change(&o)
		require.ErrorIs(t, index.Define("acme", "item", o).Err(), index.ErrInvalid, name)
	}
	_, err := index.Open[item](context.Background(), nil, items)
	require.ErrorIs(t, err, index.ErrInvalid)
	_, err = index.Open[item](context.Background(), redistest.Mini(t).Client(t), nil)
	require.ErrorIs(t, err, index.ErrInvalid)
}

func TestADeclarationAboveItsKeyBudgetNamesTheIndexes(t *testing.T) {
	o := index.Options[item]{ID: func(i item) string { return i.ID }, Version: 1, Lifetime: index.Forever, KeyBudget: 6}
	for n := range 4 {
		o.Indexes = append(o.Indexes, membership.New(fmt.Sprintf("ix%d", n), func(i item) string { return i.Color }))
	}
	e := index.Define("acme", "item", o)
	require.Equal(t, 7, e.Amplification())
	require.ErrorIs(t, e.Err(), index.ErrInvalid)
	for n := range 4 {
		require.Contains(t, e.Err().Error(), fmt.Sprintf("ix%d", n))
	}
	o.KeyBudget = 7
	require.NoError(t, index.Define("acme", "item", o).Err())
}

func TestEntityTypesThatWouldMixAreReported(t *testing.T) {
	def := func(owner, name string, version int) index.Declared {
		return index.Define(owner, name, index.Options[item]{ID: func(i item) string { return i.ID }, Version: version, Lifetime: index.Forever})
	}
	require.NoError(t, index.Check(def("acme", "a", 1), def("acme", "b", 1), def("acme", "a", 2), def("acmeother", "a", 1)))
	require.ErrorContains(t, index.Check(def("acme", "a", 1), def("acme", "a", 1)), "declared twice")
	require.ErrorContains(t, index.Check(def("acme", "a", 1), def("acme:billing", "a", 1)), "prefix of the other")
	require.ErrorContains(t, index.Check(def("acme:billing", "a", 1), def("acme", "a", 1)), "prefix of the other")
	require.ErrorIs(t, index.Check(def("", "a", 0)), index.ErrInvalid)
}

func TestACosmeticChangeKeepsTheFingerprintAndAnyOtherChangesIt(t *testing.T) {
	base := define(index.Forever, byColor, byTag).Fingerprint()
	require.Equal(t, base, define(time.Hour, byTag, byColor).Fingerprint(), "order and lifetime")
	for name, e := range map[string]*index.Entity[item]{
		"an index more": define(index.Forever, byColor, byTag, byCode),
		"an index less": define(index.Forever, byColor),
		"folded":        define(index.Forever, membership.New("color", func(i item) string { return i.Color }, membership.Fold), byTag),
		"sparse":        define(index.Forever, membership.Sparse("color", func(i item) (string, bool) { return i.Color, true }), byTag),
		"a number":      define(index.Forever, membership.New("color", func(i item) int { return 1 }), byTag),
		"a revision":    define(index.Forever, membership.New("color", func(i item) string { return i.Color }, membership.Revision(1)), byTag),
	} {
		require.NotEqual(t, base, e.Fingerprint(), name)
	}
}

// TestAChangedDefinitionIsANewGenerationBesideTheOldOne folds an index that was case sensitive.
func TestAChangedDefinitionIsANewGenerationBesideTheOldOne(t *testing.T) {
	folded := membership.New("color", func(i item) string { return i.Color }, membership.Fold)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		old, rdb := open(t, s, define(index.Forever, byColor))
		require.NoError(t, old.Put(ctx, item{ID: "a", Color: "Red"}))
		young, _ := open(t, s, define(index.Forever, folded))
		_, err := young.Count(ctx, folded.Is("red"))
		require.ErrorIs(t, err, index.ErrNotReady)
		require.NoError(t, young.Put(ctx, item{ID: "a", Color: "Red"}))
		keys := strings.Join(s.Keys(t), " ")
		require.Contains(t, keys, "~color.2:red")
		require.NotContains(t, keys, "~color.1:", "the entry of the old generation went with the write")
		require.NoError(t, young.Delete(ctx, "a"))
		_ = rdb
	})
}

func TestAnIndexOverRecordsItHasNeverSeenDoesNotAnswer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		rdb := s.Client(t)
		// Records without any bookkeeping: restored from somewhere, or written by other code under the same keys.
		require.NoError(t, rdb.Set(ctx, "acme:item:{item}:a:v1", `{"ID":"a","Color":"red"}`, 0).Err())
		c, _ := open(t, s, items)
		_, err := c.Count(ctx, byColor.Is("red"))
		require.ErrorIs(t, err, index.ErrNotReady)
		got, err := c.Get(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, "red", got.Color)

		// Their entries are derived from the value when they are written.
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "blue"}))
		verify(t, rdb)
	})
}

func TestACollectionGoesOnAfterTheServerWasEmptied(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}))
		s.Flush(t)
		n, err := c.Count(ctx, byColor.Is("red"))
		require.NoError(t, err)
		require.Zero(t, n)
		s.Flush(t)
		require.NoError(t, c.Put(ctx, item{ID: "b", Color: "red"}))
		n, err = c.Count(ctx, byColor.Is("red"))
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		verify(t, rdb)
	})
}

func TestALostMetaClosesTheIndexesInsteadOfAnsweringShort(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "red"}))
		require.NoError(t, rdb.Del(ctx, "acme:item:{item}:~~meta:v1", "acme:item:{item}:~color.1:red:v1").Err())
		_, err := c.Count(ctx, byColor.Is("red"))
		require.ErrorIs(t, err, index.ErrNotReady)
		require.NoError(t, c.Put(ctx, item{ID: "a", Color: "blue"}), "writes go on")
		_, err = c.Count(ctx, byColor.Is("blue"))
		require.ErrorIs(t, err, index.ErrNotReady)
		verify(t, rdb)
	})
}

func TestALostManifestLeavesNoStaleEntry(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		for _, id := range []string{"put", "update", "token", "delete"} {
			require.NoError(t, c.Put(ctx, item{ID: id, Color: "red", Code: id, Tags: []string{"t1", "t2"}}))
		}
		require.NoError(t, rdb.Del(ctx, "acme:item:{item}:~~manifest:v1").Err())
		require.NoError(t, c.Put(ctx, item{ID: "put", Color: "blue"}))
		_, err := c.Update(ctx, "update", func(i *item) error { i.Color, i.Tags = "green", nil; return nil })
		require.NoError(t, err)
		snap, err := c.Read(ctx, "token")
		require.NoError(t, err)
		require.NoError(t, c.Put(ctx, item{ID: "token", Color: "white"}, index.IfToken(snap.Token)))
		require.ErrorIs(t, c.Put(ctx, item{ID: "token", Color: "black"}, index.IfToken(snap.Token)), index.ErrChanged)
		require.NoError(t, c.Delete(ctx, "delete"))
		verify(t, rdb)
	})
}

func TestARecordThatDoesNotDecodeIsNeverOverwrittenBlindly(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items)
		require.NoError(t, rdb.Set(ctx, "acme:item:{item}:a:v1", "{broken", 0).Err())
		unchanged(t, rdb, func() {
			_, err := c.Get(ctx, "a")
			require.ErrorIs(t, err, index.ErrUndecodable)
			about(t, err, "a", "")
			require.ErrorIs(t, c.Put(ctx, item{ID: "a", Color: "red"}), index.ErrUndecodable)
			require.ErrorIs(t, c.Delete(ctx, "a"), index.ErrUndecodable)
			_, err = c.Update(ctx, "a", func(*item) error { return nil })
			require.ErrorIs(t, err, index.ErrUndecodable)
		})
	})
}
