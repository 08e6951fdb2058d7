package proof

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/lockstep-go/lockstep/index"
)

// model is what the store must hold, as plain maps.
type model struct {
	recs    map[string]thing
	ghosts  map[string]thing // vanished; their entries may be left
	hurt    map[string]bool  // an entry or the row was lost and no write has brought it back
	over    map[string]bool  // a bounded key, by its body, that may have trimmed
	unknown int              // operations that ended with ErrUnknown
}

func newModel() *model {
	return &model{map[string]thing{}, map[string]thing{}, map[string]bool{}, map[string]bool{}, 0}
}

// step holds the result of an operation against the model and moves the model on. stored reads a record past the library,
// for operations whose outcome is unknown.
func (m *model) step(o op, r result, stored func(string) (thing, bool)) error {
	m.crowd(o)
	x := o.Recs[0]
	old, alive := m.recs[x.ID]
	switch o.Kind {
	case putMany, removeMany:
		return m.stepMany(o, r, stored)
	case get:
		return m.read(r, old, alive)
	case one:
		for _, rec := range m.recs {
			if rec.Code == x.Code && x.Code != "" {
				return m.read(r, rec, true)
			}
		}
		return m.read(r, thing{}, false)
	case find:
		return m.found(o, r)
	case top:
		return m.ranked(o, r)
	case vanish:
		if r.done {
			m.ghosts[x.ID] = old
			delete(m.recs, x.ID)
			delete(m.hurt, x.ID)
		}
		return nil
	case loseRow, loseEntry:
		if r.done {
			m.hurt[x.ID] = true
		}
		return nil
	}
	next, want := m.expect(o)
	err := r.errs[0]
	if errors.Is(err, index.ErrUnknown) {
		return m.resolve(x.ID, []thing{next}, o.Kind == remove || o.Kind == removeIf, stored)
	}
	if !slices.ContainsFunc(want, func(w error) bool { return is(err, w) }) {
		return fmt.Errorf("%w, want one of %v", err, want)
	}
	if err == nil {
		m.set(x.ID, next, o.Kind != remove && o.Kind != removeIf)
	}
	return nil
}

// expect is the state that a single write leads to, and the errors that it may end with, nil among them.
func (m *model) expect(o op) (next thing, want []error) {
	x := o.Recs[0]
	old, alive := m.recs[x.ID]
	next = x
	switch o.Kind {
	case create:
		if alive {
			return next, []error{index.ErrExists}
		}
	case replace, putIf, removeIf, update:
		if !alive {
			return next, []error{index.ErrNotFound}
		}
	}
	switch o.Kind {
	case remove, removeIf:
		return thing{}, []error{nil}
	case update:
		next.Count = old.Count + 1
	}
	if x.Color == "foreign" {
		want = append(want, index.ErrKeyType)
	}
	if m.claimed(x) {
		want = append(want, index.ErrConflict)
	}
	if want == nil {
		want = []error{nil}
	}
	return next, want
}

// claimed reports whether another live record holds the unique value of x.
func (m *model) claimed(x thing) bool {
	for id, rec := range m.recs {
		if x.Code != "" && rec.Code == x.Code && id != x.ID {
			return true
		}
	}
	return false
}

func (m *model) set(id string, x thing, alive bool) {
	delete(m.ghosts, id)
	delete(m.hurt, id)
	delete(m.recs, id)
	if alive {
		m.recs[id] = x
	}
}

// resolve settles an unknown outcome by what the store holds: the old state or one of those that were being written.
func (m *model) resolve(id string, next []thing, gone bool, stored func(string) (thing, bool)) error {
	m.unknown++
	old, was := m.recs[id]
	now, alive := stored(id)
	switch {
	case !alive && (gone || !was):
	case alive && was && reflect.DeepEqual(now, old):
		return nil // nothing was written: what was hurt still is
	case alive && slices.ContainsFunc(next, func(x thing) bool { return reflect.DeepEqual(now, x) }):
	default:
		return fmt.Errorf("unknown outcome left %+v (%t) of %+v (%t)", now, alive, old, was)
	}
	m.set(id, now, alive)
	return nil
}

