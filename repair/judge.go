package repair

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
)

// verdict is what is wrong with a record at one instant, and what would put it right.
type verdict struct {
	s        *suspect
	findings []found
	fixable  int // the first so many findings are put right by the change
	change   *index.Change
	row      bool // only the row is not as it should be
	expired  int64
	placed   map[string]plan.Placed // unique index key -> what the change claims there
}

// judge says what is wrong with a record that two looks have found the same.
func (p *pass) judge(s *suspect, entries []answered, due bool, now time.Time) *verdict {
	v := &verdict{s: s}
	p.remember(s, entries)
	switch {
	case s.view.kind == "none":
		p.judgeGone(v, entries, due)
	case s.view.kind != "string":
		v.findings = []found{{Finding{Kind: Foreign, ID: s.id, Key: s.key, Detail: "a " + s.view.kind + " where a record belongs"}, s.id}}
	case s.view.err != nil:
		v.findings = []found{{Finding{Kind: Undecodable, ID: s.id, Key: s.key, Err: s.view.err}, s.id}}
	default:
		p.judgeLiving(v, entries, now)
	}
	return v
}

// remember notes the entries that are judged, so that a later phase does not judge them again.
func (p *pass) remember(s *suspect, entries []answered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.view.kind != "none" {
		id := p.mark("", s.id)
		if _, known := p.living[id]; !known {
			p.living[id] = false // it lives, though the scan has not given it
		}
	}
	for _, e := range entries {
		if e.Member {
			p.judged[p.mark(e.token.Body(), member(e.token, s.id))] = struct{}{}
		}
	}
}

// judgeGone finds what is left of a record that is not there. What a lifetime has ended is no damage.
func (p *pass) judgeGone(v *verdict, entries []answered, due bool) {
	s := v.s
	var left []plan.Token
	for _, e := range entries {
		if !e.Member {
			continue
		}
		left = append(left, e.token)
		if due {
			v.expired++
			continue
		}
		v.findings = append(v.findings, entry(Orphan, s.id, e))
	}
	v.fixable = len(v.findings)
	v.row = len(left) == 0 && s.view.hasRow && !due
	if len(left) > 0 || s.view.hasRow {
		v.change = &index.Change{ID: s.id, Key: s.key, Gone: true, Assumed: s.assumed(), Remove: left}
	}
}

// entry is a finding about an entry.
func entry(k Kind, id string, e answered) found {
	return found{Finding{Kind: k, Index: indexOf(e.token), ID: id, Key: e.key}, member(e.token, id)}
}

// assumed are the entries that a change may take for written: those of the row as they stand there, and those met.
func (s *suspect) assumed() string {
	all := rowEntries(s.view.row)
	for _, t := range s.met {
		if !slices.Contains(s.view.rowed, t) {
			if all != "" {
				all += "\n"
			}
			all += string(t)
		}
	}
	return all
}

// judgeLiving holds the entries of a record against what its bytes ask for.
func (p *pass) judgeLiving(v *verdict, entries []answered, now time.Time) {
	s := v.s
	expected := make(map[plan.Token]plan.Placed, len(s.view.expected))
	for _, e := range s.view.expected {
		expected[e.Token] = e
	}
	// A copy of another record is not this one: it gets no entries, and none of those that its bytes ask for is taken away.
	copied := s.view.own != "" && s.view.own != s.id
	var add []plan.Placed
	var remove []plan.Token
	v.placed = map[string]plan.Placed{}
	for _, a := range entries {
		if p.only != "" && indexOf(a.token) != p.only {
			continue
		}
		e, wanted := expected[a.token]
		switch {
		case a.Foreign != "":
			if wanted {
				p.skip(a.key, s.id)
			}
		case !wanted:
			if a.Member {
				v.findings = append(v.findings, entry(Stale, s.id, a))
				remove = append(remove, a.token)
			}
		case copied || s.leave[a.token]:
		case a.Member:
			if a.Score != "" && !sameScore(e, a.Score) {
				v.findings = append(v.findings, entry(Misranked, s.id, a))
				add = append(add, e)
			}
		case p.outside(s, e, a, now):
			if s.refill == a.token {
				add = append(add, e)
			}
		default:
			v.findings = append(v.findings, entry(Missing, s.id, a))
			add = append(add, e)
			if e.Unique {
				v.placed[a.key] = e
			}
		}
	}
	v.fixable = len(v.findings)
	row := p.rowOf(s, remove, copied)
	v.row = len(add)+len(remove) == 0 && !s.rowIs(row)
	if copied {
		v.row = false
		v.findings = append(v.findings, found{
			Finding{Kind: Foreign, ID: s.id, Key: s.key, Detail: fmt.Sprintf("the record of %q", s.view.own)}, s.id,
		})
	}
	if len(add)+len(remove) > 0 || v.row {
		v.change = &index.Change{
			ID: s.id, Key: s.key, Condition: unmoved(s.view), Assumed: s.assumed(), Row: row, Remove: remove, Add: add,
		}
	}
}

// outside reports whether an entry may be no member: it has left the window, or was trimmed. A trimmed one is a candidate
// for taking back.
func (p *pass) outside(s *suspect, e plan.Placed, a answered, now time.Time) bool {
	d, ok := p.current(e.Token.Body())
	switch {
	case !ok:
		return false
	case aged(d.bound, e.Score, now):
		return true
	case trimmed(d.bound, e, s.id, a.Floor):
		if s.refill != "" {
			return true // it is one
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if f := p.floors[e.Token.Body()]; f != nil {
			f.offer(candidate{e, s.id, s.key})
		}
		return true
	}
	return false
}

// rowOf are the entries of the row that a record should have.
func (p *pass) rowOf(s *suspect, removed []plan.Token, copied bool) []plan.Token {
	var row []plan.Token
	if !copied {
		for _, e := range s.view.expected {
			if (p.only == "" || indexOf(e.Token) == p.only || !s.view.hasRow || s.view.damaged) && !s.leave[e.Token] {
				row = append(row, e.Token)
			}
		}
	}
	if p.only != "" || copied {
		for _, t := range s.view.rowed {
			if !slices.Contains(removed, t) && (copied || indexOf(t) != p.only) {
				row = append(row, t)
			}
		}
	}
	slices.Sort(row)
	return slices.Compact(row)
}

// rowIs reports whether a record has the row already.
func (s *suspect) rowIs(row []plan.Token) bool {
	return s.view.hasRow && !s.view.damaged && rowEntries(s.view.row) == plan.Join(row)
}

// skip counts an entry that cannot be judged, because something else sits at its key.
func (p *pass) skip(k, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.once("skipped "+k, id) {
		p.report.Skipped++
	}
}

// sameScore compares the score of an entry with one that the server gives. Members of lexical keys have the score 0.
func sameScore(e plan.Placed, got string) bool {
	want := e.Score
	if e.Token.Kind() == plan.Lexical {
		want = "0"
	}
	return plan.CompareScores(plan.Ranked, want, got) == 0
}
