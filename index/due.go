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

// take gives at most n of the records and forgets them.
func (q *dueQueue) take(n int) []collect {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	out := make([]collect, 0, min(n, len(q.waiting)))
	for id, gone := range q.waiting {
		if len(out) == n {
			break
		}
		delete(q.waiting, id)
		out = append(out, gone)
	}
	return out
}

// vanished notes an id whose record a query did not find: its entries go with one of the next writes.
func (c *Collection[T]) vanished(index, id string) {
	c.events.vanished(index, id)
	if !c.readOnly {
		c.due.add([]lua.DueRecord{{ID: id}}, c.part)
	}
}
