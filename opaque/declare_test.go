package opaque_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memkv"
	"github.com/lockstep-go/lockstep/ranked"
)

func TestARankedIndexIsRefusedWithALineThatSaysWhereItBelongs(t *testing.T) {
	byN := ranked.New("n", func(a Account) int64 { return int64(a.N) })
	within := ranked.Within(func(a Account) string { return a.Status }, ranked.New("n_of", func(a Account) int64 { return int64(a.N) }))
	e := defineAs("ranked", func(o *index.Options[Account]) { o.Indexes = append(o.Indexes, byN, within) })
	_, err := opaque.Open(t.Context(), memkv.New(memkv.Options{}), e)
	require.ErrorIs(t, err, opaque.ErrNotExpressible)
	var typed *opaque.NotExpressibleError
	require.ErrorAs(t, err, &typed)
	require.Equal(t, []string{"n", "n_of"}, typed.Indexes)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 3)
	for i, name := range typed.Indexes {
		require.Contains(t, lines[i+1], "index "+name+":")
		require.Contains(t, lines[i+1], "index.Open on Redis")
	}
}

func TestEverythingWrongWithTheOptionsIsSaidAtOnce(t *testing.T) {
	ids := membership.New("_ids", func(a Account) string { return a.ID })
	e := defineAs("wrong", func(o *index.Options[Account]) { o.Indexes = append(o.Indexes, ids) })
	_, err := opaque.Open(t.Context(), memkv.New(memkv.Options{}), e)
	require.ErrorIs(t, err, index.ErrInvalid)
	_, err = opaque.Open(t.Context(), memkv.New(memkv.Options{}), Accounts, opaque.Options{
		Grace: -1, Lease: -1, MaxEntries: -1, IDBuckets: 1 << 20, Buckets: map[string]int{"nothing": 2, "status": 0}, Suspect: 9,
	})
	for _, text := range []string{"Grace", "Lease", "MaxEntries", "IDBuckets", "nothing", "status", "SuspectPolicy"} {
		require.ErrorContains(t, err, text)
	}
}

func TestAnyIDAndValueIsStoredAndFoundUnderTheRulesOfMemcached(t *testing.T) {
	ctx := t.Context()
	kv := memkv.New(memkv.Options{Keys: key.Memcached, MaxValue: 1 << 20})
	c := open(t, kv)
	for i, text := range []string{
		strings.Repeat("long", 100), "a b", "a\r\nb", "\x00\x01\x7f", "a:b", "{x}", "é", "~%#", "*?[",
	} {
		a := Account{ID: text, Status: text, Email: fmt.Sprintf("%s@%d", text, i), Tags: []string{text, text + "2"}}
		require.NoError(t, c.Create(ctx, a), "%q", text)
		require.Equal(t, []string{text}, ids(t, c, ByStatus.Is(text)))
		require.Equal(t, []string{text}, ids(t, c, ByTag.Is(text+"2")))
		got, err := c.One(ctx, ByEmail.Is(a.Email))
		require.NoError(t, err)
		require.Equal(t, text, got.ID)
	}
	requireClean(t, c)
}

// Ids and values never make a key too long: a digest stands for them. Names do, and are refused when the entity is opened.
func TestNamesThatLeaveTheStoreNoRoomForAKeyAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	ctx := t.Context()
	kv := memkv.New(memkv.Options{Keys: key.Memcached})
	_, err := opaque.Open(ctx, kv, defineAs(strings.Repeat("o", 60)+":"+strings.Repeat("p", 60)))
	require.ErrorIs(t, err, opaque.ErrBadKey)
	for k := range kv.Keys(ctx, "") {
		t.Errorf("%s was written", k)
	}

	longest := membership.Sparse(strings.Repeat("i", 64), func(a Account) (string, bool) { return a.Status, a.Status != "" })
	e := defineAs(strings.Repeat("o", 50)+":"+strings.Repeat("p", 30), func(o *index.Options[Account]) {
		o.Indexes = []index.Index[Account]{longest}
	})
	c, err := opaque.Open(ctx, kv, e)
	require.NoError(t, err)
	require.NoError(t, c.Create(ctx, Account{ID: strings.Repeat("1", 300), Status: strings.Repeat("v", 300)}))
	require.ErrorIs(t, c.Create(ctx, Account{}), index.ErrInvalid, "an empty id")
	requireClean(t, c)
}

