package opaque

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
)

// core runs the protocol for one entity type, whatever its Go type is.
type core struct {
	kv     KV
	entity index.Untyped
	o      Options
	limits Limits
	space  key.Space
	part   key.Partition

	schema atomic.Pointer[schema]
	lease  atomic.Int64 // until when schema may be trusted, in milliseconds; 0 for not at all
}

// place is where a record wants an entry.
type place struct {
	index  string
	body   string // of the index key, as marks keep it
	key    string
	unique bool
}

// idsIndex is the name of the index of all ids. A declared index cannot have it.
const idsIndex = "_ids"

// placesOf are the entries that a record asks for, unique ones first, in the order of their names: two writers that claim
// several values meet at the first. ErrBadKey if the store takes one of the keys not.
func (c *core) placesOf(s *schema, id string, rec any) ([]place, error) {
	entries, err := c.entity.EntriesOf(rec)
	if err != nil {
		return nil, err
	}
	out := make([]place, 0, len(entries)+1)
	for _, e := range entries {
		p, err := c.placeOf(s, e, id)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if !c.o.NoIDs {
		p, err := c.idPlace(s, bucketOf(id, c.o.IDBuckets))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b place) int {
		switch {
		case a.unique != b.unique && a.unique:
			return -1
		case a.unique != b.unique:
			return 1
		}
		return strings.Compare(a.body, b.body)
	})
	return slices.CompactFunc(out, func(a, b place) bool { return a.body == b.body }), nil
}

func (c *core) placeOf(s *schema, e plan.Entry, id string) (place, error) {
	v := e.Value
	if n := c.o.Buckets[e.Index]; n > 1 && !e.Unique {
		v = key.Pair(v, key.Int(int64(bucketOf(id, n))))
	}
	return c.place(s, e.Index, e.Unique, v)
}

// idPlace is one bucket of the index of all ids.
func (c *core) idPlace(s *schema, bucket int) (place, error) {
	return c.place(s, idsIndex, false, key.Int(int64(bucket)))
}

func (c *core) place(s *schema, name string, unique bool, v key.Value) (place, error) {
	body, err := c.space.EntryBody(name, s.generations[name], v)
	if err != nil {
		return place{}, badKey(err)
	}
	p := place{index: name, body: body, unique: unique}
	if p.key, err = c.part.Entry(body); err != nil {
		return place{}, badKey(err)
	}
	return p, nil
}

// placeOfMark is where an entry stands that a record remembers, whatever is declared today.
func (c *core) placeOfMark(m mark) (place, error) {
	name, _, _ := strings.Cut(m.body, ".")
	k, err := c.part.Entry(m.body)
	if err != nil {
		return place{}, badKey(err)
	}
	return place{index: name, body: m.body, key: k, unique: m.unique}, nil
}

