package lockstep_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/membership"
)

type Status string

// Account is the entity of these tests: a record as a billing team would declare it.
type Account struct {
	ID, Tenant, Email string
	Status            Status
	Tags              []string
	Note              string
}

var (
	ByStatus = membership.New("status", func(a Account) Status { return a.Status })
	ByTenant = membership.Sparse("tenant", func(a Account) (string, bool) { return a.Tenant, a.Tenant != "" })
	ByTag    = membership.Multi("tag", func(a Account) []string { return a.Tags })
	ByEmail  = membership.Unique("email", func(a Account) (string, bool) { return a.Email, a.Email != "" }, membership.Fold)

	Accounts = index.Define("acme:billing", "account", index.Options[Account]{
		ID: func(a Account) string { return a.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[Account]{ByStatus, ByTenant, ByTag, ByEmail},
	})
)

// accountOracle knows by hand which keys an account must be in. Only ids and values without special bytes appear here.
var accountOracle = redistest.Oracle[Account]{
	Prefix:  "acme:billing:account:",
	Version: 1,
	Decode: func(raw string) (a Account, err error) {
		err = json.Unmarshal([]byte(raw), &a)
		return a, err
	},
	ID:        func(a Account) string { return a.ID },
	RecordKey: func(id string) string { return "acme:billing:account:{account}:" + id + ":v1" },
	Expect: func(a Account) map[string]string {
		const base = "acme:billing:account:{account}:~"
		want := map[string]string{base + "status.1:" + string(a.Status) + ":v1": ""}
		if a.Tenant != "" {
			want[base+"tenant.1:"+a.Tenant+":v1"] = ""
		}
		for _, tag := range a.Tags {
			want[base+"tag.1:"+tag+":v1"] = ""
		}
		if a.Email != "" {
			want[base+"email.1:"+strings.ToLower(a.Email)+":v1"] = ""
		}
		return want
	},
}

// open opens the accounts on a server of the test, under the watch that refuses undeclared keys, and holds every index
// against the records at the end.
func open(t testing.TB, s *redistest.Server) (*index.Collection[Account], redis.UniversalClient) {
	t.Helper()
	rdb := s.Client(t)
	redistest.Checked(rdb, lua.Sources)
	return openOn(t, rdb)
}

// openUnwatched opens them as a program does, without the watch, which costs most of the time of a long run.
func openUnwatched(t testing.TB, s *redistest.Server) (*index.Collection[Account], redis.UniversalClient) {
	t.Helper()
	return openOn(t, s.Client(t))
}

func openOn(t testing.TB, rdb redis.UniversalClient) (*index.Collection[Account], redis.UniversalClient) {
	t.Helper()
	c, err := index.Open(context.Background(), rdb, Accounts)
	require.NoError(t, err)
	t.Cleanup(func() { accountOracle.Verify(t, rdb) })
	return c, rdb
}

func idsOf(t testing.TB, c *index.Collection[Account], cond index.Clause[Account]) []string {
	t.Helper()
	var ids []string
	for a, err := range c.Find(context.Background(), cond) {
		require.NoError(t, err)
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestAUserDeclaresWritesFindsChangesAndDeletes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s)
		require.NoError(t, c.Create(ctx, Account{ID: "a1", Tenant: "eu", Email: "Ann@x.org", Status: "active", Tags: []string{"vip", "vip", "new"}}))
		require.NoError(t, c.Put(ctx, Account{ID: "a2", Tenant: "eu", Status: "active", Tags: []string{"new"}}))
		require.NoError(t, c.Put(ctx, Account{ID: "a3", Tenant: "us", Status: "suspended"}))

		require.Equal(t, []string{"a1", "a2"}, idsOf(t, c, ByStatus.Is("active")))
		require.Equal(t, []string{"a1", "a2", "a3"}, idsOf(t, c, ByStatus.In("active", "suspended")))
		require.Equal(t, []string{"a1", "a2"}, idsOf(t, c, ByTag.In("vip", "new")), "each record once")
		require.Empty(t, idsOf(t, c, ByStatus.Is("closed")))
		require.Empty(t, idsOf(t, c, ByStatus.In()))
		n, err := c.Count(ctx, ByTag.In("vip", "new"))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		ok, err := c.Exists(ctx, ByTenant.Is("us"))
		require.NoError(t, err)
		require.True(t, ok)

		owner, err := c.One(ctx, ByEmail.Is("ANN@X.ORG"))
		require.NoError(t, err)
		require.Equal(t, "a1", owner.ID)
		_, err = c.One(ctx, ByEmail.Is("nobody@x.org"))
		require.ErrorIs(t, err, index.ErrNotFound)

		err = c.Put(ctx, Account{ID: "a2", Tenant: "us", Email: "ann@x.org", Status: "closed"})
		var conflict *index.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, index.ConflictError{Entity: "acme:billing:account", ID: "a2", Index: "email", Value: "ann@x.org", Holder: "a1"}, *conflict)
		require.NotContains(t, err.Error(), "ann@x.org", "a unique value must not reach a log")
		require.NotContains(t, err.Error(), "a1")
		require.Equal(t, []string{"a1", "a2"}, idsOf(t, c, ByStatus.Is("active")), "nothing of the refused write")

		require.ErrorIs(t, c.Create(ctx, Account{ID: "a1", Status: "x"}), index.ErrExists)
		require.ErrorIs(t, c.Replace(ctx, Account{ID: "a9", Status: "x"}), index.ErrNotFound)
		require.NoError(t, c.Replace(ctx, Account{ID: "a3", Status: "active"}))

		updated, err := c.Update(ctx, "a1", func(a *Account) error {
			a.Status, a.Email, a.Tags = "suspended", "", nil
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, Status("suspended"), updated.Status)
		require.NoError(t, c.Put(ctx, Account{ID: "a2", Email: "ann@x.org", Status: "active"}), "the value is free again")

		boom := errors.New("boom")
		_, err = c.Update(ctx, "a1", func(*Account) error { return boom })
		require.ErrorIs(t, err, boom)
		_, err = c.Update(ctx, "nobody", func(*Account) error { return nil })
		require.ErrorIs(t, err, index.ErrNotFound)
		_, err = c.Update(ctx, "a1", func(a *Account) error { a.ID = "a7"; return nil })
		require.ErrorIs(t, err, index.ErrInvalid)

		snap, err := c.Read(ctx, "a1")
		require.NoError(t, err)
		require.NoError(t, c.Put(ctx, Account{ID: "a1", Status: "active"}, index.IfToken(snap.Token)))
		require.ErrorIs(t, c.Put(ctx, Account{ID: "a1", Status: "lost"}, index.IfToken(snap.Token)), index.ErrChanged)
		require.ErrorIs(t, c.Delete(ctx, "a1", index.IfToken(snap.Token)), index.ErrChanged)

		many, err := c.GetMany(ctx, []string{"a1", "none", "a3"})
		require.NoError(t, err)
		require.Equal(t, "a1", many[0].Record.ID)
		require.ErrorIs(t, many[1].Err, index.ErrNotFound)
		require.Equal(t, "a3", many[2].Record.ID)

		for _, id := range []string{"a1", "a2", "a3", "never"} {
			require.NoError(t, c.Delete(ctx, id))
		}
		_, err = c.Get(ctx, "a1")
		require.ErrorIs(t, err, index.ErrNotFound)
		for k, e := range redistest.Snapshot(t, rdb) {
			require.True(t, strings.Contains(k, "~~meta") || strings.Contains(k, "~~catalog"), "left behind: %s %v", k, e)
		}
	})
}

