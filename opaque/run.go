package opaque

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/index"
)

// verify looks at everything and changes nothing.
func (c *core) verify(ctx context.Context, o RunOptions) (*Report, error) {
	s, err := c.renew(ctx, false)
	if err != nil {
		return nil, c.fail("verify", "", "", err)
	}
	p := newPass(c, s, o)
	err = p.all(ctx)
	p.report.describe(s)
	return p.report, c.fail("verify", "", "", err)
}

// run looks at everything, restores what is missing, removes what is dead, and declares the indexes ready that are.
func (c *core) run(ctx context.Context, o RunOptions) (*Report, error) {
	if c.o.ReadOnly {
		return nil, c.fail("run", "", "", index.ErrReadOnly)
	}
	s, err := c.renew(ctx, false)
	if err == nil {
		err = c.settleOldWriters(ctx, s)
	}
	if err != nil {
		return nil, c.fail("run", "", "", err)
	}
	p := newPass(c, s, o)
	p.fix = true
	if err = p.all(ctx); err == nil {
		s, err = c.finish(ctx, p)
	}
	p.report.describe(s)
	return p.report, c.fail("run", "", "", err)
}

func (r *Report) describe(s *schema) {
	if s == nil {
		return
	}
	r.Lost = s.lost
	for name := range s.states {
		if !s.ready(name) && !s.suspicious(name) {
			r.NotReady = append(r.NotReady, name)
		}
	}
	slices.Sort(r.NotReady)
}

// settleOldWriters waits until no client can be at work any more that does not know an index that is being built: a lease
// and the life of a reservation after the declaration came into force, and as much again as clocks may differ.
func (c *core) settleOldWriters(ctx context.Context, s *schema) error {
	building := false
	for name := range s.states {
		building = building || s.states[name] == stateBuilding
	}
	if !building {
		return nil
	}
	left := s.changed.Add(c.o.Lease + c.o.PendingLifetime + clockSkew).Sub(c.o.now())
	if left <= 0 {
		return nil
	}
	return c.o.wait(ctx, left)
}

// clockSkew is how far the clocks of clients may differ while an index is built. Nothing else depends on clocks.
const clockSkew = 2 * time.Second

// finish declares ready what this pass has made whole, unless the store has lost something meanwhile.
func (c *core) finish(ctx context.Context, p *pass) (*schema, error) {
	conflicts := map[string]bool{}
	for _, f := range p.report.Findings {
		if f.Kind == Conflict {
			conflicts[f.Index] = true
		}
	}
	whole := p.report.Counts[Undecodable] == 0 && p.report.Counts[Missing] == p.report.Fixed[Missing]
	known := p.o.IDs != nil || p.o.Trust
	for n := range c.o.Attempts {
		if n > 0 {
			if err := c.pause(ctx, n); err != nil {
				return nil, err
			}
		}
		s, err := c.renew(ctx, false)
		if err != nil || s.generation != p.s.generation || s.lost != p.s.lost {
			return s, err
		}
		item, err := c.get(ctx, c.space.Catalog())
		if err != nil {
			return s, err
		}
		var d descriptor
		if err := json.Unmarshal(item.Value, &d); err != nil {
			return s, foreign("a descriptor")
		}
		// Records that the all-ids index does not know can only be there after a partial loss, or if it was built late.
		partial := d.Partly || d.Indexes[idsIndex].State == stateBuilding || c.o.NoIDs
		if !whole || partial && !known {
			return s, nil
		}
		changed := false
		for name, st := range d.Indexes {
			if (st.State == stateBuilding || st.State == stateSuspect) && !conflicts[name] {
				st.State, changed = stateReady, true
				d.Indexes[name] = st
			}
		}
		if len(conflicts) == 0 && d.Lost != "" {
			d.Lost, d.Partly, changed = "", false, true
		}
		if !changed {
			return s, nil
		}
		err = c.plant(ctx, c.space.Catalog(), item.Token, &d)
		if err == nil {
			return c.renew(ctx, false)
		}
		if settled(err) && !moved(err) {
			return s, err
		}
	}
	return p.s, tooMany(c.o.Attempts)
}

