package index

import (
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// settleAll takes the statuses of a batch in and gives the writes that have to be planned again.
func (c *Collection[T]) settleAll(call *batchPlan, statuses []lua.Status) (again []*write) {
	taken := false
	moved := false // a record of the batch has changed, or will: what it holds may be free in the next round
	for i, w := range call.writes {
		switch {
		case w == nil:
			c.settleCollected(call.Records[i].ID, statuses[i])
		case statuses[i].Code == lua.Taken:
			taken = true
		default:
			if !c.settle(w, statuses[i]) {
				again = append(again, w)
			}
			moved = moved || w.err == nil
		}
	}
	if taken {
		inBatch := make(map[string]bool, len(call.writes))
		for _, w := range call.writes {
			if w != nil {
				inBatch[w.id] = true
			}
		}
		for i, w := range call.writes {
			if w == nil || statuses[i].Code != lua.Taken {
				continue
			}
			if moved && inBatch[statuses[i].Holder] || !c.settleTaken(w, statuses[i], call) {
				again = append(again, w)
			}
		}
	}
	return c.withinRounds(again)
}

// settleCollected takes the status of a collection in: one whose row named other entries is tried again with them.
func (c *Collection[T]) settleCollected(id string, status lua.Status) {
	switch status.Code {
	case lua.Written:
		c.events.collected(id)
	case lua.Replan:
		c.due.add([]lua.DueRecord{{ID: id, Row: status.Row}}, c.part)
	}
}

// withinRounds ends the writes that have been planned too often and gives the others.
func (c *Collection[T]) withinRounds(writes []*write) []*write {
	return slices.DeleteFunc(writes, func(w *write) bool {
		if w.rounds < maxRounds {
			return false
		}
		w.err = c.fail(w.op, w.id, "", ErrContended)
		return true
	})
}

// assume adds the entries of a row to what the plan removes. Those of earlier rounds stay: taking an id out of a set that
// it is not in costs little, and a record that goes back and forth between a few states is met in any of them.
func (w *write) assume(entries []plan.Token) {
	if len(w.assumed)+len(entries) > maxAssumed {
		w.assumed = nil
	}
	w.assumed = slices.Compact(slices.Sorted(slices.Values(append(w.assumed[:len(w.assumed):len(w.assumed)], entries...))))
}

// settle takes the status of one write in and reports whether the write is at its end.
func (c *Collection[T]) settle(w *write, status lua.Status) bool {
	end := func(err error) bool {
		w.err = c.fail(w.op, w.id, "", err)
		return true
	}
	switch status.Code {
	case lua.Written, lua.Repeated:
		w.applied = true
		return true
	case lua.Exists:
		return end(ErrExists)
	case lua.Missing:
		if w.mode == lua.Delete && !w.token {
			return true
		}
		return end(ErrNotFound)
	case lua.Changed:
		if w.token {
			w.found = &lua.Loaded{Value: status.Value, HasValue: true, Row: status.Row, HasRow: status.Row != "", TTL: -1}
			return end(ErrChanged)
		}
		// The value that the plan was made from is another one now, or the row is back.
		w.condition, w.assumed = "", nil
		return false
	case lua.Replan:
		row, err := plan.ParseRow(status.Row)
		if err != nil {
			return end(err)
		}
		w.assume(row.Entries)
		c.events.replan(w.id)
		return false
	case lua.Adopt:
		tokens, err := c.tokensOf(w.id, status.Value)
		if err != nil {
			return end(err)
		}
		w.assumed, w.condition = tokens, ifValue(status.Value)
		return false
	case lua.WrongType:
		if w.hinted {
			// The key may be one that only the hint names.
			w.assumed, w.hinted = nil, false
			return false
		}
		return end(&KeyTypeError{Key: status.Key, Found: status.Found})
	case lua.UnknownState:
		return end(ErrUnknown)
	}
	return end(fmt.Errorf("unexpected status %q", status.Code))
}

// settleTaken decides what a unique value in other hands means: a holder that has vanished is collected, any other is a
// conflict. It reports whether the write is at its end.
func (c *Collection[T]) settleTaken(w *write, status lua.Status, call *batchPlan) bool {
	claim := call.claims[status.Key]
	conflict := func() bool {
		w.err = &ConflictError{
			Entity: c.entity.String(), ID: w.id, Index: claim.Index, Value: valueOf(claim.Token), Holder: status.Holder,
		}
		return true
	}
	for _, gone := range w.collect {
		if gone.id == status.Holder {
			return conflict()
		}
	}
	k, err := c.part.Record(status.Holder)
	if err != nil {
		return conflict()
	}
	tokens := []plan.Token{claim.Token}
	if row, err := plan.ParseRow(status.Row); err == nil {
		tokens = row.Entries
	}
	w.collect = append(w.collect, collect{status.Holder, k, tokens})
	return false
}

// valueOf is the value segment of a token's key.
func valueOf(t plan.Token) string {
	for i := range len(t) {
		if t[i] == ':' {
			return string(t[i+1:])
		}
	}
	return ""
}
