package opaque

import (
	"context"
	"fmt"
	"iter"

	"github.com/lockstep-go/lockstep/index"
)

// Collection runs the writes and queries of one entity type on one opaque store. It is safe for concurrent use, holds no
// data, starts no goroutine, and needs no Close: the store stays the caller's.
//
// Errors are those of package index, and ErrSuspect. A write that ends with an error has changed nothing, except that
// ErrUnknown, an *UnknownError, means that it may have happened or may happen yet: never half of it.
type Collection[T any] struct {
	*Store
	entity *index.Entity[T]
}

// Entity is the declaration that was opened, with its type.
func (c *Collection[T]) Entity() *index.Entity[T] { return c.entity }

// Put writes a record, new or not. All of its indexes switch at one instant, when the record does. Its lifetime starts anew.
// *index.ConflictError for a unique value that another live record holds; ErrTooLarge where a list or the record is over its
// bounds; ErrBadKey for an id or a value that the store takes no key for.
//
// Cost in round trips, without another writer on the same keys: as Create or Update, and one more for a new record.
func (c *Collection[T]) Put(ctx context.Context, rec T) error {
	return c.core.store(ctx, "put", put, rec)
}

// Create writes a record that does not exist yet; else ErrExists. Otherwise as Put.
//
// Cost: two round trips, one for each unique value, two for each value of another index, and two for the index of all ids.
func (c *Collection[T]) Create(ctx context.Context, rec T) error {
	return c.core.store(ctx, "create", create, rec)
}

// Replace writes a record that exists; else ErrNotFound. Otherwise as Put.
func (c *Collection[T]) Replace(ctx context.Context, rec T) error {
	return c.core.store(ctx, "replace", replace, rec)
}

// Update reads a record, lets fn change it, and writes it if nobody has written it meanwhile; else it starts again, so fn
// may run several times. It returns the record as written. The lifetime goes on. fn must not change the id; its error ends
// the update, with nothing written. ErrNotFound if there is no record.
//
// Cost: two round trips, four for each changed value of an index, three for each changed unique value.
func (c *Collection[T]) Update(ctx context.Context, id string, fn func(*T) error) (T, error) {
	var zero T
	out, err := c.core.update(ctx, id, func(rec any) (any, error) {
		typed, ok := rec.(T)
		if !ok {
			return nil, fmt.Errorf("%w: a record of type %T", errInvalid, rec)
		}
		err := fn(&typed)
		return typed, err
	})
	if err != nil {
		return zero, err
	}
	return out.(T), nil
}

// Get gives the record of an id, ErrNotFound if there is none or its time is past. One round trip.
func (c *Collection[T]) Get(ctx context.Context, id string) (T, error) {
	out, err := c.GetMany(ctx, []string{id})
	if err != nil {
		var zero T
		return zero, err
	}
	return out[0].Record, out[0].Err
}

// GetMany gives the records of ids, aligned with them; a missing one has ErrNotFound in its place. One round trip per 200
// where the store reads many keys at once.
func (c *Collection[T]) GetMany(ctx context.Context, ids []string) ([]index.Result[T], error) {
	raw, err := c.GetEncoded(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]index.Result[T], len(raw))
	for i, r := range raw {
		if r.Err != nil {
			out[i].Err = r.Err
			continue
		}
		out[i].Record, err = c.decode(ids[i], r.Record)
		out[i].Err = c.core.fail("get", ids[i], "", err)
	}
	return out, nil
}

// Find gives the records that have the value, or one of the values, of an index, in no order, each once. It reads the lists
// and then the records, and gives a record only if the record itself says that it has the value. A record that has it
// throughout the query is found; one that gets or loses it meanwhile may be found or not.
//
// After a loss of data the sequence ends with ErrSuspect behind the records: they are right, others may be missing.
// index.ErrNotReady while an index is being built.
//
// Cost: for each value one round trip for its lists and one per 200 records, where the store reads many keys at once; at
// most Options.ReadRepairs dead entries are removed on the way.
func (c *Collection[T]) Find(ctx context.Context, cond index.Condition[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		name, values, err := c.entity.Exact(cond)
		if err != nil {
			yield(zero, err)
			return
		}
		for f, err := range c.core.find(ctx, name, values) {
			var rec T
			if err == nil {
				rec, err = c.decode(f.id, f.body)
			}
			if err != nil {
				yield(zero, c.core.fail("find", f.id, name, err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// One gives the record that holds a value of a unique index, ErrNotFound if there is none; ErrSuspect instead after a loss
// of data. Two round trips.
func (c *Collection[T]) One(ctx context.Context, k index.Key[T]) (T, error) {
	var zero T
	name, values, err := c.entity.Exact(k)
	if err != nil {
		return zero, err
	}
	f, err := c.core.one(ctx, name, values)
	if err != nil {
		return zero, err
	}
	rec, err := c.decode(f.id, f.body)
	return rec, c.core.fail("one", f.id, name, err)
}

// Count counts the records that Find would give. Lists hold dead entries too, so it reads every record and costs what Find
// costs; the number is one of no single instant while others write.
func (c *Collection[T]) Count(ctx context.Context, cond index.Condition[T]) (int64, error) {
	name, values, err := c.entity.Exact(cond)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, err := range c.core.find(ctx, name, values) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (c *Collection[T]) decode(id string, raw []byte) (T, error) {
	rec, err := c.core.entity.DecodeOf(id, raw)
	if err != nil {
		var zero T
		return zero, err
	}
	return rec.(T), nil
}
