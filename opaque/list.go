package opaque

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/index"
)

// appendEntry puts an entry into a list, keeping what is there. When it returns nil, the entry is in the list: an append
// whose reply was lost has been looked for.
func (c *core) appendEntry(ctx context.Context, p place, id string, w WriteID) error {
	cleaned := false
	for n := range c.o.Attempts {
		if n > 0 {
			c.o.Events.retry("append", id, p.index)
			if err := c.pause(ctx, n); err != nil {
				return err
			}
		}
		item, entries, err := c.loadList(ctx, p.key)
		if err != nil {
			return err
		}
		if slices.Contains(entries, entry{id, w}) {
			return nil
		}
		if !c.keeps(appendOnly) {
			entries = slices.DeleteFunc(entries, func(e entry) bool { return e.id == id })
		}
		entries = append(entries, entry{id, w})
		raw := encodeList(entries)
		if err := c.bounded(p, len(entries), len(raw)); err != nil {
			if cleaned {
				return err
			}
			// Dead entries count too: they go before anybody is refused.
			cleaned = true
			for _, e := range entries[:len(entries)-1] {
				if !c.young(e.wid) {
					if _, err := c.clean(ctx, p, e); err != nil {
						return err
					}
				}
			}
			continue
		}
		if item.Token == "" {
			_, err = c.add(ctx, p.key, raw, time.Time{})
		} else {
			_, err = c.swap(ctx, p.key, raw, time.Time{}, item.Token)
		}
		switch {
		case err == nil:
			c.o.Events.grown(p.index, len(entries), len(raw))
			return nil
		case settled(err) && !moved(err):
			return err
		case !settled(err) && !c.keeps(confirmAppend):
			return nil
		}
	}
	return index.ErrContended
}

func (c *core) bounded(p place, entries, bytes int) error {
	if entries > c.o.MaxEntries {
		return &index.TooLargeError{What: "entries under one value of index " + p.index, Size: entries, Limit: c.o.MaxEntries}
	}
	if bytes > c.o.MaxListBytes {
		return &index.TooLargeError{What: "bytes of entries under one value of index " + p.index, Size: bytes, Limit: c.o.MaxListBytes}
	}
	return nil
}

// removeEntry takes an entry out of a list: the one of exactly this write.
func (c *core) removeEntry(ctx context.Context, p place, dead entry) error {
	for n := range c.o.Attempts {
		if n > 0 {
			c.o.Events.retry("remove", dead.id, p.index)
			if err := c.pause(ctx, n); err != nil {
				return err
			}
		}
		item, entries, err := c.loadList(ctx, p.key)
		if err != nil {
			return err
		}
		rest := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
			return e == dead || e.id == dead.id && !c.keeps(removeExactly)
		})
		switch {
		case len(rest) == len(entries):
			return nil
		case len(rest) == 0:
			// Not a swap to an empty list: a store without memory refuses swaps but not deletes.
			err = c.remove(ctx, p.key, item.Token)
		default:
			_, err = c.swap(ctx, p.key, encodeList(rest), time.Time{}, item.Token)
		}
		if err == nil || settled(err) && !moved(err) {
			return err
		}
	}
	return index.ErrContended
}

// loadList reads a list. An absent one is empty and has no token.
func (c *core) loadList(ctx context.Context, k string) (Item, []entry, error) {
	item, err := c.get(ctx, k)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return Item{}, nil, err
	}
	entries, err := decodeList(item.Value)
	return item, entries, err
}

// clean removes a list entry or a claim that nothing needs, of whatever writer: first it makes sure that the entry's
// write can never commit. It reports whether the entry is gone for certain; an entry that a live record needs stays.
//
// A pending record of the entry's own write is deleted, whatever its age: the caller decides what is old enough.
func (c *core) clean(ctx context.Context, p place, e entry) (gone bool, err error) {
	k, err := c.recordKey(e.id)
	if err != nil {
		return false, err
	}
	env, t, err := c.load(ctx, k, e.id)
	switch {
	case err != nil:
		return false, err
	case env == nil:
	case env.carries(p.body, e.wid):
		return false, nil
	case env.live:
		if c.keeps(fenceBeforeCleaning) {
			if _, _, err = c.fence(ctx, k, env, t); err != nil {
				return false, ignoreMoved(err)
			}
		}
	case env.last == e.wid && c.keeps(fencePending):
		if err = c.remove(ctx, k, t); err != nil && !errors.Is(err, ErrNotFound) {
			return false, ignoreMoved(err)
		}
	}
	if p.unique {
		err = c.release(ctx, p, e)
	} else {
		err = c.removeEntry(ctx, p, e)
	}
	if err != nil {
		return false, err
	}
	c.o.Events.repaired(p.index, e.id)
	return true, nil
}

// ignoreMoved makes an error of a clean that somebody else got in the way of: the entry can wait.
func ignoreMoved(err error) error {
	if moved(err) {
		return nil
	}
	return err
}
