package plan_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
)

func space(t require.TestingT) key.Space {
	s, err := key.NewSpace("acme:billing", "account", 1, key.Redis)
	require.NoError(t, err)
	return s
}

func TestPlacedEntriesAreSortedAndNamedOnce(t *testing.T) {
	placed, err := plan.Place(space(t), map[string]int{"status": 3, "email": 1}, []plan.Entry{
		{Index: "status", Kind: plan.Set, Value: key.Text("new")},
		{Index: "email", Kind: plan.Set, Value: key.Text("ann@x"), Unique: true},
		{Index: "status", Kind: plan.Set, Value: key.Text("a")},
		{Index: "status", Kind: plan.Set, Value: key.Text("new")},
	})
	require.NoError(t, err)
	require.Equal(t, []plan.Placed{
		{Token: "semail.1:ann@x", Index: "email", Unique: true},
		{Token: "sstatus.3:a", Index: "status"},
		{Token: "sstatus.3:new", Index: "status"},
	}, placed)
	require.Equal(t, []plan.Token{"semail.1:ann@x", "sstatus.3:a", "sstatus.3:new"}, plan.Tokens(placed))
}

func TestEqualStatesOfARecordGiveEqualRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.Custom(func(t *rapid.T) plan.Entry {
			return plan.Entry{
				Index: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "index"),
				Value: key.Text(string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "value"))),
			}
		})
		entries := rapid.SliceOfN(entry, 0, 8).Draw(t, "entries")
		generations := map[string]int{"a": 1, "b": 2}
		one, err := plan.Place(space(t), generations, entries)
		require.NoError(t, err)
		other, err := plan.Place(space(t), generations, rapid.Permutation(append(slices.Clone(entries), entries...)).Draw(t, "other order"))
		require.NoError(t, err)
		require.Equal(t, plan.Join(plan.Tokens(one)), plan.Join(plan.Tokens(other)))
		require.True(t, slices.IsSorted(plan.Tokens(one)))
	})
}

func TestAnEntryOfAnUnknownIndexIsNotPlaced(t *testing.T) {
	_, err := plan.Place(space(t), map[string]int{"status": 1}, []plan.Entry{{Index: "region", Value: key.Text("eu")}})
	require.Error(t, err, "an index without a generation has no keys")
}

func TestATokenKeepsKindAndBodyApart(t *testing.T) {
	token := plan.NewToken(plan.Set, "status.1:new", "")
	require.Equal(t, plan.Set, token.Kind())
	require.Equal(t, "status.1:new", token.Body())
	require.Zero(t, plan.Token("").Kind())
	require.Empty(t, plan.Token("").Body())
}

func TestOnlyEntriesThatAreNoLongerWantedAreRemoved(t *testing.T) {
	after := []plan.Placed{{Token: "sb"}, {Token: "sd"}}
	require.Equal(t, []plan.Token{"sa", "sc"}, plan.Removed([]plan.Token{"sa", "sb", "sc"}, after))
	require.Equal(t, []plan.Token{"sa"}, plan.Removed([]plan.Token{"sa"}, nil))
	require.Empty(t, plan.Removed([]plan.Token{"sb"}, after))
	require.Empty(t, plan.Removed(nil, after))
}

// A definition whose text changes is a new generation, so this text is a promise to everybody who has data.
func TestADefinitionKeepsItsCanonicalText(t *testing.T) {
	for want, d := range map[string]plan.Definition{
		"status membership text":       {Name: "status", Kind: "membership", Encoding: "text"},
		"tag membership text multi":    {Name: "tag", Kind: "membership", Encoding: "text", Multi: true},
		"region membership any sparse": {Name: "region", Kind: "membership", Encoding: "any", Sparse: true},
		"email membership text unique sparse digest normalize fold trim revision=2": {
			Name: "email", Kind: "membership", Encoding: "text", Unique: true, Sparse: true, Digest: true,
			Normalisers: []string{"normalize", "fold", "trim"}, Revision: 2,
		},
		"at membership pair(time,number) revision=-1": {
			Name: "at", Kind: "membership", Encoding: "pair(time,number)", Revision: -1,
		},
	} {
		require.Equal(t, want, d.Canonical())
	}
}

func TestEachPartOfADefinitionChangesItsCanonicalText(t *testing.T) {
	base := plan.Definition{Name: "a", Kind: "membership", Encoding: "text"}
	seen := map[string]bool{base.Canonical(): true}
	for name, change := range map[string]func(*plan.Definition){
		"name":       func(d *plan.Definition) { d.Name = "b" },
		"kind":       func(d *plan.Definition) { d.Kind = "ranked" },
		"encoding":   func(d *plan.Definition) { d.Encoding = "number" },
		"unique":     func(d *plan.Definition) { d.Unique = true },
		"multi":      func(d *plan.Definition) { d.Multi = true },
		"sparse":     func(d *plan.Definition) { d.Sparse = true },
		"digest":     func(d *plan.Definition) { d.Digest = true },
		"fold":       func(d *plan.Definition) { d.Normalisers = []string{"fold"} },
		"fold, trim": func(d *plan.Definition) { d.Normalisers = []string{"fold", "trim"} },
		"trim, fold": func(d *plan.Definition) { d.Normalisers = []string{"trim", "fold"} },
		"revision":   func(d *plan.Definition) { d.Revision = 1 },
	} {
		d := base
		change(&d)
		require.False(t, seen[d.Canonical()], name)
		seen[d.Canonical()] = true
	}
}