// TestTwoFormatVersionsLeaveEachOtherAlone runs two releases on the same ids, each with its own version of the keys.
func TestTwoFormatVersionsLeaveEachOtherAlone(t *testing.T) {
	type AccountV2 struct{ ID, Plan string }
	byPlan := membership.New("status", func(a AccountV2) string { return a.Plan })
	second := index.Define("acme:billing", "account", index.Options[AccountV2]{
		ID: func(a AccountV2) string { return a.ID }, Version: 2, Lifetime: index.Forever, Indexes: []index.Index[AccountV2]{byPlan},
	})
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		one, rdb := open(t, s)
		two, err := index.Open(ctx, s.Client(t), second)
		require.NoError(t, err)
		require.NoError(t, one.Put(ctx, Account{ID: "a", Status: "active"}))
		require.NoError(t, two.Put(ctx, AccountV2{"a", "gold"}))
		require.NoError(t, one.Put(ctx, Account{ID: "a", Status: "closed"}))
		n, err := two.Count(ctx, byPlan.Is("gold"))
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		before := versionKeys(redistest.Snapshot(t, rdb), ":v1")
		require.NoError(t, two.Delete(ctx, "a"))
		require.Empty(t, redistest.Diff(before, versionKeys(redistest.Snapshot(t, rdb), ":v1")))
		require.Equal(t, []string{"a"}, idsOf(t, one, ByStatus.Is("closed")))
		require.NoError(t, one.Delete(ctx, "a"))
	})
}

