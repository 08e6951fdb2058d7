package repair

import (
	"context"
	"crypto/sha1" //nolint:gosec // compares bytes with those that the server digests, not a safeguard
	"encoding/hex"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// unmoved is the condition that a record still has the bytes and the row of a view.
func unmoved(v *view) string {
	sum := sha1.Sum([]byte(v.value)) //nolint:gosec // as above
	return lua.IfUnmoved(hex.EncodeToString(sum[:]), v.row)
}

// Bounds of one call that fixes.
const (
	fixRecords = 100
	fixOps     = 1000
)

// settle reports verdicts, after it has put right what they say where the pass fixes. It gives the suspects that have moved
// in between.
func (p *pass) settle(ctx context.Context, verdicts []*verdict) (again []*suspect, err error) {
	var batch []*verdict
	ops := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		more, err := p.repair(ctx, batch)
		again = append(again, more...)
		batch, ops = nil, 0
		return err
	}
	for _, v := range verdicts {
		if !p.fix || v.change == nil {
			p.conclude(v, false, nil)
			continue
		}
		n := len(v.change.Add) + len(v.change.Remove)
		if len(batch) == fixRecords || ops+n > fixOps {
			if err := flush(); err != nil {
				return again, err
			}
		}
		batch = append(batch, v)
		ops += n
	}
	return again, flush()
}

// conclude reports one verdict.
func (p *pass) conclude(v *verdict, fixed bool, cause error) {
	for i := range v.findings {
		if i < v.fixable {
			v.findings[i].Fixed, v.findings[i].Err = fixed, cause
		}
	}
	p.emit(v.findings...)
	if v.row || v.expired > 0 {
		p.mu.Lock()
		if p.once("row", v.s.id) {
			p.report.Expired += v.expired
			if v.row {
				p.report.Rows++
			}
		}
		p.mu.Unlock()
	}
	if fixed && v.s.refill != "" {
		for _, e := range v.change.Add {
			if e.Token == v.s.refill {
				v.s.refilled = true
				p.count(func(r *Report) { r.Refilled++ })
			}
		}
	}
}

// repair carries changes out in one call.
func (p *pass) repair(ctx context.Context, batch []*verdict) (again []*suspect, err error) {
	changes := make([]index.Change, len(batch))
	for i, v := range batch {
		changes[i] = *v.change
	}
	statuses, err := p.m.Repair(ctx, p.fence, changes)
	if err != nil {
		return nil, err
	}
	var taken []*verdict
	var holders []lua.Status
	for i, v := range batch {
		switch st := statuses[i]; st.Code {
		case lua.Written, lua.Repeated:
			if p.fence != "" {
				p.mu.Lock()
				p.built++
				p.mu.Unlock()
			}
			p.conclude(v, true, nil)
		case lua.Taken:
			taken, holders = append(taken, v), append(holders, st)
		case lua.WrongType:
			p.conclude(v, false, &lua.KeyTypeError{Key: st.Key, Found: st.Found})
		default:
			if v.s.rounds >= maxRounds {
				p.conclude(v, false, index.ErrContended)
				continue
			}
			again = append(again, v.s)
		}
	}
	for i, v := range taken {
		retry, err := p.settleTaken(ctx, v, holders[i])
		if err != nil {
			return again, err
		}
		if retry {
			again = append(again, v.s)
		}
	}
	return again, nil
}

// conflict is a unique value that two records ask for.
type conflict struct {
	id, key string
	token   plan.Token
}

// maxDepth bounds how far the pass follows unique values from hand to hand.
const maxDepth = 4

// settleTaken deals with a unique value in other hands. A holder that is gone, or does not ask for the value, is put right
// first; one that does makes a conflict, which is decided at the end of the pass, when everything else is in order.
func (p *pass) settleTaken(ctx context.Context, v *verdict, st lua.Status) (retry bool, err error) {
	s := v.s
	e := v.placed[st.Key]
	if !s.holders[st.Holder] && s.depth < maxDepth {
		if s.holders == nil {
			s.holders = map[string]bool{}
		}
		s.holders[st.Holder] = true
		k, err := p.part.Record(st.Holder)
		if err != nil {
			return false, err
		}
		holder := &suspect{id: st.Holder, key: k, met: []plan.Token{e.Token}, depth: s.depth + 1}
		if err := p.examine(ctx, []*suspect{holder}); err != nil {
			return false, err
		}
		return true, nil
	}
	if s.final {
		p.mu.Lock()
		p.blocked[e.Index] = true
		p.mu.Unlock()
		p.emit(found{Finding{Kind: Missing, Index: e.Index, ID: s.id, Key: st.Key, Err: &index.ConflictError{
			Entity: p.report.Entity, ID: s.id, Index: e.Index, Value: valueOf(e.Token), Holder: st.Holder,
		}}, s.id})
	} else {
		p.mu.Lock()
		p.conflicts = append(p.conflicts, &conflict{s.id, s.key, e.Token})
		p.mu.Unlock()
	}
	if s.leave == nil {
		s.leave = map[plan.Token]bool{}
	}
	s.leave[e.Token] = true
	return true, nil
}

// decideConflicts looks again at every unique value that two records asked for.
func (p *pass) decideConflicts(ctx context.Context) error {
	byID := map[string]*suspect{}
	var all []*suspect
	for _, c := range p.conflicts {
		if s := byID[c.id]; s != nil {
			s.met = append(s.met, c.token)
			continue
		}
		s := &suspect{id: c.id, key: c.key, met: []plan.Token{c.token}, final: true}
		byID[c.id] = s
		all = append(all, s)
	}
	p.conflicts = nil
	return p.examine(ctx, all)
}

// valueOf is the value segment of a token's key.
func valueOf(t plan.Token) string {
	for i := range len(t) {
		if t[i] == ':' {
			return string(t[i+1:])
		}
	}
	return ""
}
