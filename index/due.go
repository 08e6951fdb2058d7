package index

import (
	"sync"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

// maxDue bounds how many records wait for their collection in one process; the server names the others again.
const maxDue = 1000

// dueQueue holds records that a script found to be due, or a query found to be gone, until a write takes their entries
// along: collection runs one write behind, because a script touches declared keys only. It is a hint and holds no truth:
// the collecting script checks again that the record is gone.
type dueQueue struct {
	mu      sync.Mutex
	waiting map[string]collect
	calls   int
}

// add remembers records that are due.
func (q *dueQueue) add(records []lua.DueRecord, part key.Partition) {
	if len(records) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range records {
		if len(q.waiting) >= maxDue {
			return
		}
		k, err := part.Record(r.ID)
		if err != nil {
			continue
		}
		gone := collect{id: r.ID, key: k}
		if row, err := plan.ParseRow(r.Row); err == nil {
			gone.tokens = row.Entries
		}
		if q.waiting == nil {
			q.waiting = map[string]collect{}
		}
		q.waiting[r.ID] = gone
	}
}

// next gives the records whose entries the next call takes along, and says how many the server shall name. Each call in turn
// would cost each of them a little; every few calls some at once cost less, and keep up with a record that expires per
// write four times over.
func (q *dueQueue) next() (due []collect, want int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn := q.calls%dueEvery == 0
	q.calls++
	if turn && len(q.waiting) < dueAtOnce {
		want = dueAtOnce
	}
	if len(q.waiting) == 0 || !turn && len(q.waiting) < dueEvery {
		return nil, want
	}
	due = make([]collect, 0, min(dueAtOnce, len(q.waiting)))
	for id, gone := range q.waiting {
		if len(due) == dueAtOnce {
			break
		}
		delete(q.waiting, id)
		due = append(due, gone)
	}
	return due, want
}

// The server is asked for what is due in every dueEvery-th call, for dueAtOnce records, and as many go with one call.
const (
	dueEvery  = 8
	dueAtOnce = 32
)

// vanished notes an id whose record a query did not find: its entries go with one of the next writes.
func (c *Collection[T]) vanished(index, id string) {
	c.events.vanished(index, id)
	if !c.readOnly {
		c.due.add([]lua.DueRecord{{ID: id}}, c.part)
	}
}
