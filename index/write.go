package index

import (
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // compares bytes with those that the server digests, not a safeguard
	"encoding/hex"
	"errors"
	"fmt"

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
	rounds    int
	tried     map[string]int // unique key and holder -> how often it was in the way
	collect   []collect      // records that vanished and hold what this one claims

	err     error
	applied bool
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
		if met[w.id] {
			rest = append(rest, w)
			continue
		}
		met[w.id] = true
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
		if err := c.run.Retry().Pause(ctx, slowest-3); err != nil {
			return nil, err
		}
	}
	var call *batchPlan
	var reply lua.ApplyReply
	err = c.retrying(ctx, func(s *schema) error {
		var err error
		if call, err = c.plan(s, batch); err != nil {
			return err
		}
		reply, err = c.run.Apply(ctx, call.ApplyCall)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.see(reply.Seq)
	inBatch := make(map[string]bool, len(batch))
	for _, w := range call.writes {
		if w != nil {
			inBatch[w.id] = true
		}
	}
	for i, w := range call.writes {
		status := reply.Statuses[i]
		if w == nil {
			if status.Code == lua.Written {
				c.events.collected(call.Records[i].ID)
			}
			continue
		}
		if c.settle(w, status, call, inBatch) {
			continue
		}
		if w.rounds >= maxRounds {
			w.err = c.fail(w.op, w.id, "", ErrContended)
			continue
		}
		again = append(again, w)
	}
	return again, nil
}

// batchPlan is a call together with what its parts came from.
type batchPlan struct {
	lua.ApplyCall
	writes []*write             // aligned with Records; nil where a record is only collected
	claims map[string]plan.Placed // unique index key -> what claims it
}

// plan makes the call for a batch: keys, operations and assumptions. Collections come first, so that what they free can be
// claimed.
func (c *Collection[T]) plan(s *schema, batch []*write) (*batchPlan, error) {
	p := &batchPlan{
		ApplyCall: lua.ApplyCall{
			Meta: c.part.Meta(), Manifest: c.part.Manifest(), Expiry: c.part.Expiry(),
			Generation: s.generation, Seen: c.seen.Load(),
			Records: make([]lua.ApplyRecord, 0, len(batch)),
		},
		writes: make([]*write, 0, len(batch)),
		claims: map[string]plan.Placed{},
	}
	places := map[string]int{}
	place := func(t plan.Token) (int, error) {
		k, err := c.part.Entry(t.Body())
		if err != nil {
			return 0, err
		}
		n, ok := places[k]
		if !ok {
			n = len(p.Entries)
			places[k] = n
			p.Entries = append(p.Entries, k)
		}
		return n, nil
	}
	ids := make(map[string]bool, len(batch))
	for _, w := range batch {
		ids[w.id] = true
	}
	for _, w := range batch {
		for _, gone := range w.collect {
			if ids[gone.id] {
				continue
			}
			ids[gone.id] = true
			ops := make([]lua.Op, 0, len(gone.tokens))
			for _, t := range gone.tokens {
				n, err := place(t)
				if err != nil {
					return nil, err
				}
				ops = append(ops, lua.Op{Code: lua.Remove, Key: n})
			}
			p.Records = append(p.Records, lua.ApplyRecord{
				Key: gone.key, ID: gone.id, WriteID: newWriteID(), Mode: lua.Collect,
				Assumed: plan.Join(gone.tokens), Lifetime: lua.Forever, Ops: ops,
			})
			p.writes = append(p.writes, nil)
		}
	}
	for _, w := range batch {
		placed, err := plan.Place(c.entity.space, s.indexes, w.entries)
		if err != nil {
			return nil, err
		}
		removed := plan.Removed(w.assumed, placed)
		ops := make([]lua.Op, 0, len(placed)+len(removed))
		for _, t := range removed {
			n, err := place(t)
			if err != nil {
				return nil, err
			}
			ops = append(ops, lua.Op{Code: lua.Remove, Key: n})
		}
		for _, e := range placed {
			n, err := place(e.Token)
			if err != nil {
				return nil, err
			}
			code := lua.Add
			if e.Unique {
				code = lua.AddUnique
				p.claims[p.Entries[n]] = e
			}
			ops = append(ops, lua.Op{Code: code, Key: n})
		}
		p.Records = append(p.Records, lua.ApplyRecord{
			Key: w.key, ID: w.id, WriteID: w.writeID, Mode: w.mode, Condition: w.condition,
			Assumed: plan.Join(w.assumed), Entries: plan.Join(plan.Tokens(placed)),
			Value: w.value, Lifetime: w.lifetime, Ops: ops,
		})
		p.writes = append(p.writes, w)
	}
	return p, nil
}

// settle takes the status of one write in and reports whether the write is at its end.
func (c *Collection[T]) settle(w *write, status lua.Status, call *batchPlan, inBatch map[string]bool) bool {
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
		w.assumed = row.Entries
		c.events.replan(w.id)
		return false
	case lua.Adopt:
		tokens, err := c.tokensOf(w.id, status.Value)
		if err != nil {
			return end(err)
		}
		w.assumed, w.condition = tokens, ifValue(status.Value)
		return false
	case lua.Taken:
		return c.settleTaken(w, status, call, inBatch)
	case lua.WrongType:
		return end(&KeyTypeError{Key: status.Key, Found: status.Found})
	case lua.UnknownState:
		return end(ErrUnknown)
	}
	return end(fmt.Errorf("unexpected status %q", status.Code))
}

