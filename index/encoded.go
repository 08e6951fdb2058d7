package index

import (
	"context"
	"fmt"
	"iter"

	"github.com/lockstep-go/lockstep/lua"
)

// PutEncoded implements Opened.
func (c *Collection[T]) PutEncoded(ctx context.Context, raw [][]byte) ([]Outcome, error) {
	all := make([]write, len(raw))
	writes := make([]*write, len(raw))
	for i, b := range raw {
		writes[i] = &all[i]
		rec, err := c.entity.options.Codec.Decode("", b)
		if err != nil {
			all[i].err = c.fail("put", "", "", fmt.Errorf("%w: %w", ErrInvalid, err))
			continue
		}
		all[i] = c.prepare("put", lua.Put, rec, nil)
	}
	return c.applyMany(ctx, writes)
}

// FindEncoded implements Opened.
func (c *Collection[T]) FindEncoded(ctx context.Context, index, text string) iter.Seq2[Encoded, error] {
	return func(yield func(Encoded, error) bool) {
		cond, err := c.reading(index, text)
		if err != nil {
			yield(Encoded{}, c.fail("find", "", index, err))
			return
		}
		for m, err := range c.matches(ctx, cond) {
			if !yield(Encoded{m.id, m.raw}, err) || err != nil {
				return
			}
		}
	}
}

// FindIDs implements Opened.
func (c *Collection[T]) FindIDs(ctx context.Context, index, text string) iter.Seq2[string, error] {
	cond, err := c.reading(index, text)
	if err != nil {
		return func(yield func(string, error) bool) { yield("", c.fail("find", "", index, err)) }
	}
	return c.IDs(ctx, cond)
}

// CountOf implements Opened.
func (c *Collection[T]) CountOf(ctx context.Context, index, text string) (int64, error) {
	cond, err := c.reading(index, text)
	if err != nil {
		return 0, c.fail("count", "", index, err)
	}
	return c.count(ctx, cond)
}

// reading is the condition that a text stands for.
func (c *Collection[T]) reading(index, text string) (Cond[T], error) {
	ix, ok := c.entity.index(index)
	if !ok {
		return Cond[T]{}, fmt.Errorf("%w: there is no such index; there are %v", ErrInvalid, c.entity.indexNames())
	}
	values, err := ix.Readings(text)
	if err != nil {
		return Cond[T]{}, invalid(err)
	}
	return Where(ix, values, nil), nil
}
