package index

import (
	"context"
	"fmt"
)

// End is the end of an order at which a page begins.
type End int

// The ends of an order.
const (
	// KeptEnd is the one that the index keeps: the highest scores, or with LowestFirst the lowest.
	KeptEnd End = iota
	Highest
	Lowest
)

// TopRequest asks a ranked index that is known by its name for a page.
type TopRequest struct {
	Index string
	// N is the size of the page: at least 1 and, where the index is bounded, at most Keep.
	N int
	// Within is a text for the group, nil for an index without groups.
	Within *string
	// From is the end at which the order begins: KeptEnd by default.
	From End
	// After goes on after a page of the same question; "" is the beginning.
	After Cursor
}

// EncodedItem is one record of a page as its codec wrote it.
type EncodedItem struct {
	ID string
	// Score is that of the record, as in Item.
	Score Score
	Bytes []byte
}

// TopResult is one page of an order. Complete and Next mean what they mean in a Page.
type TopResult struct {
	Items    []EncodedItem
	Complete bool
	Next     Cursor
}

// TopEncoded implements Opened.
func (c *Collection[T]) TopEncoded(ctx context.Context, q TopRequest) (TopResult, error) {
	var page TopResult
	o, err := c.orderNamed(q)
	if err != nil {
		return page, c.fail("top", "", q.Index, err)
	}
	w, err := c.walk(o)
	if err != nil {
		return page, c.fail("top", "", q.Index, err)
	}
	for m, err := range w.matches(ctx, q.N) {
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, EncodedItem{m.id, m.score, m.raw})
		if len(page.Items) == q.N {
			break
		}
	}
	full := len(page.Items) == q.N
	page.Complete = w.complete(full)
	if full && w.more {
		page.Next = newCursor(w.query, w.last)
	}
	return page, nil
}

// orderNamed is the order that a request stands for.
func (c *Collection[T]) orderNamed(q TopRequest) (Order[T], error) {
	ix, ok := c.entity.index(q.Index)
	if !ok {
		return Order[T]{}, fmt.Errorf("%w: there is no such index; there are %v", ErrInvalid, c.entity.indexNames())
	}
	ranked, ok := ix.(RankedIndex[T])
	if !ok {
		return Order[T]{}, fmt.Errorf("%w: a %s index holds no order", ErrUnsupported, ix.Definition().Kind)
	}
	descending := q.From == Highest || q.From == KeptEnd && !ix.Definition().Bound.Low
	o, err := ranked.ReadOrder(descending, q.N, q.Within)
	if err != nil {
		return o, invalid(err)
	}
	return c.ordered(o.After(q.After), nil)
}
