package index

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/lua"
)

// Touch lets a record live on: by the declared lifetime from now, or as Lives or Until say. Nothing else of it changes, and
// a token of its state stays good. ErrNotFound if there is no record, ErrInvalid for an instant that is past, or without
// an option where the declared lifetime is Forever. One round trip.
//
// A Touch whose reply is lost is repeated: the lifetime may begin twice, a moment apart.
//
// Queries and bounded indexes go by the lifetime that the library has noted. Of a record whose lifetime was made longer, or
// taken away, by other means (PERSIST, PEXPIRE), Get still gives the record, but Find, IDs, Count and Top hide it from the
// noted end on, until it is touched or written; its entries stay, but for those that a bounded ranked index takes out: a
// write or a repair brings those back.
func (c *Collection[T]) Touch(ctx context.Context, id string, o ...WriteOption) error {
	const op = "touch"
	var opts writeOptions
	for _, set := range o {
		set(&opts)
	}
	k, err := c.keyOf(id)
	switch {
	case err != nil:
		return c.fail(op, id, "", err)
	case c.readOnly:
		return c.fail(op, id, "", ErrReadOnly)
	case opts.wrong != nil:
		return c.fail(op, id, "", opts.wrong)
	case opts.hasToken || opts.lifetime == lua.Keep:
		return c.fail(op, id, "", fmt.Errorf("%w: a touch takes a lifetime only", ErrInvalid))
	case opts.lifetime == "" && c.entity.options.Lifetime == Forever:
		return c.fail(op, id, "", fmt.Errorf("%w: the records live for ever; give a lifetime", ErrInvalid))
	case opts.lifetime == "":
		opts.lifetime = c.lifetime()
	}
	err = c.retrying(ctx, func(*schema) error {
		return c.run.Touch(ctx, c.part.Meta(), c.part.Expiry(), k, id, opts.lifetime)
	})
	switch {
	case errors.Is(err, lua.ErrNoRecord):
		err = ErrNotFound
	case errors.Is(err, lua.ErrPast):
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return c.fail(op, id, "", err)
}
