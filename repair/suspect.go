package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// suspect is a record that is not as it should be, or may not be: some of its entries, its row, or that it is there at all.
// It is looked at until two looks in a row have found the same bytes and the same row; only then it is judged.
type suspect struct {
	id, key  string
	digested bool         // the key does not tell the id
	met      []plan.Token // entries met in index keys, whatever the row says
	refill   plan.Token   // an entry to take back although it was trimmed
	refilled bool

	view   *view // the last look, nil before the first
	rounds int
	depth  int // how many records in other hands led here

	holders map[string]bool     // records in whose hands a unique value was, already looked at
	leave   map[plan.Token]bool // unique entries in other hands
	final   bool                // what is in other hands now is a conflict
}

// view is one look at a record, and what follows from it.
type view struct {
	kind   string // type of the key
	value  string
	row    string
	hasRow bool

	own      string // the id that the record says it has
	expected []plan.Placed
	err      error // why the record does not decode
	rowed    []plan.Token
	damaged  bool // the row does not parse
}

// Bounds of one look.
const (
	lookRecords = 100
	lookEntries = 1000
	maxRounds   = 12 // a record that moves so often is being written, and each write makes its entries true
)

// view derives what follows from the bytes and the row of a record.
func (p *pass) view(s *suspect, kind, value, row string, hasRow bool) *view {
	v := &view{kind: kind, value: value, row: row, hasRow: hasRow}
	if hasRow {
		parsed, err := plan.ParseRow(row)
		v.rowed, v.damaged = parsed.Entries, err != nil
	}
	if kind != "string" {
		return v
	}
	id := s.id
	if s.digested {
		id = ""
	}
	v.own, v.expected, v.err = p.m.Expected(id, []byte(value))
	if s.digested && v.err == nil {
		if k, err := p.part.Record(v.own); err != nil || k != s.key {
			v.err = fmt.Errorf("the id in it, %q, is not that of its key", v.own)
		} else {
			s.id = v.own
		}
	}
	return v
}

// same reports whether another look found the same.
func (v *view) same(o *lua.Inspected) bool {
	return v != nil && v.kind == o.Type && v.value == o.Value && v.hasRow == o.HasRow && v.row == o.Row
}

// tokens are the entries to ask about, each once: those that the record expects, those of its row, and those met.
func (s *suspect) tokens() []plan.Token {
	all := slices.Clone(s.met)
	if s.view != nil {
		all = append(all, plan.Tokens(s.view.expected)...)
		all = append(all, s.view.rowed...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// member is the member of an entry's key.
func member(t plan.Token, id string) string {
	if t.Kind() == plan.Lexical {
		return t.Prefix() + id
	}
	return id
}

// answered is an entry of a suspect with what the server says.
type answered struct {
	token plan.Token
	key   string
	lua.Membership
}

// examine looks at suspects until each is judged, and where the pass fixes, fixed.
func (p *pass) examine(ctx context.Context, queue []*suspect) error {
	for len(queue) > 0 {
		batch, rest := takeSuspects(queue)
		again, err := p.look(ctx, batch)
		if err != nil {
			return err
		}
		slowest := 0
		for _, s := range again {
			slowest = max(slowest, s.rounds)
		}
		if len(rest) == 0 && slowest > 3 {
			if err := p.run.Retry().Pause(ctx, min(slowest-3, 4)); err != nil {
				return err
			}
		}
		queue = append(rest, again...)
	}
	return nil
}

// takeSuspects splits a queue into what is looked at next, each record once, and the rest.
func takeSuspects(queue []*suspect) (batch, rest []*suspect) {
	met := make(map[string]bool, lookRecords)
	entries := 0
	for i, s := range queue {
		n := len(s.met)
		if s.view != nil {
			n += len(s.view.expected) + len(s.view.rowed)
		}
		if len(batch) > 0 && (len(batch) >= lookRecords || entries+n > lookEntries) {
			if len(rest) == 0 {
				return batch, queue[i:]
			}
			return batch, append(rest, queue[i:]...)
		}
		if met[s.key] {
			rest = append(rest, s)
			continue
		}
		met[s.key] = true
		batch = append(batch, s)
		entries += n
	}
	return batch, rest
}

// look looks at a batch once, judges those that have not moved since their last look, and gives the others.
func (p *pass) look(ctx context.Context, batch []*suspect) (again []*suspect, err error) {
	call := lua.InspectCall{Manifest: p.part.Manifest(), Expiry: p.part.Expiry(), Floor: p.part.Floor()}
	asked := make([][]answered, len(batch))
	for i, s := range batch {
		rec := lua.InspectRecord{Key: s.key, ID: s.id}
		for _, t := range s.tokens() {
			k, err := p.part.Entry(t.Body())
			if err != nil {
				continue // a damaged row: no key of ours
			}
			q := lua.Question{Key: k, Scored: t.Kind() != plan.Set, Member: member(t, s.id)}
			if d, ok := p.current(t.Body()); ok && d.bound.Keep > 0 {
				q.Floor = t.Body()
			}
			rec.Questions = append(rec.Questions, q)
			asked[i] = append(asked[i], answered{token: t, key: k})
		}
		call.Records = append(call.Records, rec)
	}
	looks, now, err := p.run.Inspect(ctx, call)
	if err != nil {
		return nil, err
	}
	var verdicts []*verdict
	for i, s := range batch {
		s.rounds++
		o := &looks[i]
		if !s.view.same(o) {
			if s.rounds < maxRounds {
				s.view = p.view(s, o.Type, o.Value, o.Row, o.HasRow)
				again = append(again, s)
			}
			continue
		}
		for j := range asked[i] {
			asked[i][j].Membership = o.Answers[j]
		}
		verdicts = append(verdicts, p.judge(s, asked[i], o.Due, now))
	}
	more, err := p.settle(ctx, verdicts)
	return append(again, more...), err
}

// rowEntries is the part of a row that lists the entries, as it stands there.
func rowEntries(row string) string {
	if len(row) <= plan.WriteIDSize {
		return ""
	}
	_, entries, _ := strings.Cut(row[plan.WriteIDSize:], "\n")
	return entries
}

// aged reports whether a score has left the window of its index.
func aged(b plan.Bound, score string, now time.Time) bool {
	if b.MaxAge == 0 {
		return false
	}
	unit := max(b.Unit, time.Microsecond).Microseconds()
	micro := now.Add(-b.MaxAge).UnixMicro()
	oldest := micro / unit
	if micro%unit < 0 {
		oldest--
	}
	return plan.CompareScores(plan.Ranked, score, fmt.Sprint(oldest)) < 0
}

// beats reports whether an entry lies nearer to the kept end than all that its key has trimmed.
func beats(b plan.Bound, e plan.Placed, id string, f lua.Floor) bool {
	return b.Compare(e.Token.Kind(), e.Score, member(e.Token, id), f.Best.Score, f.Best.Member) > 0
}

// trimmed reports whether an entry that is no member may be none, because its key has trimmed as good ones.
func trimmed(b plan.Bound, e plan.Placed, id string, f lua.Floor) bool {
	return b.Keep > 0 && !f.None() && !beats(b, e, id, f)
}
