package opaque_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memkv"
	"github.com/lockstep-go/lockstep/ranked"
)

// refuser is a store that fails the test when somebody writes.
type refuser struct {
	*memkv.Store
	t *testing.T
}

func (r refuser) Add(context.Context, string, []byte, time.Time) (opaque.Token, error) {
	r.t.Error("an add")
	return "", opaque.ErrUnavailable
}

func (r refuser) Swap(context.Context, string, []byte, time.Time, opaque.Token) (opaque.Token, error) {
	r.t.Error("a swap")
	return "", opaque.ErrUnavailable
}

func (r refuser) Delete(context.Context, string, opaque.Token) error {
	r.t.Error("a delete")
	return opaque.ErrUnavailable
}

func TestWhoeverOnlyReadsWritesNothingAndPutsNoDeclarationOutOfForce(t *testing.T) {
	ctx := t.Context()
	kv := memkv.New(memkv.Options{})
	reader := refuser{kv, t}
	_, err := opaque.Open(ctx, reader, Accounts, opaque.Options{ReadOnly: true})
	require.ErrorIs(t, err, index.ErrNotReady)

	w := open(t, kv, opaque.Options{Grace: time.Nanosecond})
	require.NoError(t, w.Put(ctx, Account{ID: "a", Status: "new"}))
	require.NoError(t, w.Put(ctx, Account{ID: "b", Status: "new"}))
	c := open(t, reader, opaque.Options{ReadOnly: true, Grace: time.Nanosecond})
	require.Equal(t, []string{"a", "b"}, ids(t, c, ByStatus.Is("new")))

	kv.Evict(record(t, w, "b")) // its entry is dead now, and the reader leaves it
	require.Equal(t, []string{"a"}, ids(t, c, ByStatus.Is("new")))
	r, err := c.Verify(ctx, opaque.RunOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, r.Counts[opaque.Orphan], "%+v", r)
	require.NotEmpty(t, r.Lost, "the eviction was not noticed")
	require.Equal(t, w.ListKey("status", "new"), r.Findings[1].Key)

	require.ErrorIs(t, c.Put(ctx, Account{ID: "a"}), index.ErrReadOnly)
	require.ErrorIs(t, c.Delete(ctx, "a"), index.ErrReadOnly)
	_, err = c.Update(ctx, "a", func(*Account) error { return nil })
	require.ErrorIs(t, err, index.ErrReadOnly)
	_, err = c.Run(ctx, opaque.RunOptions{})
	require.ErrorIs(t, err, index.ErrReadOnly)
	_, err = c.Outcome(ctx, "a", opaque.WriteID{})
	require.ErrorIs(t, err, index.ErrReadOnly)

	_, err = opaque.Open(ctx, reader, Accounts, opaque.Options{ReadOnly: true, Buckets: map[string]int{"status": 2}})
	require.ErrorIs(t, err, index.ErrNotReady)
	s, err := w.Suspect(ctx)
	require.NoError(t, err, "the reader's declaration came into force")
	require.NotEmpty(t, s)
}

func TestAPassLooksAtNoMoreThanItsRateASecond(t *testing.T) {
	c := open(t, memkv.New(memkv.Options{}))
	for i := range 8 {
		require.NoError(t, c.Put(t.Context(), Account{ID: fmt.Sprint(i), Status: "new"}))
	}
	start := time.Now()
	r, err := c.Verify(t.Context(), opaque.RunOptions{Rate: 200}) // 8 records and 16 entries, of which 20 at once
	require.NoError(t, err)
	require.Equal(t, 24, r.Records+r.Entries)
	require.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = c.Verify(ctx, opaque.RunOptions{Rate: 1})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestADeclarationIsCheckedWithoutAStore(t *testing.T) {
	require.NoError(t, opaque.Check(Accounts))
	byN := ranked.New("n", func(a Account) int64 { return int64(a.N) })
	e := defineAs("checked", func(o *index.Options[Account]) { o.Indexes = append(o.Indexes, byN) })
	require.ErrorIs(t, opaque.Check(e), opaque.ErrNotExpressible)
	require.ErrorIs(t, opaque.Check(nil), index.ErrInvalid)
}

func TestTheIDsOfWhatAQueryFindsComeAlone(t *testing.T) {
	c := open(t, memkv.New(memkv.Options{}))
	for _, id := range []string{"a", "b"} {
		require.NoError(t, c.Put(t.Context(), Account{ID: id, Status: "new"}))
	}
	var got []string
	for id, err := range c.FindIDs(t.Context(), "status", "new") {
		require.NoError(t, err)
		got = append(got, id)
	}
	require.ElementsMatch(t, []string{"a", "b"}, got)
	for _, err := range c.FindIDs(t.Context(), "nothing", "new") {
		require.Error(t, err)
	}
}

// record is the key of a record.
func record(t *testing.T, c *opaque.Collection[Account], id string) string {
	t.Helper()
	k, err := c.RecordKey(id)
	require.NoError(t, err)
	return k
}