func TestAnIndexThatIsAddedLaterAnswersNothingUntilItIsBuilt(t *testing.T) {
	ctx := t.Context()
	now := time.UnixMilli(1_800_000_000_000)
	clock := func() time.Time { return now }
	wait := func(_ context.Context, d time.Duration) error {
		now = now.Add(d)
		return nil
	}
	kv := memkv.New(memkv.Options{Now: clock})
	o := opaque.Testing(opaque.Options{}, clock, wait, 0)
	without := defineAs("later", func(o *index.Options[Account]) { o.Indexes = []index.Index[Account]{ByEmail} })
	old, err := opaque.Open(ctx, kv, without, o)
	require.NoError(t, err)
	require.NoError(t, old.Create(ctx, Account{ID: "1", Status: "a", Email: "e"}))

	c, err := opaque.Open(ctx, kv, defineAs("later"), o)
	require.NoError(t, err)
	require.NoError(t, c.Create(ctx, Account{ID: "2", Status: "a"}))
	require.NoError(t, old.Create(ctx, Account{ID: "3", Status: "a"}), "the lease of the old declaration still runs")
	for _, err := range c.Find(ctx, ByStatus.Is("a")) {
		require.ErrorIs(t, err, index.ErrNotReady)
	}
	_, err = c.One(ctx, ByEmail.Is("e"))
	require.NoError(t, err, "an index that stays goes on")

	started := now
	r, err := c.Run(ctx, opaque.RunOptions{})
	require.NoError(t, err)
	require.Empty(t, r.NotReady, "%+v", r)
	require.Equal(t, 2, r.Fixed[opaque.Outdated])
	require.GreaterOrEqual(t, now.Sub(started), opaque.DefaultLease+opaque.DefaultPendingLifetime, "old writers had their time")
	require.Equal(t, []string{"1", "2", "3"}, ids(t, c, ByStatus.Is("a")))
	require.ErrorIs(t, old.Create(ctx, Account{ID: "4", Status: "a"}), index.ErrSchema)
	requireClean(t, c)

	// Dropped again: what was written for it goes with the next write of the record, or with Run.
	again, err := opaque.Open(ctx, kv, without, o)
	require.NoError(t, err)
	_, err = again.Run(ctx, opaque.RunOptions{})
	require.NoError(t, err)
	for k := range kv.Keys(ctx, "later:account:{}:~status") {
		t.Errorf("%s is left over", k)
	}
}

func TestABuildThatFindsTwoHoldersOfAValueNamesThemAndTheIndexStaysClosed(t *testing.T) {
	ctx := t.Context()
	now := time.UnixMilli(1_800_000_000_000)
	clock := func() time.Time { return now }
	wait := func(_ context.Context, d time.Duration) error {
		now = now.Add(d)
		return nil
	}
	kv := memkv.New(memkv.Options{Now: clock})
	o := opaque.Testing(opaque.Options{}, clock, wait, 0)
	old, err := opaque.Open(ctx, kv, defineAs("dup", func(o *index.Options[Account]) { o.Indexes = nil }), o)
	require.NoError(t, err)
	require.NoError(t, old.Create(ctx, Account{ID: "1", Email: "e"}))
	require.NoError(t, old.Create(ctx, Account{ID: "2", Email: "e"}))
	c, err := opaque.Open(ctx, kv, defineAs("dup"), o)
	require.NoError(t, err)
	r, err := c.Run(ctx, opaque.RunOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, r.Counts[opaque.Conflict])
	require.Equal(t, []string{"email"}, r.NotReady)
	require.NoError(t, c.Delete(ctx, "2"))
	r, err = c.Run(ctx, opaque.RunOptions{})
	require.NoError(t, err)
	require.Empty(t, r.NotReady)
	a, err := c.One(ctx, ByEmail.Is("e"))
	require.NoError(t, err)
	require.Equal(t, "1", a.ID)
	requireClean(t, c)
}

// A reply is lost: the call says so, and Outcome decides it for good.
func TestAWriteOfUnknownOutcomeCanBeDecidedLater(t *testing.T) {
	ctx := t.Context()
	var cut memkv.Verdict
	kv := memkv.New(memkv.Options{Hook: func(_ context.Context, call memkv.Call) memkv.Verdict {
		switch {
		case cut == memkv.Do:
			return memkv.Do
		case call.Op == memkv.Swap && call.Key == "acme:account:{}:1:v1":
			return cut
		case call.Op == memkv.Get && call.Key == "acme:account:{}:1:v1":
			return memkv.Refuse
		}
		return memkv.Do
	}})
	c := open(t, kv)
	for _, happened := range []bool{true, false} {
		cut = memkv.CutFirst
		if happened {
			cut = memkv.CutAfter
		}
		err := c.Create(ctx, Account{ID: "1", Status: "a"})
		cut = memkv.Do
		require.ErrorIs(t, err, opaque.ErrUnknown)
		var unknown *opaque.UnknownError
		require.ErrorAs(t, err, &unknown)
		committed, err := c.Outcome(ctx, unknown.ID, unknown.WriteID)
		require.NoError(t, err)
		require.Equal(t, happened, committed)
		require.NoError(t, c.Delete(ctx, "1"))
	}
}

func TestRecordsGoInAndOutAsBytesForProgramsThatDoNotKnowTheirType(t *testing.T) {
	ctx := t.Context()
	s, err := opaque.OpenStore(ctx, memkv.New(memkv.Options{}), Accounts)
	require.NoError(t, err)
	out, err := s.PutEncoded(ctx, [][]byte{[]byte(`{"id":"1","status":"a"}`), []byte(`no json`), []byte(`{"id":"2","status":"a"}`)})
	require.ErrorIs(t, err, index.ErrInvalid)
	require.True(t, out[0].Applied)
	require.Error(t, out[1].Err)
	require.Equal(t, "2", out[2].ID)
	got, err := s.GetEncoded(ctx, []string{"1", "3"})
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"1","status":"a"}`, string(got[0].Record))
	require.ErrorIs(t, got[1].Err, opaque.ErrNotFound)
	n, err := s.CountOf(ctx, "status", "a")
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	_, err = s.CountOf(ctx, "nothing", "a")
	require.ErrorIs(t, err, index.ErrInvalid)
	id, err := s.Inspect([]byte(`{"id":"9"}`))
	require.NoError(t, err)
	require.Equal(t, "9", id)
	deleted, err := s.DeleteMany(ctx, []string{"1", "3"})
	require.NoError(t, err)
	require.True(t, deleted[0].Applied)
	require.False(t, deleted[1].Applied)
}
