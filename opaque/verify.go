package opaque

import (
	"context"
	"errors"
	"iter"
	"slices"

	"golang.org/x/time/rate"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/pace"
	"github.com/lockstep-go/lockstep/key"
)

// RunOptions tune one Verify or Run. The zero value is good.
type RunOptions struct {
	// IDs gives ids that the caller knows, from the system of record for example. They are looked at beside those of the
	// all-ids index. After a loss of data they are taken for all there are.
	IDs iter.Seq2[string, error]
	// Trust says that the all-ids index is whole although the store has lost data, so that Run may declare the indexes
	// ready again.
	Trust bool
	// Rate is how many records and index entries are looked at per second. 0 does not throttle.
	Rate int
	// Progress is called after every record with the number of records so far.
	Progress func(records int)
}

// pass is one walk over everything that can be reached.
type pass struct {
	c      *core
	s      *schema
	o      RunOptions
	report *Report
	fix    bool
	keys   map[string]place // of every list and claim that a record named
	pace   *rate.Limiter    // nil for no limit
}

func newPass(c *core, s *schema, o RunOptions) *pass {
	p := &pass{c: c, s: s, o: o, report: newReport(), keys: map[string]place{}}
	if o.Rate > 0 {
		p.pace = rate.NewLimiter(rate.Limit(o.Rate), max(1, o.Rate/10))
	}
	return p
}

// throttle waits until one more may be looked at.
func (p *pass) throttle(ctx context.Context) error { return pace.Wait(ctx, p.pace, 1) }

// all walks over the records, then over the lists.
func (p *pass) all(ctx context.Context) error {
	for id, err := range p.c.eachID(ctx, p.s, p.o.IDs) {
		if err != nil {
			return err
		}
		if err := p.throttle(ctx); err != nil {
			return err
		}
		if err := p.record(ctx, id); err != nil {
			return err
		}
		if p.o.Progress != nil {
			p.o.Progress(p.report.Records)
		}
	}
	for l, err := range p.c.idLists(p.s) {
		if err != nil {
			return err
		}
		p.keys[l.key] = l
	}
	for k, err := range p.c.listed(ctx) {
		if err != nil {
			return err
		}
		if k.Kind != key.KindIndex || !k.HasValue {
			continue
		}
		raw, err := k.Key(p.c.limits.Keys)
		if err != nil {
			continue
		}
		body, err := p.c.space.EntryBody(k.Index, k.Gen, k.Value)
		if err != nil {
			continue
		}
		if _, known := p.keys[raw]; !known {
			p.keys[raw] = place{index: k.Index, body: body, key: raw}
		}
	}
	for _, k := range slices.Sorted(mapsKeys(p.keys)) {
		if err := p.list(ctx, p.keys[k]); err != nil {
			return err
		}
	}
	return nil
}