// stepMany takes the outcomes of a batch in: which of several claims of one value wins is the library's choice.
func (m *model) stepMany(o op, r result, stored func(string) (thing, bool)) error {
	before := maps.Clone(m.recs)
	held := func(x thing, among map[string]thing) bool {
		return (&model{recs: among}).claimed(x)
	}
	wanted := map[string]thing{}
	for _, x := range o.Recs {
		wanted[x.ID+" "+x.Code] = thing{ID: x.ID, Code: x.Code}
	}
	contested := func(x thing) bool {
		for _, other := range wanted {
			if other.ID != x.ID && other.Code == x.Code {
				return true
			}
		}
		return false
	}
	for i, x := range o.Recs {
		err := r.errs[i]
		switch {
		case errors.Is(err, index.ErrUnknown):
			if err := m.resolve(x.ID, o.Recs, o.Kind == removeMany, stored); err != nil {
				return err
			}
		case err == nil && o.Kind == removeMany:
			m.set(x.ID, thing{}, false)
		case err == nil:
			if x.Color == "foreign" {
				return fmt.Errorf("record %d was written over a foreign key", i)
			}
			m.set(x.ID, x, true)
		case errors.Is(err, index.ErrKeyType) && x.Color == "foreign":
		case errors.Is(err, index.ErrConflict) && x.Code != "" && (held(x, before) || held(x, m.recs) || contested(x)):
		default:
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	for _, x := range m.recs {
		if m.claimed(x) {
			return fmt.Errorf("two records hold %s after a batch", x.Code)
		}
	}
	return nil
}

func (m *model) read(r result, want thing, alive bool) error {
	switch {
	case !alive:
		if !is(r.errs[0], index.ErrNotFound) {
			return fmt.Errorf("got %+v, %w, want %w", r.things[0], r.errs[0], index.ErrNotFound)
		}
	case r.errs[0] != nil || !reflect.DeepEqual(r.things[0], want):
		return fmt.Errorf("got %+v, %w, want %+v", r.things[0], r.errs[0], want)
	}
	return nil
}

// found holds what queries gave against the records that match.
func (m *model) found(o op, r result) error {
	if r.errs[0] != nil {
		if o.Recs[0].Color == "foreign" && o.N%3 == 0 {
			return nil
		}
		return r.errs[0]
	}
	if len(m.hurt) > 0 {
		return nil
	}
	var want, got []string
	for id, x := range m.recs {
		if x.matches(o) {
			want = append(want, id+x.Stamp)
		}
	}
	for _, x := range r.things {
		got = append(got, x.ID+x.Stamp)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return fmt.Errorf("found %v, want %v", got, want)
	}
	if len(m.ghosts) == 0 && (len(r.ids) != len(want) || r.count != int64(len(want))) {
		return fmt.Errorf("ids %v, count %d, want %v", r.ids, r.count, want)
	}
	return nil
}

func (x thing) matches(o op) bool {
	switch o.N % 3 {
	case 1:
		return x.Region == "r1" || x.Region == "r2"
	case 2:
		return slices.Contains(x.Tags, "t1")
	}
	return x.Color == o.Recs[0].Color
}

// crowd notes the bounded keys that an operation may bring over their bound.
func (m *model) crowd(o op) {
	ids := map[string]map[string]bool{}
	enter := func(x thing) {
		for _, b := range x.bounded() {
			if ids[b.body] == nil {
				ids[b.body] = map[string]bool{}
			}
			ids[b.body][x.ID] = true
		}
	}
	for _, x := range m.recs {
		enter(x)
	}
	for _, x := range m.ghosts {
		enter(x)
	}
	for _, x := range o.Recs {
		enter(x)
	}
	for body, in := range ids {
		limit := keptHeats
		if body == "score.1" {
			limit = keptScores
		}
		if len(in) > limit+slack {
			m.over[body] = true
		}
	}
}

// ranked holds a page against a sort of all records.
func (m *model) ranked(o op, r result) error {
	if r.errs[0] != nil {
		return r.errs[0]
	}
	limit := []int{keptScores, 2, 3, 10, keptHeats, 1}[o.N]
	descending := o.N == 0 || o.N == 2 || o.N == 5
	var want []thing
	for _, x := range m.recs {
		if o.N < 4 || x.Group == o.Recs[0].Group {
			want = append(want, x)
		}
	}
	score := func(x thing) int {
		switch o.N {
		case 0, 1:
			return x.Score
		case 2, 3:
			return int(x.Fine)
		}
		return x.Heat
	}
	order := func(a, b thing) int {
		c := cmp.Or(cmp.Compare(score(a), score(b)), cmp.Compare(a.ID, b.ID))
		if descending {
			return -c
		}
		return c
	}
	slices.SortFunc(want, order)
	trimmed := o.N < 2 && m.over["score.1"] || o.N > 3 && m.over["heat.1:"+o.Recs[0].Group]
	if !r.complete && !trimmed {
		return errors.New("a page of an index that has trimmed nothing is called incomplete")
	}
	want = want[:min(len(want), limit)]
	if r.complete && !reflect.DeepEqual(stamps(r.things), stamps(want)) {
		return fmt.Errorf("a page called complete has %v, want %v", stamps(r.things), stamps(want))
	}
	if !slices.IsSortedFunc(r.things, order) {
		return fmt.Errorf("out of order: %v", stamps(r.things))
	}
	for _, x := range r.things {
		if !reflect.DeepEqual(x, m.recs[x.ID]) {
			return fmt.Errorf("a page has %+v, want %+v", x, m.recs[x.ID])
		}
	}
	return nil
}

func stamps(things []thing) []string {
	out := []string{}
	for _, x := range things {
		out = append(out, x.ID+" "+x.Stamp)
	}
	return out
}

// finish mends what incidents left, through the library, and then holds the whole store against the model.
func (m *model) finish(w *world) error {
	for _, id := range slices.Sorted(maps.Keys(m.hurt)) {
		if r := w.run(op{Kind: put, Recs: []thing{m.recs[id]}}); r.errs[0] != nil {
			return fmt.Errorf("put of a hurt record: %w", r.errs[0])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.ghosts)) {
		if r := w.run(op{Kind: remove, Recs: []thing{{ID: id}}}); r.errs[0] != nil {
			return fmt.Errorf("delete of a vanished record: %w", r.errs[0])
		}
	}
	for i := range 7 {
		id := fmt.Sprint("i", i)
		now, alive := w.stored(id)
		want, wanted := m.recs[id]
		if alive != wanted || !reflect.DeepEqual(now, want) {
			return fmt.Errorf("the store has %+v (%t), want %+v (%t)", now, alive, want, wanted)
		}
	}
	if found := w.findings(); len(found) > 0 {
		return fmt.Errorf("the oracle: %q", found)
	}
	return nil
}