// lists are the lists of one value of a list index, all its buckets.
func (c *core) lists(s *schema, name string, v key.Value) ([]place, error) {
	n := c.o.Buckets[name]
	if n <= 1 {
		p, err := c.place(s, name, false, v)
		return []place{p}, err
	}
	out := make([]place, n)
	for i := range out {
		var err error
		if out[i], err = c.place(s, name, false, key.Pair(v, key.Int(int64(i)))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func bucketOf(id string, n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return int(h.Sum32() % uint32(n))
}

// recordKey is the key of an id.
func (c *core) recordKey(id string) (string, error) {
	if id == "" {
		return "", fmt.Errorf("%w: the id is empty", errInvalid)
	}
	k, err := c.part.Record(id)
	if err != nil {
		return "", badKey(err)
	}
	return k, nil
}

func badKey(err error) error { return fmt.Errorf("%w: %w", ErrBadKey, err) }

// get reads a key. An item without a token breaks the contract of a store and is refused: nothing could be written by it.
func (c *core) get(ctx context.Context, k string) (Item, error) {
	item, err := c.kv.Get(ctx, k)
	if err == nil && item.Token == "" {
		err = ErrNoToken
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		c.distrust()
	}
	return item, err
}

// getMany reads keys, aligned with them; an item without a token is absent.
func (c *core) getMany(ctx context.Context, keys []string) ([]Item, error) {
	if batch, ok := c.kv.(BatchGetter); ok && len(keys) > 1 {
		var all []Item
		for from := 0; from < len(keys); from += batchKeys {
			items, err := batch.GetMany(ctx, keys[from:min(from+batchKeys, len(keys))])
			if err != nil {
				c.distrust()
				return nil, err
			}
			all = append(all, items...)
		}
		return all, nil
	}
	out := make([]Item, len(keys))
	for i, k := range keys {
		item, err := c.get(ctx, k)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		default:
			out[i] = item
		}
	}
	return out, nil
}

// batchKeys bounds one read of many keys.
const batchKeys = 200

// add, swap and remove are the writes of the store. An error that says nothing certain makes the client look at the state
// of the store again.
func (c *core) add(ctx context.Context, k string, v []byte, expires time.Time) (Token, error) {
	t, err := c.kv.Add(ctx, k, v, expires)
	return t, c.checked(t, err)
}

func (c *core) swap(ctx context.Context, k string, v []byte, expires time.Time, t Token) (Token, error) {
	if t == "" {
		return "", ErrNoToken
	}
	t, err := c.kv.Swap(ctx, k, v, expires, t)
	return t, c.checked(t, err)
}

func (c *core) remove(ctx context.Context, k string, t Token) error {
	if t == "" {
		return ErrNoToken
	}
	err := c.kv.Delete(ctx, k, t)
	return c.checked("-", err)
}

func (c *core) checked(t Token, err error) error {
	switch {
	case err == nil && t == "":
		// It was written, but the token that the next step needs is missing.
		return fmt.Errorf("%w: the store gave an empty token", ErrUnknown)
	case err != nil && (!settled(err) || errors.Is(err, ErrUnavailable)):
		c.distrust()
	}
	return err
}

// load reads a record. Nil without an error if there is none.
func (c *core) load(ctx context.Context, k, id string) (*envelope, Token, error) {
	item, err := c.get(ctx, k)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	}
	env, err := c.envelopeOf(item, id)
	return env, item.Token, err
}

// envelopeOf decodes what is stored for an id.
func (c *core) envelopeOf(item Item, id string) (*envelope, error) {
	if len(item.Value) == 0 {
		return nil, foreign("a record")
	}
	env, err := decodeEnvelope(item.Value)
	if err == nil && env.id != id {
		err = foreign("the record of this id")
	}
	return env, err
}

// fence writes a record again as it is, so that no write that read it before can commit any more. Its lifetime goes on.
func (c *core) fence(ctx context.Context, k string, env *envelope, t Token) (*envelope, Token, error) {
	next := *env
	next.rev = c.newWriteID()
	expires := next.expires
	if !c.keeps(keepExpiry) {
		expires = time.Time{}
	}
	t, err := c.swap(ctx, k, next.encode(), expires, t)
	return &next, t, err
}

func (c *core) newWriteID() WriteID { return newWriteID(c.o.now()) }

// young reports whether a write looks as if it were still under way. A clock far ahead counts as no reason to wait.
func (c *core) young(w WriteID) bool {
	age := c.o.now().Sub(w.started())
	return age < c.o.Grace && age > -c.o.Grace
}

// waiter waits for a duration or until ctx ends.
type waiter func(ctx context.Context, d time.Duration) error

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// pause waits before attempt n, at random up to a bound that doubles.
func (c *core) pause(ctx context.Context, n int) error {
	bound := min(100*time.Microsecond<<min(n, 16), longestPause)
	return c.o.wait(ctx, time.Duration(rand.Int64N(int64(bound)))) //nolint:gosec // jitter
}

// fail wraps an error with what it is about.
func (c *core) fail(op, id, ix string, err error) error {
	if err == nil {
		return nil
	}
	var known *index.Error
	var conflict *index.ConflictError
	switch {
	case errors.As(err, &conflict):
		return err
	case errors.As(err, &known):
		if known.ID == "" {
			return &index.Error{Op: op, Entity: known.Entity, ID: id, Index: known.Index, Err: known.Err}
		}
		return err
	}
	return &index.Error{Op: op, Entity: c.entity.String(), ID: id, Index: ix, Err: err}
}
