package index

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// batchPlan is a call together with what its parts came from.
type batchPlan struct {
	lua.ApplyCall
	bounded map[int]bool           // places of keys that have their trim
	writes  []*write               // aligned with Records; nil where a record is only collected
	claims  map[string]plan.Placed // unique index key -> what claims it
}

// plan makes the call for a batch: keys, operations and assumptions. Collections come first, so that what they free can be
// claimed.
func (c *Collection[T]) plan(s *schema, batch []*write) (*batchPlan, error) {
	p := &batchPlan{
		ApplyCall: lua.ApplyCall{
			Meta: c.part.Meta(), Manifest: c.part.Manifest(), Expiry: c.part.Expiry(), Floor: c.part.Floor(),
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
				ops = append(ops, removeOp(t, n))
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
			ops = append(ops, removeOp(t, n))
		}
		for _, e := range placed {
			n, err := place(e.Token)
			if err != nil {
				return nil, err
			}
			if e.Unique {
				p.claims[p.Entries[n]] = e
			}
			ops = append(ops, addOp(e, n))
			p.bound(c.entity.bounds[e.Index], e.Token, n)
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

// bound adds the bound of a ranked key to the call, once.
func (p *batchPlan) bound(b plan.Bound, t plan.Token, key int) {
	if t.Kind() == plan.Set || b.Keep == 0 && b.MaxAge == 0 {
		return
	}
	if p.bounded[key] {
		return
	}
	if p.bounded == nil {
		p.bounded = map[int]bool{}
	}
	p.bounded[key] = true
	p.Trims = append(p.Trims, lua.Trim{
		Key: key, Body: t.Body(), Low: b.Low, Keep: b.Keep, Slack: b.Slack,
		MaxAge: b.MaxAge.Microseconds(), Unit: max(b.Unit, time.Microsecond).Microseconds(),
	})
}