// settleTaken decides what a unique value in other hands means. A holder in the same batch may have given it up there; one
// that has vanished is collected; any other is a conflict.
func (c *Collection[T]) settleTaken(w *write, status lua.Status, call *batchPlan, inBatch map[string]bool) bool {
	claim := call.claims[status.Key]
	conflict := func() bool {
		w.err = &ConflictError{
			Entity: c.entity.String(), ID: w.id, Index: claim.Index, Value: valueOf(claim.Token), Holder: status.Holder,
		}
		return true
	}
	if w.tried == nil {
		w.tried = map[string]int{}
	}
	attempt := status.Key + "\x00" + status.Holder
	w.tried[attempt]++
	if inBatch[status.Holder] && w.tried[attempt] == 1 {
		return false
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

// tokensOf are the entries that the bytes of a record ask for under today's declaration: what to remove where the row
// that would say it is lost.
func (c *Collection[T]) tokensOf(id, value string) ([]plan.Token, error) {
	rec, err := c.decode(id, []byte(value))
	if err != nil {
		return nil, err
	}
	entries, err := c.entriesOf(rec)
	if err != nil {
		return nil, err
	}
	placed, err := plan.Place(c.entity.space, c.schema.Load().indexes, entries)
	if err != nil {
		return nil, err
	}
	return plan.Tokens(placed), nil
}

// entriesOf are the memberships that a record asks for, over all indexes.
func (c *Collection[T]) entriesOf(rec T) ([]plan.Entry, error) {
	var all []plan.Entry
	for _, ix := range c.entity.options.Indexes {
		entries, err := ix.Entries(rec)
		if err != nil {
			return nil, &Error{Index: ix.Name(), Err: invalid(err)}
		}
		all = append(all, entries...)
	}
	return all, nil
}

// invalid makes an error of a value match ErrInvalid, unless it says something more exact.
func invalid(err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

func (c *Collection[T]) decode(id string, b []byte) (T, error) {
	rec, err := c.entity.options.Codec.Decode(id, b)
	if err != nil {
		var zero T
		return zero, fmt.Errorf("%w: %w", ErrUndecodable, err)
	}
	return rec, nil
}

// ifValue is the condition that a record without a row still has these bytes.
func ifValue(value string) string {
	sum := sha1.Sum([]byte(value)) //nolint:gosec // as above
	return lua.IfValue(hex.EncodeToString(sum[:]))
}

func newWriteID() string {
	b := make([]byte, plan.WriteIDSize)
	_, _ = rand.Read(b) // never fails
	return string(b)
}

// keyOf is the primary key of an id.
func (c *Collection[T]) keyOf(id string) (string, error) {
	if id == "" {
		return "", fmt.Errorf("%w: the id is empty", ErrInvalid)
	}
	return c.part.Record(id)
}
