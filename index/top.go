package index

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// Item is one record of a page with its place in the order.
type Item[T any] struct {
	ID string
	// Score is that of Record. The page is in the order of the index when it was read: a record that has changed since
	// may stand elsewhere than its score says.
	Score  Score
	Record T
}

// Page is one page of an order.
type Page[T any] struct {
	Items []Item[T]
	// Complete says that the page is what a sort of all live records would give. It is false where the index has trimmed
	// something that may belong on the page: the items are in order, but others may be missing between and after them.
	Complete bool
	// Next continues after the page; "" at the end of the index.
	Next Cursor
}

// Top gives a page of records in the order of a ranked index. Equal scores are ordered by id, in the same direction.
// Conditions on ranges of the same index narrow it; others are ErrUnsupported for now.
//
// Records that have vanished, or have left the group or the range between the two steps of the query, are left out and the
// page is filled up with the next ones. A record that lives through the paging with one score is seen exactly once.
// Errors: ErrInvalid for a size below 1 or above Keep, ErrCursor, ErrNotReady, ErrUndecodable, and those of the store.
//
// Cost: two round trips and O(log members + page) on the server; two more each time records had to be left out.
func (c *Collection[T]) Top(ctx context.Context, o Order[T], conditions ...Condition[T]) (Page[T], error) {
	var page Page[T]
	o, err := c.ordered(o, conditions)
	if err != nil {
		return page, c.fail("top", "", o.name(), err)
	}
	w, err := c.walk(o)
	if err != nil {
		return page, c.fail("top", "", o.name(), err)
	}
	for m, err := range w.matches(ctx, o.spec.Limit) {
		if err != nil {
			return page, err
		}
		if page.Items == nil {
			page.Items = make([]Item[T], 0, min(o.spec.Limit, maxPrepared))
		}
		page.Items = append(page.Items, Item[T]{m.id, m.score, m.rec})
		if len(page.Items) == o.spec.Limit {
			break
		}
	}
	page.Complete = w.complete(len(page.Items) == o.spec.Limit)
	if len(page.Items) == o.spec.Limit && w.more {
		page.Next = newCursor(w.query, w.last)
	}
	return page, nil
}

// maxPrepared bounds for how many items a page has room before they have come.
const maxPrepared = 1000

// name is the name of the order's index, "" without one.
func (o Order[T]) name() string {
	if o.index == nil {
		return ""
	}
	return o.index.Name()
}

// ordered checks an order and narrows it by conditions on the same index.
func (c *Collection[T]) ordered(o Order[T], conditions []Condition[T]) (Order[T], error) {
	switch {
	case o.index == nil:
		return o, fmt.Errorf("%w: the order has no index", ErrInvalid)
	case o.err != nil:
		return o, invalid(o.err)
	}
	if err := c.declared(o.index); err != nil {
		return o, err
	}
	for _, condition := range conditions {
		if condition == nil {
			return o, fmt.Errorf("%w: a condition is nil", ErrInvalid)
		}
		cond := condition.clause().cond
		switch {
		case cond.err != nil:
			return o, invalid(cond.err)
		case cond.span == nil || cond.index != Index[T](o.index) || cond.span.Group != o.spec.Group:
			return o, fmt.Errorf("%w: an order takes conditions on ranges of its own index only", ErrUnsupported)
		}
		o.spec.Range = o.spec.Range.Intersect(o.spec.Kind, cond.span.Range)
	}
	return o, nil
}

// declared checks that an index is one of the entity type.
func (c *Collection[T]) declared(ix Index[T]) error {
	if known, ok := c.entity.index(ix.Name()); !ok || known != ix {
		return &Error{Index: ix.Name(), Err: fmt.Errorf("%w: the index is not one of %s", ErrInvalid, c.entity)}
	}
	return nil
}

// walk is one pass over a ranked key, from a cursor on.
type walk[T any] struct {
	c     *Collection[T]
	order Order[T]
	under *schema // that names the key
	body  string  // of the key, as a row keeps it
	key   string
	query string // what a cursor belongs to
	last  lua.Pair
	floor lua.Floor
	more  bool // members follow last
}

// rankedPage is how many members one step of a walk without a limit reads.
const rankedPage = 200

// walk begins a pass over the key of an order.
func (c *Collection[T]) walk(o Order[T]) (*walk[T], error) {
	w := &walk[T]{c: c, order: o}
	if err := w.find(c.schema.Load()); err != nil {
		return nil, err
	}
	lower, upper := o.spec.Range.Bounds(o.spec.Kind)
	w.query = c.entity.String() + " " + w.body + " " + strconv.FormatBool(o.spec.Descending) + " " +
		strconv.Quote(lower) + " " + strconv.Quote(upper)
	var err error
	w.last, err = o.after.open(w.query)
	return w, err
}

// find names the ranked key under a schema.
func (w *walk[T]) find(s *schema) error {
	if w.under == s {
		return nil
	}
	spec := w.order.spec
	placed, err := plan.Place(w.c.entity.space, s.indexes, []plan.Entry{{
		Index: w.order.index.Name(), Kind: spec.Kind, Value: spec.Group, Grouped: spec.Grouped,
	}})
	if err != nil {
		return err
	}
	w.under, w.body = s, placed[0].Token.Body()
	w.key, err = w.c.part.Entry(w.body)
	return err
}

