package index

import (
	"bytes"
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

// Update lets fn change a record, and writes it if nobody else has written it meanwhile; else it starts again with the new
// state, so fn may run several times. It returns the record as written. The record's lifetime goes on as it was, unless an
// option gives it another. fn must not change the id (ErrInvalid); its error ends the update, with nothing written.
//
// What fn sees first may be what the collection has written itself a while ago (OpenOptions.RecordCacheBytes). It is written
// only if that is what is stored, byte by byte, and an error of fn counts only for a state that was read during the call.
//
// Errors: ErrNotFound, ErrContended after many rounds, otherwise as Put. With IfToken a state other than the token's is
// ErrChanged at once. Cost: one round trip for a record of up to 4 KiB that this collection wrote lately and nobody else
// since, else two, and one more for each write of others that comes between; whether or not index values change.
func (c *Collection[T]) Update(ctx context.Context, id string, fn func(*T) error, o ...WriteOption) (T, error) {
	var zero T
	const op = "update"
	var opts writeOptions
	for _, set := range o {
		set(&opts)
	}
	u := &updating[T]{c: c, id: id, fn: fn, writeID: newWriteID(), options: append([]WriteOption{KeepLifetime()}, o...)}
	if !opts.hasToken {
		if rec, done, err := u.fromMemory(ctx); done {
			return rec, err
		}
	}
	for round := 1; round <= maxRounds; round++ {
		if round > 2 {
			if err := c.run.Retry().Pause(ctx, min(round-2, maxContentionPause)); err != nil {
				return zero, c.fail(op, id, "", err)
			}
			u.found = nil // from before the pause: somebody who does not pause has written since
		}
		if u.found == nil {
			l, err := c.load(ctx, id, false)
			if err != nil {
				return zero, c.fail(op, id, "", err)
			}
			u.found = &l
			u.shared = u.shared || u.known != nil && string(u.known) != l.Value
		}
		condition, entries, err := c.stateOf(id, *u.found)
		if err != nil {
			return zero, c.fail(op, id, "", err)
		}
		if opts.hasToken && newToken(condition, entries) != opts.token {
			return zero, c.fail(op, id, "", ErrChanged)
		}
		w, rec, err := u.plan([]byte(u.found.Value))
		if err != nil {
			return zero, err
		}
		err = u.write(ctx, &w, condition, entries)
		switch {
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

// updating is an Update on its way.
type updating[T any] struct {
	c       *Collection[T]
	id      string
	fn      func(*T) error
	writeID string
	options []WriteOption
	found   *lua.Loaded // the state that the next round begins with, nil to read it
	known   []byte      // what is remembered of a record that others write too
	shared  bool        // others have written it since
}

// fromMemory tries with what the collection remembers. done is false where that is nothing, or no longer true, or where fn
// will not have it: whether that is so of the record, only the stored one tells. A record that was found to be written by
// others too is read, until it is found as it was left.
func (u *updating[T]) fromMemory(ctx context.Context) (rec T, done bool, err error) {
	m, ok := u.c.records.take(u.id)
	if !ok {
		return rec, false, nil
	}
	if m.shared {
		u.known = m.value
		return rec, false, nil
	}
	entries, err := plan.Split(m.entries)
	if err != nil {
		return rec, false, nil //nolint:nilerr // what is stored tells
	}
	w, rec, err := u.plan(bytes.Clone(m.value)) // a codec may keep or change what it is given
	if err != nil {
		return rec, false, nil //nolint:nilerr // as above
	}
	err = u.write(ctx, &w, m.condition(), entries)
	if errors.Is(err, ErrChanged) {
		u.shared = true
		return rec, false, nil
	}
	if err != nil {
		var zero T
		return zero, true, err
	}
	return rec, true, nil
}

// plan makes the write of a state that fn has changed.
func (u *updating[T]) plan(value []byte) (w write, rec T, err error) {
	if rec, err = u.c.decode(u.id, value); err == nil {
		err = u.fn(&rec)
	}
	if err != nil {
		return w, rec, u.c.fail("update", u.id, "", err)
	}
	w = u.c.prepare("update", lua.Replace, rec, u.options)
	if w.err == nil && w.id != u.id {
		w.err = u.c.fail("update", u.id, "", fmt.Errorf("%w: the update changed the id", ErrInvalid))
	}
	return w, rec, w.err
}

// write sends the write of a state, and keeps what there is instead if it is another one: ErrChanged.
func (u *updating[T]) write(ctx context.Context, w *write, condition string, entries []plan.Token) error {
	w.writeID, w.condition, w.assumed, w.token, w.shared = u.writeID, condition, entries, true, u.shared
	err := u.c.submit(ctx, w)
	u.found = nil
	if errors.Is(err, ErrChanged) {
		u.found = w.found
	}
	return err
}

// Edit makes a function over M one that Update takes where the record type is itself a pointer, as with protobuf.
func Edit[M any](fn func(*M) error) func(**M) error {
	return func(p **M) error { return fn(*p) }
}
