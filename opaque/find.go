package opaque

import (
	"context"
	"iter"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/key"
)

// found is one record that a query gives.
type found struct {
	id   string
	body []byte
}

// getRecords gives live records, aligned with ids: nil where there is none, or where it is past its time.
func (c *core) getRecords(ctx context.Context, ids []string) ([]*envelope, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		var err error
		if keys[i], err = c.recordKey(id); err != nil {
			return nil, err
		}
	}
	items, err := c.getMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make([]*envelope, len(ids))
	for i, item := range items {
		if item.Token == "" {
			continue
		}
		env, err := c.envelopeOf(item, ids[i])
		if err != nil {
			return nil, c.fail("get", ids[i], "", err)
		}
		if env.live && !c.past(env) {
			out[i] = env
		}
	}
	return out, nil
}

// past reports a record that is past its time. The store decides when it is gone; until then it is only hidden.
func (c *core) past(env *envelope) bool {
	return !env.expires.IsZero() && !c.o.now().Before(env.expires)
}

// find gives the records that have one of the values: it reads the lists, then the records, and believes the records.
func (c *core) find(ctx context.Context, name string, values []key.Value) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		fail := func(err error) { yield(found{}, c.fail("find", "", name, err)) }
		s, err := c.current(ctx)
		if err != nil {
			fail(err)
			return
		}
		if s.states[name] != stateReady && s.states[name] != stateSuspect {
			fail(&index.NotReadyError{Index: name, State: s.states[name]})
			return
		}
		unique := c.unique(name)
		met := map[string]bool{}
		repairs := max(0, c.o.ReadRepairs)
		for _, v := range values {
			places, err := c.placesAt(s, name, unique, v)
			if err != nil {
				fail(err)
				return
			}
			entries, err := c.entriesAt(ctx, places)
			if err != nil {
				fail(err)
				return
			}
			for from := 0; from < len(entries); from += batchKeys {
				part := entries[from:min(from+batchKeys, len(entries))]
				dead, more, err := c.judgeEntries(ctx, part, met, yield)
				if err != nil {
					fail(err)
					return
				}
				if !more {
					return
				}
				for _, d := range dead[:min(repairs, len(dead))] {
					repairs--
					// Best effort: the answer of the query does not hang on it.
					if _, err := c.clean(ctx, d.place, d.entry); err != nil {
						c.o.Events.left(name, d.entry.id, err)
					}
				}
			}
		}
		if s.suspicious(name) {
			fail(ErrSuspect)
		}
	}
}

// placed is an entry and where it stands.
type placed struct {
	place place
	entry entry
}

func (c *core) placesAt(s *schema, name string, unique bool, v key.Value) ([]place, error) {
	if unique {
		p, err := c.place(s, name, true, v)
		return []place{p}, err
	}
	return c.lists(s, name, v)
}

// entriesAt reads lists or claims in one round trip.
func (c *core) entriesAt(ctx context.Context, places []place) ([]placed, error) {
	keys := make([]string, len(places))
	for i, p := range places {
		keys[i] = p.key
	}
	items, err := c.getMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	var out []placed
	for i, item := range items {
		if item.Token == "" || len(item.Value) == 0 {
			continue
		}
		entries, err := entriesOf(places[i], item.Value)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			out = append(out, placed{places[i], e})
		}
	}
	return out, nil
}

func entriesOf(p place, raw []byte) ([]entry, error) {
	if !p.unique {
		return decodeList(raw)
	}
	e, err := decodeClaim(raw)
	return []entry{e}, err
}

// judgeEntries loads the records of entries and gives those that have the value, each once. It returns the entries that
// look dead, and whether the query goes on.
func (c *core) judgeEntries(
	ctx context.Context, entries []placed, met map[string]bool, yield func(found, error) bool,
) (dead []placed, more bool, err error) {
	ids := make([]string, 0, len(entries))
	at := make(map[string]int, len(entries))
	for _, e := range entries {
		if _, ok := at[e.entry.id]; !ok {
			at[e.entry.id] = len(ids)
			ids = append(ids, e.entry.id)
		}
	}
	if len(ids) == 0 {
		return nil, true, nil
	}
	envs, err := c.getRecords(ctx, ids)
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		env := envs[at[e.entry.id]]
		if env == nil || !env.carries(e.place.body, e.entry.wid) {
			if !c.young(e.entry.wid) {
				dead = append(dead, e)
			}
			// The entry is of another write; the record may have the value all the same.
			if env == nil || !env.has(e.place.body) && c.keeps(checkOnRead) {
				continue
			}
		}
		if met[e.entry.id] {
			continue
		}
		met[e.entry.id] = true
		if !yield(found{e.entry.id, env.body}, nil) {
			return nil, false, nil
		}
	}
	return dead, true, nil
}

// one gives the record that holds a unique value.
func (c *core) one(ctx context.Context, name string, values []key.Value) (found, error) {
	// Between the two reads the value may pass from one record to another; a second look finds the new holder.
	for range 2 {
		for f, err := range c.find(ctx, name, values) {
			return f, err
		}
	}
	return found{}, c.fail("one", "", name, ErrNotFound)
}

func (c *core) unique(name string) bool {
	for _, d := range c.entity.Definitions() {
		if d.Name == name {
			return d.Unique
		}
	}
	return false
}