// rewrite writes a record again under the declaration in force. Nil without an error if it is gone by now.
func (p *pass) rewrite(ctx context.Context, id string) (*envelope, error) {
	c := p.c
	err := c.write(ctx, "run", id, replace, func(s *schema, old *envelope) (state, error) {
		rec, err := c.entity.DecodeOf(id, old.body)
		if err != nil {
			return state{}, err
		}
		return c.making(s, id, rec, old.expires)
	})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case errors.Is(err, ErrSuspect):
		// A unique value that would be new to the index: only a rebuild with all ids may tell that it is free.
		return nil, fmt.Errorf("%w: a record needs a unique value that cannot be checked", err)
	case err != nil:
		return nil, err
	}
	k, err := c.recordKey(id)
	if err != nil {
		return nil, err
	}
	env, _, err := c.load(ctx, k, id)
	if env != nil && !env.live {
		env = nil
	}
	return env, err
}

// restore puts the entry of a live record back. A claim that another live record holds is a conflict, which nobody but the
// application can decide.
func (p *pass) restore(ctx context.Context, f *Finding, at place, e entry) (fixed bool, err error) {
	c := p.c
	if !at.unique {
		if err := c.appendEntry(ctx, at, e.id, e.wid); err != nil {
			return false, err
		}
	} else if fixed, err := p.reclaim(ctx, f, at, e); err != nil || !fixed {
		return false, err
	}
	// If the record has moved meanwhile, the entry is a dead one of ours.
	k, err := c.recordKey(e.id)
	if err != nil {
		return false, err
	}
	env, _, err := c.load(ctx, k, e.id)
	if err == nil && (env == nil || !env.carries(at.body, e.wid)) {
		c.dropEntry(ctx, at, e)
	}
	return true, err
}

func (p *pass) reclaim(ctx context.Context, f *Finding, at place, e entry) (bool, error) {
	c := p.c
	for n := range c.o.Attempts {
		if n > 0 {
			if err := c.pause(ctx, n); err != nil {
				return false, err
			}
		}
		claim, t, err := c.loadClaim(ctx, at.key)
		switch {
		case err != nil:
			return false, err
		case t != "" && claim == e:
			return true, nil
		case t == "":
			_, err = c.add(ctx, at.key, encodeClaim(e), time.Time{})
			if err == nil {
				return true, nil
			}
			if settled(err) && !moved(err) {
				return false, err
			}
			continue
		}
		k, err := c.recordKey(claim.id)
		if err != nil {
			return false, err
		}
		holder, _, err := c.load(ctx, k, claim.id)
		switch {
		case err != nil:
			return false, err
		case holder != nil && holder.has(at.body) && claim.id != e.id:
			f.Kind, f.Holder = Conflict, claim.id
			return false, nil
		case c.young(claim.wid):
			p.report.Young++
			return false, nil
		}
		if _, err := c.clean(ctx, at, claim); err != nil {
			return false, err
		}
	}
	return false, index.ErrContended
}

// outcome tells what became of a write, and makes sure that it stays so.
func (c *core) outcome(ctx context.Context, id string, w WriteID) (committed bool, err error) {
	if c.o.ReadOnly {
		return false, index.ErrReadOnly
	}
	k, err := c.recordKey(id)
	if err != nil {
		return false, err
	}
	for n := range c.o.Attempts {
		if n > 0 {
			if err := c.pause(ctx, n); err != nil {
				return false, err
			}
		}
		env, t, err := c.load(ctx, k, id)
		switch {
		case err != nil:
			return false, err
		case env == nil:
			return false, nil
		case env.committed(w):
			return true, nil
		case !env.live && env.last != w:
			return false, nil
		case !env.live:
			err = c.remove(ctx, k, t)
		default:
			_, _, err = c.fence(ctx, k, env, t)
		}
		if err == nil {
			return false, nil
		}
		if settled(err) && !moved(err) {
			return false, err
		}
	}
	return false, tooMany(c.o.Attempts)
}
