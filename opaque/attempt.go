package opaque

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/index"
)

// attempt is one try to bring a record from one state into the next: one write id, bound to one token of the record, which
// was read before any entry was written.
type attempt struct {
	c       *core
	s       *schema
	op      string
	id, key string
	wid     WriteID
	base    *envelope // the state that the token names: pending for a create
	token   Token
	added   []place // where entries of this attempt may stand
}

// state is what a write wants a record to be.
type state struct {
	body    []byte
	places  []place
	expires time.Time
}

// next is the envelope that the attempt commits: entries that the record had keep the write that put them there.
func (a *attempt) next(to state) *envelope {
	env := &envelope{
		live: true, rev: a.wid, last: a.wid, generation: a.s.generation, expires: to.expires, id: a.id, body: to.body,
		marks: make([]mark, 0, len(to.places)),
	}
	for _, p := range to.places {
		m := mark{p.body, p.unique, a.wid}
		if old, ok := a.base.mark(p.body); ok && a.base.live {
			m = old
		}
		env.marks = append(env.marks, m)
	}
	return env
}

// fits refuses a record that the store has no room for, before anything is written.
func (c *core) fits(env *envelope) error {
	size := len(env.encode())
	if limit := c.limits.MaxValue; limit > 0 && size > limit {
		return &index.TooLargeError{What: "bytes of a stored record", Size: size, Limit: limit}
	}
	return nil
}

// run brings the attempt to its end: entries, commit, removal of what the new state does not need. errAgain means that
// nothing has happened and another attempt may.
func (a *attempt) run(ctx context.Context, to state) error {
	c := a.c
	env := a.next(to)
	if err := c.fits(env); err != nil {
		return a.give(ctx, err)
	}
	if c.keeps(addBefore) {
		if err := a.enter(ctx, env, to.places); err != nil {
			return a.give(ctx, err)
		}
		env = a.next(to) // a fence of the own record may have moved the base, not its entries
	}
	if !c.keeps(removeAfter) {
		a.removeOld(ctx, env)
	}
	token := a.token
	if !c.keeps(commitByToken) {
		if _, t, err := c.load(ctx, a.key, a.id); err == nil && t != "" {
			token = t
		}
	}
	err := a.commit(ctx, env, token)
	switch {
	case err == nil:
	case moved(err):
		return a.give(ctx, errAgain)
	case settled(err):
		return a.give(ctx, err)
	default:
		if err := a.settle(ctx, err); err != nil {
			return err
		}
	}
	if !c.keeps(addBefore) {
		if err := a.enter(ctx, env, to.places); err != nil {
			return err
		}
	}
	if c.keeps(removeAfter) {
		a.removeOld(ctx, env)
	}
	return nil
}

// commit makes the new state the record, if nobody has written the record since the attempt read it.
func (a *attempt) commit(ctx context.Context, env *envelope, token Token) (err error) {
	if !a.base.live && !a.c.keeps(recordFirst) {
		_, err = a.c.add(ctx, a.key, env.encode(), env.expires)
	} else {
		_, err = a.c.swap(ctx, a.key, env.encode(), env.expires, token)
	}
	return err
}

