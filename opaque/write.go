package opaque

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/index"
)

// mode says in which cases a write happens.
type mode int

const (
	put     mode = iota // always
	create              // only if there is no record
	replace             // only if there is one
)

// maker gives the state that a record shall have: old is what it is now, nil if there is none.
type maker func(s *schema, old *envelope) (state, error)

// write makes attempts until one is decided.
func (c *core) write(ctx context.Context, op, id string, m mode, make maker) error {
	if c.o.ReadOnly {
		return index.ErrReadOnly
	}
	k, err := c.recordKey(id)
	if err != nil {
		return err
	}
	first := c.newWriteID()
	for n, waits := 0, 0; n < c.o.Attempts; n++ {
		a := &attempt{c: c, op: op, id: id, key: k, wid: c.newWriteID()}
		if !c.keeps(freshWriteID) {
			a.wid = first
		}
		err := a.start(ctx, m, make)
		switch {
		case errors.Is(err, errWait):
			// Ends when the other write ends or has got old.
			n, waits = n-1, waits+1
			err = c.pause(ctx, 8)
		case errors.Is(err, errAgain):
			c.o.Events.retry(op, id, "")
			err = c.pause(ctx, n+1)
		default:
			return err
		}
		if err != nil {
			return err
		}
	}
	return tooMany(c.o.Attempts)
}

// start reads the record, or reserves its key, and runs the attempt.
func (a *attempt) start(ctx context.Context, m mode, make maker) error {
	c := a.c
	var err error
	if a.s, err = c.current(ctx); err != nil {
		return err
	}
	if m != create {
		if a.base, a.token, err = c.load(ctx, a.key, a.id); err != nil {
			return err
		}
		if m == replace && (a.base == nil || !a.base.live) {
			return ErrNotFound
		}
	}
	var to state
	if a.base == nil || !a.base.live {
		pending := a.base
		if to, err = make(a.s, nil); err != nil {
			return err
		}
		if err = a.checkNew(to); err != nil {
			return err
		}
		if pending != nil {
			return a.push(ctx, pending, a.token)
		}
		if err = a.reserve(ctx); err != nil {
			if m == put && errors.Is(err, ErrExists) {
				err = errAgain
			}
			return err
		}
	} else if to, err = make(a.s, a.base); err != nil {
		return err
	}
	// The token is in hand: from here on only a declaration that was in force after it was read may commit with it.
	if now, err := c.current(ctx); err != nil || now.generation != a.s.generation {
		if err == nil {
			err = errAgain
		}
		return a.give(ctx, err)
	}
	return a.run(ctx, to)
}

// checkNew refuses what the store does not take before the key is reserved.
func (a *attempt) checkNew(to state) error {
	a.base = &envelope{}
	return a.c.fits(a.next(to))
}

// reserve takes the primary key with a pending record.
func (a *attempt) reserve(ctx context.Context) error {
	c := a.c
	a.base = &envelope{
		rev: a.wid, last: a.wid, generation: a.s.generation, id: a.id, expires: c.o.now().Add(c.o.PendingLifetime).Truncate(time.Millisecond),
	}
	if !c.keeps(recordFirst) {
		return nil
	}
	var err error
	a.token, err = c.add(ctx, a.key, a.base.encode(), a.base.expires)
	if err == nil || settled(err) && !errors.Is(err, ErrExists) {
		return err
	}
	lost := !errors.Is(err, ErrExists)
	env, t, err := c.load(ctx, a.key, a.id)
	switch {
	case err != nil:
		return err
	case env == nil:
		// Gone again, or the reservation may still arrive. It expires then, like any that nobody finishes.
		return errAgain
	case env.live:
		return ErrExists
	case lost && env.last == a.wid:
		a.token = t
		return nil
	default:
		return a.push(ctx, env, t)
	}
}

// push removes the pending record of a create that has got old, so that the next attempt finds the key free.
func (a *attempt) push(ctx context.Context, env *envelope, t Token) error {
	if a.c.young(env.last) {
		return errWait
	}
	err := a.c.remove(ctx, a.key, t)
	if err == nil || moved(err) || !settled(err) {
		return errAgain
	}
	return err
}

// delete removes a record and then its entries. A record that is not there is no error.
func (c *core) delete(ctx context.Context, id string) (deleted bool, err error) {
	if c.o.ReadOnly {
		return false, index.ErrReadOnly
	}
	k, err := c.recordKey(id)
	if err != nil {
		return false, err
	}
	if _, err := c.current(ctx); err != nil {
		return false, err
	}
	var lost *envelope // the state that a delete of unknown outcome was about
	var cause error
	for n := range c.o.Attempts {
		if n > 0 {
			c.o.Events.retry("delete", id, "")
			if err := c.pause(ctx, n); err != nil {
				return false, err
			}
		}
		env, t, err := c.load(ctx, k, id)
		unknown := func() (bool, error) {
			return false, &UnknownError{ID: id, WriteID: lost.last, Err: cause}
		}
		switch {
		case err != nil && lost != nil:
			return unknown()
		case err != nil:
			return false, err
		case lost != nil && env == nil:
			c.removeMarks(ctx, id, lost.marks, nil)
			return true, nil
		case env == nil || !env.live && lost == nil:
			return false, nil
		case lost != nil && (!env.live || env.last != lost.last):
			// Written anew since: deleting that too would be one delete too many.
			c.removeMarks(ctx, id, lost.marks, env)
			return unknown()
		}
		if c.keeps(deleteByToken) {
			err = c.remove(ctx, k, t)
		} else {
			err = c.removeBlindly(ctx, k)
		}
		switch {
		case err == nil:
			c.removeMarks(ctx, id, env.marks, nil)
			return true, nil
		case moved(err):
		case settled(err):
			return false, err
		default:
			lost, cause = env, err
		}
	}
	if lost != nil {
		return false, &UnknownError{ID: id, WriteID: lost.last, Err: cause}
	}
	return false, tooMany(c.o.Attempts)
}

// expiry is when a record that is written now expires.
func (c *core) expiry() time.Time {
	d := c.entity.Lifetime()
	if d == index.Forever {
		return time.Time{}
	}
	return c.o.now().Add(d).Truncate(time.Millisecond)
}

// making is the state that a record asks for.
func (c *core) making(s *schema, id string, rec any, expires time.Time) (state, error) {
	got, err := c.entity.IDOf(rec)
	if err != nil {
		return state{}, err
	}
	if got != id {
		return state{}, fmt.Errorf("%w: the write changed the id", errInvalid)
	}
	body, err := c.entity.EncodeOf(rec)
	if err != nil {
		return state{}, err
	}
	places, err := c.placesOf(s, id, rec)
	return state{body, places, expires}, err
}

// store writes a record as it is.
func (c *core) store(ctx context.Context, op string, m mode, rec any) error {
	id, err := c.entity.IDOf(rec)
	if err == nil {
		err = c.write(ctx, op, id, m, func(s *schema, _ *envelope) (state, error) {
			return c.making(s, id, rec, c.expiry())
		})
	}
	return c.fail(op, id, "", err)
}

// update changes a record as fn says. Its lifetime goes on.
func (c *core) update(ctx context.Context, id string, fn func(rec any) (any, error)) (any, error) {
	var rec any
	err := c.write(ctx, "update", id, replace, func(s *schema, old *envelope) (state, error) {
		before, err := c.entity.DecodeOf(id, old.body)
		if err != nil {
			return state{}, err
		}
		if rec, err = fn(before); err != nil {
			return state{}, err
		}
		return c.making(s, id, rec, old.expires)
	})
	return rec, c.fail("update", id, "", err)
}