func mapsKeys(m map[string]place) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// record looks at one record and at the entries that it needs.
func (p *pass) record(ctx context.Context, id string) error {
	c := p.c
	k, err := c.recordKey(id)
	if err != nil {
		return err
	}
	for n := range c.o.Attempts {
		if n > 0 {
			if err := c.pause(ctx, n); err != nil {
				return err
			}
		}
		env, t, err := c.load(ctx, k, id)
		switch {
		case errors.Is(err, index.ErrUndecodable):
			p.report.add(Finding{Kind: Undecodable, ID: id, Key: k})
			return nil
		case err != nil:
			return err
		case env == nil:
			return nil
		case !env.live:
			return p.pending(ctx, k, id, env, t)
		}
		again, err := p.live(ctx, k, id, env)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// pending removes the reservation of a create that has got old.
func (p *pass) pending(ctx context.Context, k, id string, env *envelope, t Token) error {
	if p.c.young(env.last) {
		p.report.Young++
		return nil
	}
	f := Finding{Kind: Pending, ID: id, Key: k}
	if p.fix {
		err := p.c.remove(ctx, k, t)
		if err != nil && !moved(err) {
			return err
		}
		f.Fixed = true
	}
	p.report.add(f)
	return nil
}

// live looks at a live record. It reports whether the record has moved meanwhile, so that nothing can be said.
func (p *pass) live(ctx context.Context, k, id string, env *envelope) (again bool, err error) {
	c := p.c
	rec, err := c.entity.DecodeOf(id, env.body)
	if err != nil {
		p.report.add(Finding{Kind: Undecodable, ID: id, Key: k})
		return false, nil //nolint:nilerr // reported as a finding
	}
	want, err := c.placesOf(p.s, id, rec)
	if err != nil {
		p.report.add(Finding{Kind: Undecodable, ID: id, Key: k})
		return false, nil //nolint:nilerr // reported as a finding
	}
	if !sameMarks(env.marks, want) || env.generation != p.s.generation {
		f := Finding{Kind: Outdated, ID: id, Key: k}
		if p.fix {
			if env, err = p.rewrite(ctx, id); err != nil || env == nil {
				var conflict *index.ConflictError
				if errors.As(err, &conflict) {
					p.report.Records++
					p.report.add(Finding{
						Kind: Conflict, Index: conflict.Index, ID: id, Key: k, Value: conflict.Value, Holder: conflict.Holder,
					})
					return false, nil
				}
				return false, err
			}
			f.Fixed = true
		}
		p.report.add(f)
	}
	var missing []Finding
	for _, m := range env.marks {
		at, err := c.placeOfMark(m)
		if err != nil {
			return false, err
		}
		p.keys[at.key] = at
		holder, ok, err := c.present(ctx, at, entry{id, m.wid})
		if err != nil {
			return false, err
		}
		if ok {
			continue
		}
		f := Finding{Kind: Missing, Index: at.index, ID: id, Key: at.key, Value: valueOf(at.body), Holder: holder}
		if p.fix {
			if f.Fixed, err = p.restore(ctx, &f, at, entry{id, m.wid}); err != nil {
				return false, err
			}
		}
		missing = append(missing, f)
	}
	if len(missing) > 0 && c.keeps(confirmDouble) {
		// An entry that was missing between two equal readings of its record is missing.
		now, _, err := c.load(ctx, k, id)
		if err != nil {
			return false, err
		}
		if now == nil || now.rev != env.rev && (now.last != env.last || !now.live) {
			return true, nil
		}
	}
	p.report.Records++
	for _, f := range missing {
		p.report.add(f)
	}
	return false, nil
}

// sameMarks reports whether a record has exactly the entries that it asks for.
func sameMarks(marks []mark, want []place) bool {
	if len(marks) != len(want) {
		return false
	}
	for _, w := range want {
		if !slices.ContainsFunc(marks, func(m mark) bool { return m.body == w.body }) {
			return false
		}
	}
	return true
}

// present reports whether an entry stands where it should, and who holds its claim if not.
func (c *core) present(ctx context.Context, p place, e entry) (holder string, ok bool, err error) {
	if !p.unique {
		_, entries, err := c.loadList(ctx, p.key)
		return "", slices.Contains(entries, e), err
	}
	claim, t, err := c.loadClaim(ctx, p.key)
	return claim.id, t != "" && claim == e, err
}

// list looks at the entries of one list or claim.
func (p *pass) list(ctx context.Context, at place) error {
	c := p.c
	item, err := c.get(ctx, at.key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(item.Value) > 0 && item.Value[0] == formatClaim {
		at.unique = true
	}
	entries, err := entriesOf(at, item.Value)
	if err != nil {
		p.report.add(Finding{Kind: Undecodable, Index: at.index, Key: at.key, Value: valueOf(at.body)})
		return nil //nolint:nilerr // reported as a finding
	}
	for _, e := range entries {
		if err := p.throttle(ctx); err != nil {
			return err
		}
		p.report.Entries++
		k, err := c.recordKey(e.id)
		if err != nil {
			return err
		}
		env, _, err := c.load(ctx, k, e.id)
		switch {
		case errors.Is(err, index.ErrUndecodable):
			continue // found as a record
		case err != nil:
			return err
		case env != nil && env.carries(at.body, e.wid):
			continue
		case c.young(e.wid):
			p.report.Young++
			continue
		}
		f := Finding{Kind: Stale, Index: at.index, ID: e.id, Key: at.key, Value: valueOf(at.body)}
		if env == nil || !env.live {
			f.Kind = Orphan
		}
		if p.fix {
			if f.Fixed, err = c.clean(ctx, at, e); err != nil {
				if !settled(err) || errors.Is(err, ErrUnavailable) {
					return err
				}
				c.o.Events.left(at.index, e.id, err)
			}
		}
		p.report.add(f)
	}
	return nil
}