// enter writes the entries that the record does not have yet: claims first, so that a duplicate is found early.
func (a *attempt) enter(ctx context.Context, env *envelope, places []place) error {
	for _, p := range places {
		if !env.carries(p.body, a.wid) {
			continue
		}
		if p.unique && a.s.suspicious(p.index) && a.c.o.Suspect == RefuseUnique {
			return &index.Error{Op: a.op, Entity: a.c.entity.String(), ID: a.id, Index: p.index, Err: ErrSuspect}
		}
	}
	for _, p := range places {
		if !env.carries(p.body, a.wid) {
			continue
		}
		a.added = append(a.added, p)
		var err error
		if p.unique {
			if err = a.claim(ctx, p); err == nil && a.s.suspicious(p.index) {
				err = a.c.searchHolder(ctx, a.s, a.id, p)
			}
		} else {
			err = a.c.appendEntry(ctx, p, a.id, a.wid)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// give ends an attempt that has certainly not committed and never will, because its swap was not sent or has failed: it
// takes back what it wrote. What it cannot take back does no harm. It returns why.
func (a *attempt) give(ctx context.Context, why error) error {
	if !a.base.live && a.c.keeps(recordFirst) && !a.withdraw(ctx) {
		return why
	}
	a.removeAdded(ctx)
	return why
}

// withdraw removes the pending record of a create and reports whether it is certainly gone.
func (a *attempt) withdraw(ctx context.Context) bool {
	token := a.token
	for n := range a.c.o.Attempts {
		err := a.c.remove(ctx, a.key, token)
		switch {
		case err == nil, errors.Is(err, ErrNotFound):
			return true
		case settled(err) && !moved(err):
			return false
		}
		if n > 0 && a.c.pause(ctx, n) != nil {
			return false
		}
		env, t, err := a.c.load(ctx, a.key, a.id)
		switch {
		case err != nil:
			return false
		case env == nil || env.live || env.last != a.wid:
			return true
		}
		token = t
	}
	return false
}

// removeAdded takes back the entries that the attempt may have written. Its write id must be dead.
func (a *attempt) removeAdded(ctx context.Context) {
	for _, p := range a.added {
		a.c.dropEntry(ctx, p, entry{a.id, a.wid})
	}
}

// removeOld removes the entries that the state before had and this one does not.
func (a *attempt) removeOld(ctx context.Context, now *envelope) {
	if a.base.live {
		a.c.removeMarks(ctx, a.id, a.base.marks, now)
	}
}

// removeMarks removes the entries of a state that is past, except those that the record still needs.
func (c *core) removeMarks(ctx context.Context, id string, marks []mark, now *envelope) {
	for _, m := range marks {
		if now != nil && now.carries(m.body, m.wid) {
			continue
		}
		p, err := c.placeOfMark(m)
		if err != nil {
			c.o.Events.left("", id, err)
			continue
		}
		c.dropEntry(ctx, p, entry{id, m.wid})
	}
}

// dropEntry removes an entry whose write is dead, as well as it can.
func (c *core) dropEntry(ctx context.Context, p place, dead entry) {
	var err error
	if p.unique {
		err = c.release(ctx, p, dead)
	} else {
		err = c.removeEntry(ctx, p, dead)
	}
	if err != nil {
		c.o.Events.left(p.index, dead.id, err)
	}
}

// settle finds out what became of a commit whose reply was lost. Nil: it has happened. errAgain: it has not and never will.
// Otherwise ErrUnknown: it may have happened, or may happen yet if the store cannot be reached now.
func (a *attempt) settle(ctx context.Context, cause error) error {
	c := a.c
	unknown := &UnknownError{ID: a.id, WriteID: a.wid, Err: cause}
	for n := range c.o.Attempts {
		if n > 0 && c.pause(ctx, n) != nil {
			return unknown
		}
		env, t, err := c.load(ctx, a.key, a.id)
		if err != nil {
			// Whatever was written is either needed or dangling: it stays.
			return unknown
		}
		switch {
		case env != nil && env.committed(a.wid):
			return nil
		case !a.base.live && env != nil && !env.live && env.last == a.wid:
			// Not decided: the swap may still arrive. Without the pending record it finds nothing to replace.
			if !c.keeps(fenceUnknown) {
				a.removeAdded(ctx)
				return errAgain
			}
			if err = c.remove(ctx, a.key, t); err != nil {
				continue
			}
			a.removeAdded(ctx)
			return errAgain
		case a.base.live && env != nil && env.live && env.rev == a.base.rev:
			if c.keeps(fenceUnknown) {
				if _, _, err = c.fence(ctx, a.key, env, t); err != nil {
					continue
				}
			}
			a.removeAdded(ctx)
			return errAgain
		case a.base.live && env != nil && env.live && env.last == a.base.last:
			// Others have fenced the record since, and nobody has committed.
			a.removeAdded(ctx)
			return errAgain
		}
		// The record has moved on: this write is dead. Whether it was there for a while cannot be told.
		a.removeAdded(ctx)
		if a.base.live {
			c.removeMarks(ctx, a.id, a.base.marks, env)
		}
		if !c.keeps(onceOnly) {
			return errAgain
		}
		return unknown
	}
	return unknown
}

// tooMany is the end of a call that met others too often.
func tooMany(n int) error {
	return fmt.Errorf("%w: %d attempts", index.ErrContended, n)
}

// valueOf is the value of an entry as it stands in its key.
func valueOf(body string) string {
	_, value, _ := strings.Cut(body, ":")
	return value
}
