package index

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

const (
	// idPage is how many ids one call asks of an index: a smaller set comes whole.
	idPage = 1000
	// maxDistinct bounds how many ids one query remembers to leave out repetitions.
	maxDistinct = 1 << 20
)

// Find gives the records that match a condition, in no order, each once; or those of an order or of a range of scores, in
// order, with ErrIncomplete at the end where the index has trimmed what may belong to them. Ids are read a page at a time and the records
// after them, so that nothing blocks the server; each record is checked again when it is loaded: one that no longer has
// the value is left out, as is one that has vanished. A record that has the value throughout the query is found; one that
// gets or loses it meanwhile may be found or not. Repetitions, which the server may produce while a set of over a thousand
// ids is rehashed, are left out for the first million ids.
//
// The sequence ends with one (zero, error) if something fails: ErrNotReady if the index is not known to be whole,
// ErrUndecodable, or an error of the store. Combined conditions are ErrUnsupported for now.
//
// Cost: one round trip per 1000 ids and one per 200 records.
func (c *Collection[T]) Find(ctx context.Context, clauses ...Clause[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		q, err := c.query(clauses)
		if err != nil {
			yield(zero, c.fail("find", "", "", err))
			return
		}
		for m, err := range c.found(ctx, q) {
			if err != nil {
				yield(zero, err)
				return
			}
			if !yield(m.rec, nil) {
				return
			}
		}
	}
}

// found gives the records of a query: in order for an order or a range of scores, else in none.
func (c *Collection[T]) found(ctx context.Context, q part[T]) iter.Seq2[match[T], error] {
	if q.order == nil {
		return c.matches(ctx, q.cond)
	}
	return func(yield func(match[T], error) bool) {
		w, err := c.walk(*q.order)
		if err != nil {
			yield(match[T]{}, c.fail("find", "", q.order.name(), err))
			return
		}
		given := 0
		for m, err := range w.matches(ctx, q.order.spec.Limit) {
			if !yield(m.match, err) || err != nil {
				return
			}
			given++
		}
		if !w.complete(q.order.spec.Limit > 0 && given == q.order.spec.Limit) {
			yield(match[T]{}, c.fail("find", "", q.order.name(), ErrIncomplete))
		}
	}
}