// read asks for the next members, at most limit.
func (w *walk[T]) read(ctx context.Context, limit int) (reply lua.RankReply, err error) {
	spec, c := w.order.spec, w.c
	lower, upper := spec.Range.Bounds(spec.Kind)
	err = c.retrying(ctx, func(s *schema) error {
		err := w.find(s)
		if err != nil {
			return err
		}
		reply, err = c.run.Rank(ctx, lua.RankCall{
			Meta: c.part.Meta(), Expiry: c.part.Expiry(), Floor: c.part.Floor(), Entries: w.key,
			State: s.state(w.order.index.Name()), Body: w.body,
			Lexical: spec.Kind == plan.Lexical, Descending: spec.Descending, Limit: limit, Min: lower, Max: upper,
			AfterScore: w.last.Score, AfterMember: w.last.Member,
			MaxAge: spec.Bound.MaxAge.Microseconds(), Unit: max(spec.Bound.Unit.Microseconds(), 1),
			PrefixSize: spec.PrefixSize,
		})
		return err
	})
	if err != nil {
		return reply, c.fail("top", "", w.order.index.Name(), err)
	}
	w.more = reply.More
	// Of several floors the best counts: an earlier step may have lacked what a refill has brought back since.
	if w.floor.None() || !reply.Floor.None() && w.beatsFloor(reply.Floor.Best) {
		w.floor = reply.Floor
	}
	return reply, nil
}

// complete reports whether nothing that was trimmed can belong to what the walk has given so far. full says that it ended
// because enough was found, not because nothing followed.
func (w *walk[T]) complete(full bool) bool {
	spec := w.order.spec
	if w.floor.None() {
		return true
	}
	// A range that ends before the floor holds nothing that was trimmed, from whichever end it is read.
	edge := spec.Range.Min
	if spec.Bound.Low {
		edge = spec.Range.Max
	}
	if edge != nil && w.edgeBeatsFloor(*edge) {
		return true
	}
	return full && spec.Kept() && w.beatsFloor(w.last)
}

// beatsFloor reports whether nothing that was trimmed lies nearer to the kept end than a pair. The pair that equals the
// floor is the trimmed one itself, which has come back.
func (w *walk[T]) beatsFloor(p lua.Pair) bool {
	spec, f := w.order.spec, w.floor.Best
	return spec.Bound.Compare(spec.Kind, p.Score, p.Member, f.Score, f.Member) >= 0
}

// edgeBeatsFloor reports the same of every pair within the edge of a range.
func (w *walk[T]) edgeBeatsFloor(e plan.Edge) bool {
	f := w.floor.Best.Score
	if w.order.spec.Kind == plan.Lexical {
		f, _ = w.order.spec.SplitMember(w.floor.Best.Member)
	}
	cmp := plan.CompareScores(w.order.spec.Kind, e.Score, f)
	if w.order.spec.Bound.Low {
		cmp = -cmp
	}
	return cmp > 0 || cmp == 0 && e.Open
}

// ids gives the ids of a walk in order, page by page.
func (w *walk[T]) ids(ctx context.Context, limit int) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for given := 0; ; {
			n := rankedPage
			if limit > 0 {
				n = min(limit-given, 1000)
			}
			reply, err := w.read(ctx, n)
			if err != nil {
				yield(nil, err)
				return
			}
			page := reply.Members
			if w.order.spec.Kind == plan.Lexical {
				for i, member := range page {
					_, page[i] = w.order.spec.SplitMember(member)
				}
			}
			given += len(page)
			if len(page) > 0 {
				w.last = reply.Last
				if !yield(page, nil) {
					return
				}
			}
			if !reply.More || limit > 0 && given >= limit {
				return
			}
		}
	}
}

// placedMatch is one record of a walk.
type placedMatch[T any] struct {
	match[T]
	score Score
}

// matches loads the records of a walk and checks that they still belong to it. A limit is how many are wanted: those left
// out are made up for, by the next members.
func (w *walk[T]) matches(ctx context.Context, limit int) iter.Seq2[placedMatch[T], error] {
	return func(yield func(placedMatch[T], error) bool) {
		var zero placedMatch[T]
		name := w.order.index.Name()
		given := 0
		for {
			want := 0
			if limit > 0 {
				want = limit - given
			}
			for page, err := range w.ids(ctx, want) {
				if err != nil {
					yield(zero, err)
					return
				}
				found, err := w.load(ctx, name, page)
				if err != nil {
					yield(zero, err)
					return
				}
				for _, m := range found {
					given++
					if !yield(m, nil) {
						return
					}
				}
			}
			if limit == 0 || given >= limit || !w.more {
				return
			}
		}
	}
}

// load gives the records of a page that still belong to it.
func (w *walk[T]) load(ctx context.Context, name string, ids []string) ([]placedMatch[T], error) {
	raw, err := w.c.GetEncoded(ctx, ids)
	if err != nil {
		return nil, w.c.fail("top", "", name, err)
	}
	out := make([]placedMatch[T], 0, len(ids))
	for i, r := range raw {
		if errors.Is(r.Err, ErrNotFound) {
			w.c.vanished(name, ids[i])
			continue
		}
		rec, err := w.c.decode(ids[i], r.Record)
		if err != nil {
			return nil, w.c.fail("top", ids[i], name, err)
		}
		score, ok, err := w.order.place(rec)
		if err != nil {
			return nil, w.c.fail("top", ids[i], name, invalid(err))
		}
		if !ok {
			w.c.events.stale(name, ids[i])
			continue
		}
		out = append(out, placedMatch[T]{match[T]{ids[i], r.Record, rec}, w.order.index.DecodeScore(score)})
	}
	return out, nil
}

// place is the score of a record that is in the group and the range of an order.
func (o Order[T]) place(rec T) (score string, ok bool, err error) {
	entries, err := o.index.Entries(rec)
	if err != nil {
		return "", false, err
	}
	for _, e := range entries {
		if e.Value == o.spec.Group && o.spec.Range.Contains(o.spec.Kind, e.Score) {
			return e.Score, true, nil
		}
	}
	return "", false, nil
}
