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

// Find gives the records that match a condition, in no order, each once. Ids are read a page at a time and the records
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
		cond, err := c.one(clauses)
		if err != nil {
			yield(zero, c.fail("find", "", "", err))
			return
		}
		for m, err := range c.matches(ctx, cond) {
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

// IDs gives the ids of the records that match a condition, in no order, each once, as Find does but without loading the
// records: an id of a record that was evicted or removed by hand is given too, one of an expired record is not.
//
// Cost: one round trip per 1000 ids.
func (c *Collection[T]) IDs(ctx context.Context, clauses ...Clause[T]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		cond, err := c.one(clauses)
		if err != nil {
			yield("", c.fail("find", "", "", err))
			return
		}
		for page, err := range c.pages(ctx, cond) {
			if err != nil {
				yield("", err)
				return
			}
			for _, id := range page {
				if !yield(id, nil) {
					return
				}
			}
		}
	}
}

// One gives the record that holds a value of a unique index, ErrNotFound if there is none. Two round trips.
func (c *Collection[T]) One(ctx context.Context, k Key[T]) (T, error) {
	var zero T
	cond, err := c.one([]Clause[T]{k})
	if err != nil {
		return zero, c.fail("one", "", "", err)
	}
	// Between the two round trips the value may pass from one record to another; a second look finds the new holder.
	for range 2 {
		for m, err := range c.matches(ctx, cond) {
			return m.rec, err
		}
	}
	return zero, c.fail("one", "", cond.index.Name(), ErrNotFound)
}

// one takes the single condition out of the clauses of a query and checks that it is about this entity type.
func (c *Collection[T]) one(clauses []Clause[T]) (Cond[T], error) {
	if len(clauses) != 1 {
		return Cond[T]{}, fmt.Errorf("%w: a query takes exactly one condition, not %d", ErrUnsupported, len(clauses))
	}
	if clauses[0] == nil {
		return Cond[T]{}, fmt.Errorf("%w: the condition is nil", ErrInvalid)
	}
	cond := clauses[0].clause()
	switch {
	case cond.index == nil:
		return cond, fmt.Errorf("%w: the condition has no index", ErrInvalid)
	case cond.err != nil:
		return cond, &Error{Index: cond.index.Name(), Err: invalid(cond.err)}
	}
	if declared, ok := c.entity.index(cond.index.Name()); !ok || declared != cond.index {
		return cond, &Error{Index: cond.index.Name(), Err: fmt.Errorf("%w: the index is not one of %s", ErrInvalid, c.entity)}
	}
	return cond, nil
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
						c.events.vanished(name, ids[i])
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