// IDs gives the ids of the records that match a condition, in no order, each once, as Find does but without loading the
// records: an id of a record that was evicted or removed by hand is given too, one of an expired record is not.
//
// Cost: one round trip per 1000 ids.
func (c *Collection[T]) IDs(ctx context.Context, clauses ...Clause[T]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		q, err := c.query(clauses)
		if err != nil {
			yield("", c.fail("find", "", "", err))
			return
		}
		for page, err := range c.idPages(ctx, q) {
			for _, id := range page {
				if !yield(id, nil) {
					return
				}
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

// idPages gives the ids of a query, page by page.
func (c *Collection[T]) idPages(ctx context.Context, q part[T]) iter.Seq2[[]string, error] {
	if q.order == nil {
		return c.pages(ctx, q.cond)
	}
	return func(yield func([]string, error) bool) {
		w, err := c.walk(*q.order)
		if err != nil {
			yield(nil, c.fail("find", "", q.order.name(), err))
			return
		}
		given := 0
		for ids, err := range w.ids(ctx, q.order.spec.Limit) {
			given += len(ids)
			if !yield(ids, err) || err != nil {
				return
			}
		}
		if !w.complete(q.order.spec.Limit > 0 && given == q.order.spec.Limit) {
			yield(nil, c.fail("find", "", q.order.name(), ErrIncomplete))
		}
	}
}

// One gives the record that holds a value of a unique index, ErrNotFound if there is none. Two round trips.
func (c *Collection[T]) One(ctx context.Context, k Key[T]) (T, error) {
	var zero T
	q, err := c.query([]Clause[T]{k})
	if err != nil {
		return zero, c.fail("one", "", "", err)
	}
	// Between the two round trips the value may pass from one record to another; a second look finds the new holder.
	for range 2 {
		for m, err := range c.matches(ctx, q.cond) {
			return m.rec, err
		}
	}
	return zero, c.fail("one", "", q.cond.index.Name(), ErrNotFound)
}

// query takes the single clause of a query and checks that it is about this entity type. A range of scores becomes the
// order from the end that its index keeps.
func (c *Collection[T]) query(clauses []Clause[T]) (part[T], error) {
	if len(clauses) != 1 {
		return part[T]{}, fmt.Errorf("%w: a query takes exactly one condition or order, not %d", ErrUnsupported, len(clauses))
	}
	if clauses[0] == nil {
		return part[T]{}, fmt.Errorf("%w: the condition is nil", ErrInvalid)
	}
	q := clauses[0].clause()
	if q.order != nil {
		o, err := c.ordered(*q.order, nil)
		if err != nil && o.name() != "" {
			err = &Error{Index: o.name(), Err: err}
		}
		return part[T]{order: &o}, err
	}
	switch {
	case q.cond.index == nil:
		return q, fmt.Errorf("%w: the condition has no index", ErrInvalid)
	case q.cond.err != nil:
		return q, &Error{Index: q.cond.index.Name(), Err: invalid(q.cond.err)}
	}
	if err := c.declared(q.cond.index); err != nil {
		return q, err
	}
	if q.cond.span != nil {
		spec := *q.cond.span
		spec.Descending = !spec.Bound.Low
		q.order = &Order[T]{index: q.cond.index.(RankedIndex[T]), spec: spec}
	}
	return q, nil
}

// match is one record that a query found.
type match[T any] struct {
	id  string
	raw []byte
	rec T
}

// matches loads what pages gives, and checks it.
func (c *Collection[T]) matches(ctx context.Context, cond Cond[T]) iter.Seq2[match[T], error] {
	return func(yield func(match[T], error) bool) {
		var zero match[T]
		name := cond.index.Name()
		for page, err := range c.pages(ctx, cond) {
			if err != nil {
				yield(zero, err)
				return
			}
			for from := 0; from < len(page); from += batchRecords {
				ids := page[from:min(from+batchRecords, len(page))]
				raw, err := c.GetEncoded(ctx, ids)
				if err != nil {
					yield(zero, c.fail("find", "", name, err))
					return
				}
				for i, r := range raw {
					if errors.Is(r.Err, ErrNotFound) {
						c.vanished(name, ids[i])
						continue
					}
					m, ok, err := c.check(cond, ids[i], r.Record)
					if err != nil {
						yield(zero, c.fail("find", ids[i], name, err))
						return
					}
					if !ok {
						c.events.stale(name, ids[i])
						continue
					}
					if !yield(m, nil) {
						return
					}
				}
			}
		}
	}
}

// check decodes a loaded record and holds it against the condition that found it.
func (c *Collection[T]) check(cond Cond[T], id string, raw []byte) (m match[T], ok bool, err error) {
	rec, err := c.decode(id, raw)
	if err != nil {
		return m, false, err
	}
	if ok, err = cond.holds(rec); err != nil {
		return m, false, invalid(err)
	}
	return match[T]{id, raw, rec}, ok, nil
}

// pages gives the ids that an index holds under the values of a condition, page by page, each id once up to maxDistinct.
func (c *Collection[T]) pages(ctx context.Context, cond Cond[T]) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		name := cond.index.Name()
		fail := func(err error) { yield(nil, c.fail("find", "", name, err)) }
		// A set that comes whole repeats nothing; only a scan, or several values of one record, can.
		var met map[string]struct{}
		if len(cond.values) > 1 {
			met = map[string]struct{}{}
		}
		for _, v := range cond.values {
			for cursor := "0"; ; {
				var reply lua.FindReply
				err := c.retrying(ctx, func(s *schema) error {
					entries, err := c.entryKey(s, plan.Entry{Index: name, Kind: plan.Set, Value: v})
					if err != nil {
						return err
					}
					reply, err = c.run.Find(ctx, lua.FindCall{
						Meta: c.part.Meta(), Expiry: c.part.Expiry(), Entries: entries,
						State: s.state(name), Cursor: cursor, Page: idPage,
					})
					return err
				})
				if err != nil {
					fail(err)
					return
				}
				if met == nil && reply.Cursor != "0" {
					met = map[string]struct{}{}
				}
				page := distinct(met, reply.IDs)
				if len(page) > 0 && !yield(page, nil) {
					return
				}
				if cursor = reply.Cursor; cursor == "0" {
					break
				}
			}
		}
	}
}

// distinct leaves out the ids that met holds, and adds the others to it while there is room.
func distinct(met map[string]struct{}, ids []string) []string {
	if met == nil {
		return ids
	}
	out := ids[:0]
	for _, id := range ids {
		if _, ok := met[id]; ok {
			continue
		}
		if len(met) < maxDistinct {
			met[id] = struct{}{}
		}
		out = append(out, id)
	}
	return out
}

// entryKey is the index key of one value.
func (c *Collection[T]) entryKey(s *schema, e plan.Entry) (string, error) {
	placed, err := plan.Place(c.entity.space, s.indexes, []plan.Entry{e})
	if err != nil {
		return "", err
	}
	return c.part.Entry(placed[0].Token.Body())
}
