package index

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/gather"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// Snapshot is a record in one state.
type Snapshot[T any] struct {
	Record T
	Token  Token
	// Expires is when the record is due by the reader's clock, zero if it lives for ever.
	Expires time.Time
}

// Read gives a record with the token of its state, for a write with IfToken. ErrNotFound if there is none. One round trip.
func (c *Collection[T]) Read(ctx context.Context, id string) (Snapshot[T], error) {
	snap, err := c.read(ctx, id)
	return snap, c.fail("read", id, "", err)
}

func (c *Collection[T]) read(ctx context.Context, id string) (snap Snapshot[T], err error) {
	l, err := c.load(ctx, id, true)
	if err != nil {
		return snap, err
	}
	condition, entries, err := c.stateOf(id, l)
	if err != nil {
		return snap, err
	}
	snap.Token = newToken(condition, entries)
	if snap.Record, err = c.decode(id, []byte(l.Value)); err != nil {
		return snap, err
	}
	if l.TTL >= 0 {
		snap.Expires = time.Now().Add(l.TTL)
	}
	return snap, nil
}

// reading is one record on its way from the server.
type reading struct {
	id, key string
	ttl     bool
	loaded  lua.Loaded
	err     error
}

// load gives a record as stored, with its row: ErrNotFound if there is none.
func (c *Collection[T]) load(ctx context.Context, id string, ttl bool) (lua.Loaded, error) {
	k, err := c.keyOf(id)
	if err != nil {
		return lua.Loaded{}, err
	}
	r := &reading{id: id, key: k, ttl: ttl}
	if c.reads.Submit(ctx, r, nil) != gather.Ended {
		return lua.Loaded{}, context.Cause(ctx)
	}
	switch {
	case r.err != nil:
		return lua.Loaded{}, r.err
	case r.loaded.Foreign != "":
		return lua.Loaded{}, &KeyTypeError{Key: k, Found: r.loaded.Foreign}
	case !r.loaded.HasValue:
		return lua.Loaded{}, ErrNotFound
	}
	return r.loaded, nil
}

// readAll loads records in one round trip.
func (c *Collection[T]) readAll(ctx context.Context, all []*reading) {
	keys, ids, ttls := make([]string, len(all)), make([]string, len(all)), false
	for i, r := range all {
		keys[i], ids[i] = r.key, r.id
		ttls = ttls || r.ttl
	}
	var loaded []lua.Loaded
	var seq int64
	var err error
	ok := false
	if !ttls {
		loaded, seq, ok = c.run.Look(ctx, c.part.Meta(), c.part.Manifest(), keys, ids)
	}
	if !ok {
		loaded, seq, err = c.run.Read(ctx, c.part.Meta(), c.part.Manifest(), keys, ids, ttls)
	}
	if err == nil {
		c.schema.Load().see(seq) // one of an older life is refused by its epoch anyway
	}
	for i, r := range all {
		if r.err = err; err == nil {
			r.loaded = loaded[i]
		}
	}
}

// stateOf names the state of a loaded record: the condition that it is still in it, by the write id of its row, or by its
// bytes where the row is lost, and the entries that were written with it.
func (c *Collection[T]) stateOf(id string, l lua.Loaded) (condition string, entries []plan.Token, err error) {
	if !l.HasRow {
		entries, err = c.tokensOf(id, l.Value)
		return ifValue(l.Value), entries, err
	}
	row, err := plan.ParseRow(l.Row)
	return lua.IfWriteID(row.WriteID), row.Entries, err
}

// newToken packs a condition and the entries that were written with that state.
func newToken(condition string, entries []plan.Token) Token {
	return Token(condition + plan.Join(entries))
}

// parse unpacks a token.
func (t Token) parse() (condition string, entries []plan.Token, err error) {
	if t == "" {
		return "", nil, fmt.Errorf("%w: empty token", ErrInvalid)
	}
	size := conditionSize[t[0]]
	if size == 0 || len(t) < size {
		return "", nil, fmt.Errorf("%w: not a token of this collection", ErrInvalid)
	}
	entries, err = plan.Split(string(t[size:]))
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return string(t[:size]), entries, nil
}

// Update reads a record, lets fn change it, and writes it if nobody else has written it meanwhile; else it starts again
// with the new state, so fn may run several times. It returns the record as written. The record's lifetime goes on as it
// was, unless an option gives it another. fn must not change the id (ErrInvalid); its error ends the update, with nothing written.
//
// Errors: ErrNotFound, ErrContended after many rounds, otherwise as Put. With IfToken a state other than the token's is
// ErrChanged at once. Cost: two round trips without contention, whether or not index values change.
func (c *Collection[T]) Update(ctx context.Context, id string, fn func(*T) error, o ...WriteOption) (T, error) {
	var zero T
	const op = "update"
	var opts writeOptions
	for _, set := range o {
		set(&opts)
	}
	writeID := newWriteID()
	o = append([]WriteOption{KeepLifetime()}, o...)
	for round := 1; round <= maxRounds; round++ {
		if round > 2 {
			if err := c.run.Retry().Pause(ctx, min(round-2, maxContentionPause)); err != nil {
				return zero, c.fail(op, id, "", err)
			}
		}
		l, err := c.load(ctx, id, false)
		if err != nil {
			return zero, c.fail(op, id, "", err)
		}
		condition, entries, err := c.stateOf(id, l)
		if err != nil {
			return zero, c.fail(op, id, "", err)
		}
		if opts.hasToken && newToken(condition, entries) != opts.token {
			return zero, c.fail(op, id, "", ErrChanged)
		}
		rec, err := c.decode(id, []byte(l.Value))
		if err != nil {
			return zero, c.fail(op, id, "", err)
		}
		if err := fn(&rec); err != nil {
			return zero, c.fail(op, id, "", err)
		}
		w := c.prepare(op, lua.Replace, rec, o)
		if w.err == nil && w.id != id {
			w.err = c.fail(op, id, "", fmt.Errorf("%w: the update changed the id", ErrInvalid))
		}
		w.writeID, w.condition, w.assumed, w.token = writeID, condition, entries, true
		switch err := c.submit(ctx, &w); {
		case err == nil:
			return rec, nil
		case errors.Is(err, ErrChanged) && !opts.hasToken:
			continue
		default:
			return zero, err
		}
	}
	return zero, c.fail(op, id, "", ErrContended)
}

// Edit makes a function over M one that Update takes where the record type is itself a pointer, as with protobuf.
func Edit[M any](fn func(*M) error) func(**M) error {
	return func(p **M) error { return fn(*p) }
}