func versionKeys(all map[string]redistest.Entry, suffix string) map[string]redistest.Entry {
	out := map[string]redistest.Entry{}
	for k, e := range all {
		if strings.HasSuffix(k, suffix) {
			out[k] = e
		}
	}
	return out
}

// TestAnIndexThatIsNotDeclaredAnyMoreLeavesNothingBehind runs {a,b}, then {a,c}: what was written for b goes with the
// records, and c answers only when it is known to be whole.
func TestAnIndexThatIsNotDeclaredAnyMoreLeavesNothingBehind(t *testing.T) {
	type Item struct{ ID, A, B, C string }
	id := func(i Item) string { return i.ID }
	a := membership.New("a", func(i Item) string { return i.A })
	b := membership.New("b", func(i Item) string { return i.B })
	cc := membership.New("c", func(i Item) string { return i.C })
	define := func(ixs ...index.Index[Item]) *index.Entity[Item] {
		return index.Define("acme", "item", index.Options[Item]{ID: id, Version: 1, Lifetime: index.Forever, Indexes: ixs})
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		rdb := s.Client(t)
		redistest.Checked(rdb, lua.Sources)
		first, err := index.Open(ctx, rdb, define(a, b))
		require.NoError(t, err)
		for _, id := range []string{"rewritten", "updated", "deleted"} {
			require.NoError(t, first.Put(ctx, Item{id, "x", "y", "z"}))
		}
		second, err := index.Open(ctx, rdb, define(a, cc))
		require.NoError(t, err)

		_, err = second.Count(ctx, cc.Is("z"))
		var notReady *index.NotReadyError
		require.ErrorAs(t, err, &notReady, "records of before are not in c")
		require.Equal(t, "c", notReady.Index)
		_, err = first.Count(ctx, b.Is("y"))
		require.ErrorIs(t, err, index.ErrNotReady, "writes of the second release are not in b")
		for _, err := range first.Find(ctx, b.Is("y")) {
			require.ErrorIs(t, err, index.ErrNotReady)
		}

		require.NoError(t, second.Put(ctx, Item{"rewritten", "x", "y", "z"}))
		_, err = second.Update(ctx, "updated", func(i *Item) error { i.A = "x2"; return nil })
		require.NoError(t, err)
		require.NoError(t, second.Delete(ctx, "deleted"))
		for k := range redistest.Snapshot(t, rdb) {
			require.NotContains(t, k, "~b.1", "an entry of the dropped index is left")
		}
		n, err := second.Count(ctx, a.In("x", "x2"))
		require.NoError(t, err)
		require.EqualValues(t, 2, n, "a is whole throughout")

		require.NoError(t, first.Put(ctx, Item{"old", "x", "y", "z"}), "the old release still writes")
		require.NoError(t, second.Delete(ctx, "old"))
		for k := range redistest.Snapshot(t, rdb) {
			require.NotContains(t, k, "~b.1")
		}
	})
}
