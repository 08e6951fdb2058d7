package opaque

import (
	"context"
	"errors"
	"iter"

	"github.com/lockstep-go/lockstep/key"
)

// eachID gives the ids that the all-ids index knows, those that the store can list, and those of extra, each once.
func (c *core) eachID(ctx context.Context, s *schema, extra iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		met := map[string]bool{}
		give := func(id string) bool {
			if met[id] {
				return true
			}
			met[id] = true
			return yield(id, nil)
		}
		for p, err := range c.idLists(s) {
			if err != nil {
				yield("", err)
				return
			}
			_, entries, err := c.loadList(ctx, p.key)
			if err != nil {
				yield("", err)
				return
			}
			for _, e := range entries {
				if !give(e.id) {
					return
				}
			}
		}
		if extra != nil {
			for id, err := range extra {
				if err != nil {
					yield("", err)
					return
				}
				if !give(id) {
					return
				}
			}
		}
		for k, err := range c.listed(ctx) {
			if err != nil {
				yield("", err)
				return
			}
			if k.Kind != key.KindRecord || k.HasField {
				continue
			}
			id := k.ID
			if k.Digested {
				raw, err := k.Key(c.limits.Keys)
				if err != nil {
					continue
				}
				item, err := c.get(ctx, raw)
				if err != nil {
					if errors.Is(err, ErrNotFound) {
						continue
					}
					yield("", err)
					return
				}
				env, err := decodeEnvelope(item.Value)
				if err != nil {
					continue
				}
				id = env.id
			}
			if !give(id) {
				return
			}
		}
	}
}

// idLists are the buckets of the index of all ids.
func (c *core) idLists(s *schema) iter.Seq2[place, error] {
	return func(yield func(place, error) bool) {
		if c.o.NoIDs {
			return
		}
		for i := range c.o.IDBuckets {
			p, err := c.idPlace(s, i)
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// listed gives the keys of this collection that the store can list, taken apart; none if it cannot.
func (c *core) listed(ctx context.Context) iter.Seq2[key.Parsed, error] {
	return func(yield func(key.Parsed, error) bool) {
		lister, ok := c.kv.(Lister)
		if !ok {
			return
		}
		for k, err := range lister.Keys(ctx, c.space.Prefix()) {
			if err != nil {
				yield(key.Parsed{}, err)
				return
			}
			p, err := c.limits.Keys.Parse(k)
			if err != nil || p.Version != c.space.Version() || !p.Tag.IsZero() {
				continue
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// searchHolder looks through all records for one that has a unique value although no claim said so.
func (c *core) searchHolder(ctx context.Context, s *schema, id string, p place) error {
	for other, err := range c.eachID(ctx, s, nil) {
		if err != nil {
			return err
		}
		if other == id {
			continue
		}
		k, err := c.recordKey(other)
		if err != nil {
			return err
		}
		env, _, err := c.load(ctx, k, other)
		if err != nil {
			return err
		}
		if env != nil && env.has(p.body) {
			return c.duplicate(id, p, other)
		}
	}
	return nil
}
