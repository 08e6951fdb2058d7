package index

import (
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

// batchPlan is a call together with what its parts came from.
type batchPlan struct {
	lua.ApplyCall
	writes []*write               // aligned with Records; nil where a record is only collected
	claims map[string]plan.Placed // unique index key -> what claims it
	part   key.Partition
	places map[string]int        // body of an index key -> place in Entries
	ids    map[string]bool       // in the call, once something is collected
	bounds map[string]plan.Bound // of the ranked indexes, by name
	trims  map[int]int           // place of a bounded key -> its place in Trims
}

// plan makes the call for a batch: keys, operations and assumptions. Collections come first, so that what they free can be
// claimed: those that a write of the batch asks for, then a few of what is due.
func (c *Collection[T]) plan(s *schema, batch []*write) *batchPlan {
	p := c.newBatch(s, len(batch))
	due, want := c.due.next()
	p.WantDue = want
	for _, w := range batch {
		for _, gone := range w.collect {
			p.collect(gone, batch)
		}
	}
	for _, gone := range due {
		p.collect(gone, batch)
	}
	for _, w := range batch {
		placed, err := plan.Place(c.entity.space, s.indexes, w.entries)
		if err == nil {
			err = p.write(w, placed)
		}
		if err != nil {
			w.err = c.fail(w.op, w.id, "", err)
		}
	}
	return p
}

// newBatch is an empty call with room for so many records.
func (c *Collection[T]) newBatch(s *schema, size int) *batchPlan {
	return &batchPlan{
		ApplyCall: lua.ApplyCall{
			Meta: c.part.Meta(), Manifest: c.part.Manifest(), Expiry: c.part.Expiry(), Floor: c.part.Floor(),
			Generation: s.generation, Epoch: s.epoch, Seen: s.seen.Load(),
			Records: make([]lua.ApplyRecord, 0, size),
		},
		writes: make([]*write, 0, size),
		claims: map[string]plan.Placed{},
		part:   c.part,
		places: map[string]int{},
		bounds: c.entity.bounds,
	}
}

// collect adds the removal of what is left of a record that is gone, unless the batch writes it. A damaged row is left to
// repair.
func (p *batchPlan) collect(gone collect, batch []*write) {
	if p.ids == nil {
		p.ids = make(map[string]bool, len(batch))
		for _, w := range batch {
			p.ids[w.id] = true
		}
	}
	if p.ids[gone.id] {
		return
	}
	ops, err := p.removals(gone.tokens, 0)
	if err != nil {
		return
	}
	p.ids[gone.id] = true
	p.Records = append(p.Records, lua.ApplyRecord{
		Key: gone.key, ID: gone.id, WriteID: newWriteID(), Mode: lua.Collect,
		Assumed: plan.Join(gone.tokens), Lifetime: lua.Forever, Ops: ops,
	})
	p.writes = append(p.writes, nil)
}

// write adds the plan of one write.
func (p *batchPlan) write(w *write, placed []plan.Placed) error {
	ops, err := p.removals(plan.Removed(w.assumed, placed), len(placed))
	if err != nil {
		return err
	}
	for _, e := range placed {
		n, err := p.place(e.Token)
		if err != nil {
			return err
		}
		if e.Unique {
			p.claims[p.Entries[n]] = e
		}
		ops = append(ops, addOp(e, n))
		p.trim(p.bounds[e.Index], e.Token, n)
	}
	p.Records = append(p.Records, lua.ApplyRecord{
		Key: w.key, ID: w.id, WriteID: w.writeID, Mode: w.mode, Condition: w.condition,
		Assumed: plan.Join(w.assumed), Entries: plan.Join(plan.Tokens(placed)),
		Value: w.value, Lifetime: w.lifetime, Ops: ops,
	})
	p.writes = append(p.writes, w)
	return nil
}

// removals are the operations that make entries false, with room for so many that follow.
func (p *batchPlan) removals(tokens []plan.Token, room int) ([]lua.Op, error) {
	ops := make([]lua.Op, 0, len(tokens)+room)
	for _, t := range tokens {
		n, err := p.place(t)
		if err != nil {
			return nil, err
		}
		ops = append(ops, removeOp(t, n))
		if t.Kind() != plan.Set {
			p.leaves(t, n)
		}
	}
	return ops, nil
}

// place is the place of a token's index key among those of the call.
func (p *batchPlan) place(t plan.Token) (int, error) {
	body := t.Body()
	n, ok := p.places[body]
	if !ok {
		k, err := p.part.Entry(body)
		if err != nil {
			return 0, err
		}
		n = len(p.Entries)
		p.places[body] = n
		p.Entries = append(p.Entries, k)
	}
	return n, nil
}

// addOp is the operation that makes an entry true; key is the place of its index key.
func addOp(e plan.Placed, key int) lua.Op {
	switch {
	case e.Token.Kind() == plan.Ranked:
		return lua.Op{Code: lua.AddScored, Key: key, Arg: e.Score}
	case e.Token.Kind() == plan.Lexical:
		return lua.Op{Code: lua.AddLexical, Key: key, Arg: e.Score}
	case e.Unique:
		return lua.Op{Code: lua.AddUnique, Key: key}
	}
	return lua.Op{Code: lua.Add, Key: key}
}

// removeOp is the operation that makes an entry false.
func removeOp(t plan.Token, key int) lua.Op {
	if t.Kind() == plan.Set {
		return lua.Op{Code: lua.Remove, Key: key}
	}
	return lua.Op{Code: lua.RemoveRanked, Key: key, Arg: t.Prefix()}
}

// trim adds the bound of a ranked key that gets an entry to the call.
func (p *batchPlan) trim(b plan.Bound, t plan.Token, key int) {
	if t.Kind() == plan.Set || b.Keep == 0 && b.MaxAge == 0 {
		return
	}
	trim := p.trimOf(t, key)
	trim.Low, trim.Keep, trim.Slack = b.Low, b.Keep, b.Slack
	trim.MaxAge, trim.Unit = b.MaxAge.Microseconds(), max(b.Unit, time.Microsecond).Microseconds()
}

// leaves adds a ranked key to the call that loses an entry: it may be one that was trimmed, and then its floor names it.
func (p *batchPlan) leaves(t plan.Token, key int) {
	name, _, _ := strings.Cut(t.Body(), ".")
	if p.bounds[name].Keep > 0 {
		p.trimOf(t, key)
	}
}

// trimOf is the trim of a ranked key, without a bound if the call has had none for it.
func (p *batchPlan) trimOf(t plan.Token, key int) *lua.Trim {
	n, ok := p.trims[key]
	if !ok {
		if p.trims == nil {
			p.trims = map[int]int{}
		}
		n = len(p.Trims)
		p.trims[key] = n
		p.Trims = append(p.Trims, lua.Trim{Key: key, Body: t.Body()})
	}
	return &p.Trims[n]
}
