package lua

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// lost sends one change whose first attempt goes through step, and gives its status.
func (w *world) lost(step func(func() error) error, ch change) Status {
	w.t.Helper()
	c := w.call(ch)
	c.Seen = w.seq()
	out, err := w.through(step).Apply(w.ctx, c)
	require.NoError(w.t, err)
	return out.Statuses[0]
}

func TestAWriteWhoseReplyIsLostIsNotAppliedTwice(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		for _, ch := range []change{
			{id: "a", in: newUser},
			{id: "b", mode: Create, in: ann},
			{id: "a", mode: Replace, had: newUser, in: oldUser},
		} {
			before := w.seq()
			require.Equal(t, Status{Code: Repeated}, w.lost(lostAfter, ch), "no conflict with itself")
			require.Equal(t, before+1, w.seq(), "applied once")
		}
		wid := w.row("a")[:8]
		require.Equal(t, Repeated, w.lost(lostAfter, change{id: "a", had: oldUser, in: newUser, condition: IfWriteID(wid)}).Code)
	})
}

func TestARequestThatIsLostIsAppliedByTheRepeat(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		for _, ch := range []change{
			{id: "a", mode: Create, in: newUser},
			{id: "a", mode: Replace, had: newUser, in: oldUser},
			{id: "a", mode: Delete, had: oldUser},
		} {
			require.Equal(t, Status{Code: Written}, w.lost(lostBefore(nil), ch))
		}
		require.NotContains(t, w.s.Keys(t), record("a"))
	})
}

func TestAWriteOfAnotherRecordDoesNotMakeALostRequestUnknown(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", in: newUser})
		other := func() { w.written(change{id: "b", in: newUser}) }
		require.Equal(t, Written, w.lost(lostBefore(other), change{id: "a", had: newUser, in: oldUser}).Code)
		other = func() { w.written(change{id: "b", mode: Delete, had: newUser}) }
		require.Equal(t, Written, w.lost(lostBefore(other), change{id: "a", had: oldUser, in: newUser}).Code)
	})
}

func TestWhatCannotBeDecidedAfterALostReplyIsUnknownAndStaysAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		others []change // what other writers do before the repeat
		ch     change
	}{
		"written by another since":               {others: []change{{id: "a", had: newUser, in: oldUser}}, ch: change{id: "a", had: newUser, in: newUser, note: "mine"}},
		"created by another since":               {others: []change{{id: "z", in: oldUser}}, ch: change{id: "z", mode: Create, in: oldUser}},
		"re-created after our delete":            {others: []change{{id: "a", mode: Delete, had: newUser}, {id: "a", in: newUser}}, ch: change{id: "a", mode: Delete, had: newUser}},
		"gone, and perhaps we had replaced it":   {others: []change{{id: "a", mode: Delete, had: newUser}}, ch: change{id: "a", mode: Replace, had: newUser, in: newUser}},
		"new, and something was deleted since":   {others: []change{{id: "a", mode: Delete, had: newUser}}, ch: change{id: "z", in: newUser}},
		"conditional delete, perhaps by another": {others: []change{{id: "a", mode: Delete, had: newUser}}, ch: change{id: "a", mode: Delete, had: newUser, condition: IfWriteID("write001")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, redistest.Mini(t))
			require.NoError(t, w.enter(1, Ready, nil))
			w.verified()
			w.written(change{id: "a", writeID: "write001", in: newUser})
			var before map[string]redistest.Entry
			got := w.lost(lostBefore(func() {
				for _, ch := range c.others {
					w.written(ch)
				}
				before = redistest.Snapshot(t, w.rdb)
			}), c.ch)
			require.Equal(t, Status{Code: UnknownState}, got)
			require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)))
		})
	}
}

func TestADeleteInABatchIsRememberedLikeASingleOne(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", writeID: "write001", in: newUser}, change{id: "b", in: newUser})
		both := func() {
			w.written(change{id: "a", mode: Delete, had: newUser}, change{id: "b", mode: Delete, had: newUser})
		}
		st := w.lost(lostBefore(both), change{id: "a", mode: Replace, had: newUser, in: oldUser})
		require.Equal(t, UnknownState, st.Code, "replaced and then deleted, or never replaced")
	})
}

func TestADeleteWhoseReplyIsLostIsNoConflictWithItself(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", writeID: "write001", in: newUser}, change{id: "b", writeID: "write002", in: newUser})
		require.Equal(t, Missing, w.lost(lostAfter, change{id: "a", mode: Delete, had: newUser}).Code,
			"nothing is there, which is what was asked for")
		st := w.lost(lostAfter, change{id: "b", mode: Delete, had: newUser, condition: IfWriteID("write002")})
		require.Equal(t, UnknownState, st.Code, "that the record was missing all along would be a wrong answer")
		require.Equal(t, Missing, w.lost(lostBefore(nil), change{id: "c", mode: Delete, condition: IfWriteID("write002")}).Code,
			"nothing was deleted in between, so it was missing")
	})
}

func TestAServerThatLostWritesIsNotTrustedWithARepeat(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		w.written(change{id: "a", in: newUser}, change{id: "b", in: newUser})
		c := w.call(change{id: "a", had: newUser, in: oldUser})
		c.Seen = 100 // a failover went back to before what this client has seen
		before := redistest.Snapshot(t, w.rdb)
		out, err := w.through(lostBefore(nil)).Apply(w.ctx, c)
		require.NoError(t, err)
		require.Equal(t, UnknownState, out.Statuses[0].Code)
		require.Empty(t, redistest.Diff(before, redistest.Snapshot(t, w.rdb)))
	})
}

func TestALostReplyWithoutASecondAnswerIsUnknown(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		ctx, cancel := context.WithCancelCause(w.ctx)
		r := w.through(func(send func() error) error {
			err := lostAfter(send)
			cancel(errTest)
			return err
		})
		_, err := r.Apply(ctx, w.call(change{id: "a", in: newUser}))
		require.ErrorIs(t, err, ErrUnknown)
		require.ErrorIs(t, err, errTest)
		require.ErrorIs(t, err, io.EOF)
		require.Len(t, w.members(statusOf+"new:v1"), 1, "it had been applied, whole")
	})
}

func TestAScriptCacheFlushedBetweenTwoCallsIsNotNoticed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verified()
		rdb := w.s.Client(t) // without the prelude, which sends no EVALSHA
		r := NewRunner(rdb, patient, nil)
		count := redistest.Count(rdb)
		for i := range 3 {
			out, err := r.Apply(w.ctx, w.call(change{id: string(rune('a' + i)), in: newUser}))
			require.NoError(t, err)
			require.Equal(t, Written, out.Statuses[0].Code)
			require.NoError(t, rdb.ScriptFlush(w.ctx).Err())
			require.Equal(t, i+1, count.Commands()["evalsha"])
			require.Equal(t, i+1, count.Commands()["eval"])
		}
	})
}
