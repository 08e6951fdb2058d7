package index

import (
	"context"

	"github.com/lockstep-go/lockstep/internal/plan"
)

// Count gives how many records match a condition, without those that have expired. A record that was evicted or removed by
// hand counts until it is collected. A range of scores that reaches into what its index has trimmed gives what is there with
// ErrIncomplete. Errors as Find.
//
// Cost: one round trip, O(values) on the server, plus O(expired records that nothing has collected yet). With several
// values of an index whose records hold several, the ids are read as IDs reads them.
func (c *Collection[T]) Count(ctx context.Context, conditions ...Condition[T]) (int64, error) {
	q, err := c.query(asClauses(conditions))
	if err != nil {
		return 0, c.fail("count", "", "", err)
	}
	if q.order != nil {
		return c.countSpan(ctx, q)
	}
	return c.count(ctx, q.cond)
}

// countSpan counts the records in a range of scores.
func (c *Collection[T]) countSpan(ctx context.Context, q part[T]) (int64, error) {
	w, err := c.walk(*q.order)
	if err != nil {
		return 0, c.fail("count", "", q.order.name(), err)
	}
	reply, err := w.read(ctx, 0)
	if err != nil {
		return 0, err
	}
	n := reply.Size - reply.Hidden
	if reply.More {
		// By bytes the server cannot tell which members are due.
		n = 0
		for page, err := range c.idPages(ctx, q) {
			if err != nil {
				return n, err
			}
			n += int64(len(page))
		}
		return n, nil
	}
	if !w.complete(false) {
		return n, c.fail("count", "", q.order.name(), ErrIncomplete)
	}
	return n, nil
}

// Exists reports whether a record matches a condition. Errors and cost as Count.
func (c *Collection[T]) Exists(ctx context.Context, conditions ...Condition[T]) (bool, error) {
	n, err := c.Count(ctx, conditions...)
	return n > 0, err
}

func asClauses[T any](conditions []Condition[T]) []Clause[T] {
	out := make([]Clause[T], len(conditions))
	for i, cond := range conditions {
		if cond != nil {
			out[i] = cond
		}
	}
	return out
}

func (c *Collection[T]) count(ctx context.Context, cond Cond[T]) (int64, error) {
	name := cond.index.Name()
	if len(cond.values) > 1 && cond.index.Definition().Multi {
		var n int64
		for page, err := range c.pages(ctx, cond) {
			if err != nil {
				return 0, err
			}
			n += int64(len(page))
		}
		return n, nil
	}
	var n int64
	err := c.retrying(ctx, func(s *schema) error {
		keys := make([]string, 0, len(cond.values))
		for _, v := range cond.values {
			k, err := c.entryKey(s, plan.Entry{Index: name, Kind: plan.Set, Value: v})
			if err != nil {
				return err
			}
			keys = append(keys, k)
		}
		var err error
		n, err = c.run.Count(ctx, c.part.Meta(), c.part.Expiry(), s.state(name), keys)
		return err
	})
	return n, c.fail("count", "", name, err)
}
