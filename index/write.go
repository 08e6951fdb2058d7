package index

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// write is one record on its way to the server, with what has been learned about it so far.
type write struct {
	op       string // for errors
	id       string
	key      string
	writeID  string
	mode     lua.Mode
	lifetime string
	value    []byte
	entries  []plan.Entry // of the new state; none for a delete

	condition string // of the caller, or from a value without a row
	token     bool   // the condition is the caller's
	assumed   []plan.Token
	hinted    bool        // what is assumed is from the row cache
	bulk      bool        // one of very many: not remembered, unless an earlier state is
	shared    bool        // an update of what others have written since this collection did
	found     *lua.Loaded // what the condition does not hold for
	rounds    int
	collect   []collect // records that vanished and hold what this one claims

	err     error
	applied bool
	ended   func() // tells a caller that waits elsewhere, nil without one
}

// end tells the caller of a write, if it waits elsewhere, that the write is at its end.
func (w *write) end() {
	if w.ended != nil {
		w.ended()
	}
}

// collect is a record that may have vanished and left entries.
type collect struct {
	id, key string
	tokens  []plan.Token
}

// Limits of one call to the server, so that a batch holds up other clients for a few milliseconds at most.
const (
	batchRecords = 200
	batchBytes   = 1 << 20
	batchOps     = 2000
)

// maxRounds bounds how often one record is planned again because others changed it in between.
const maxRounds = 128

// maxAssumed bounds how many entries a plan remembers from earlier rounds.
const maxAssumed = 64

// maxContentionPause bounds the doubling of pauses between rounds: somebody made progress, so the wait is short.
const maxContentionPause = 4

// apply brings every write to its end: applied, or with an error of its own.
func (c *Collection[T]) apply(ctx context.Context, writes []*write) {
	queue := make([]*write, 0, len(writes))
	for _, w := range writes {
		if w.err == nil {
			queue = append(queue, w)
		}
	}
	if c.readOnly {
		c.failAll(queue, ErrReadOnly)
		return
	}
	for len(queue) > 0 {
		batch, rest := take(queue)
		again, err := c.applyBatch(ctx, batch)
		if err != nil {
			c.failAll(batch, err)
			if !ownFault(err) {
				c.failAll(rest, fmt.Errorf("not sent, an earlier batch failed: %w", err))
				return
			}
			queue = rest
			continue
		}
		for _, w := range batch {
			if !slices.Contains(again, w) {
				w.end()
			}
		}
		queue = append(again, rest...)
	}
}

// ownFault reports an error that says nothing about the batches that follow.
func ownFault(err error) bool { return errors.Is(err, ErrKeyType) }

func (c *Collection[T]) failAll(writes []*write, err error) {
	for _, w := range writes {
		if w.err == nil {
			w.err = c.fail(w.op, w.id, "", err)
		}
		w.end()
	}
}

// take splits a queue into the next batch and the rest, in order. An id is in a batch at most once, and no write overtakes
// an earlier one of its id.
func take(queue []*write) (batch, rest []*write) {
	if len(queue) == 1 {
		return queue, nil
	}
	met := make(map[string]bool, len(queue))
	bytes, ops := 0, 0
	for i, w := range queue {
		full := len(batch) > 0 && (len(batch) >= batchRecords || bytes+len(w.value) > batchBytes || ops+len(w.entries) > batchOps)
		if full {
			return batch, append(rest, queue[i:]...)
		}
		// One that is to be collected for another is not written in the same call: its value has to be free first.
		if met[w.id] || slices.ContainsFunc(w.collect, func(gone collect) bool { return met[gone.id] }) {
			met[w.id] = true
			rest = append(rest, w)
			continue
		}
		met[w.id] = true
		for _, gone := range w.collect {
			met[gone.id] = true
		}
		batch = append(batch, w)
		bytes += len(w.value)
		ops += len(w.entries)
	}
	return batch, rest
}

// applyBatch sends one batch and gives the writes that have to be planned again.
func (c *Collection[T]) applyBatch(ctx context.Context, batch []*write) (again []*write, err error) {
	slowest := 0
	for _, w := range batch {
		w.rounds++
		slowest = max(slowest, w.rounds)
	}
	if slowest > 3 {
		if err := c.run.Retry().Pause(ctx, min(slowest-3, maxContentionPause)); err != nil {
			return nil, err
		}
	}
	c.rows.hint(batch)
	var call *batchPlan
	var reply lua.ApplyReply
	var under *schema
	err = c.retrying(ctx, func(s *schema) error {
		under, call = s, c.plan(s, batch)
		if len(call.Records) == 0 {
			return nil
		}
		var err error
		reply, err = c.run.Apply(ctx, call.ApplyCall)
		return err
	})
	if err != nil {
		return nil, err
	}
	under.see(reply.Seq)
	c.due.add(reply.Due, c.part)
	again = c.settleAll(call, reply.Statuses)
	c.rows.learn(call)
	c.records.learn(call)
	return again, nil
}
