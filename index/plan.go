package index

import (
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// batchPlan is a call together with what its parts came from.
type batchPlan struct {
	lua.ApplyCall
	writes []*write               // aligned with Records; nil where a record is only collected
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
