package opaque_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
)

// observe reads the records as they are now and checks what must hold in every state.
func (w *world) observe() {
	if !w.changed && !w.mortal {
		return
	}
	w.changed = false
	for _, id := range simIDs {
		k, err := w.c.RecordKey(id)
		if err != nil {
			w.fail("%v", err)
			return
		}
		stored, ok := w.kv.Peek(k)
		if !ok {
			delete(w.records, id)
			delete(w.raw, id)
			continue
		}
		if w.raw[id] == string(stored.Value) {
			continue
		}
		rec, err := w.c.ReadRecord(stored.Value)
		if err != nil {
			w.fail("record %s: %v", id, err)
			return
		}
		if !stored.Expires.Equal(rec.Expires) {
			w.fail("the record %s expires at %v, the store says %v", id, rec.Expires, stored.Expires)
		}
		if before := w.records[id]; rec.Live && (!before.Live || before.Last != rec.Last) {
			if n := number(rec); n >= 100 && (!before.Live || number(before) != n) {
				w.commits[n]++
			}
		}
		w.raw[id], w.records[id] = string(stored.Value), rec
	}
	w.invariants()
	now := w.holders()
	for _, t := range w.tasks {
		if t.done {
			continue
		}
		for value, ids := range now {
			if t.seen[value] == nil {
				t.seen[value] = map[string]bool{}
			}
			for _, id := range ids {
				t.seen[value][id] = true
			}
		}
		for value, ids := range t.always {
			for id := range ids {
				if !slices.Contains(now[value], id) {
					delete(ids, id)
				}
			}
		}
	}
}

// number is the number of the write that left a record's body.
func number(rec opaque.Record) int {
	var a Account
	_ = json.Unmarshal(rec.Body, &a)
	return a.N
}

// holders are the ids that hold each index:value now.
func (w *world) holders() map[string][]string {
	out := map[string][]string{}
	for _, id := range simIDs {
		rec := w.records[id]
		if !rec.Live {
			continue
		}
		for _, m := range rec.Marks {
			out[valueKey(m.Body)] = append(out[valueKey(m.Body)], id)
		}
	}
	return out
}

// valueKey makes index:value of a body index.generation:value.
func valueKey(body string) string {
	name, rest, _ := strings.Cut(body, ".")
	_, value, _ := strings.Cut(rest, ":")
	return name + ":" + value
}

// invariants: a live record has its entries, its claim names it, and no two live records hold one unique value.
func (w *world) invariants() {
	holders := map[string]string{}
	for _, id := range simIDs {
		rec := w.records[id]
		if !rec.Live {
			continue
		}
		for _, m := range rec.Marks {
			if m.Unique {
				if other, taken := holders[m.Body]; taken {
					w.fail("%s and %s both hold %s", other, id, m.Body)
				}
				holders[m.Body] = id
			}
			if w.lost {
				continue
			}
			stored, ok := w.kv.Peek(m.Key)
			entries, err := opaque.ReadEntries(stored.Value)
			if !ok || err != nil || !slices.Contains(entries, opaque.Entry{ID: id, WriteID: m.WriteID}) {
				w.fail("%s is live with %s and has no entry there", id, m.Body)
			}
		}
	}
}

// judge checks what a task that has ended says about its result.
func (w *world) judge(t *task) {
	n := w.commits[t.n]
	var conflict *index.ConflictError
	switch {
	case n > 1:
		w.fail("%s was applied %d times", t.name, n)
	case t.crashed:
	case t.writes() && t.err == nil && n != 1:
		w.fail("%s reports success and was applied %d times", t.name, n)
	case t.writes() && t.err != nil && !errors.Is(t.err, opaque.ErrUnknown) && n != 0:
		w.fail("%s reports %v and was applied", t.name, t.err)
	case errors.As(t.err, &conflict):
		if !t.seen[conflict.Index+":"+conflict.Value][conflict.Holder] && !w.lost {
			w.fail("%s reports that %s holds %s, which it never did", t.name, conflict.Holder, conflict.Value)
		}
	case t.result != nil && (t.err == nil || errors.Is(t.err, opaque.ErrSuspect)):
		for id := range t.result {
			if !t.seen[t.asked][id] {
				w.fail("%s gave %s, which never had %s meanwhile", t.name, id, t.asked)
			}
		}
		for id := range t.always[t.asked] {
			if !t.result[id] && t.err == nil {
				w.fail("%s did not give %s, which had %s all the time", t.name, id, t.asked)
			}
		}
	}
	if t.report != nil && t.err == nil && !w.lost && t.report.Counts[opaque.Missing]+t.report.Counts[opaque.Conflict] > 0 {
		w.fail("%s reports what was never wrong: %v", t.name, t.report.Findings)
	}
}

func (t *task) writes() bool { return t.name[0] == 'w' }

// end brings the world to rest, scrubs it once, and checks that nothing is left over.
func (w *world) end() {
	if !w.crash && !w.cuts && !w.jumps && !w.restart && !w.evict && !w.mortal {
		// Without trouble every operation cleans up behind itself.
		w.nothingDangles("before run")
	}
	for len(w.late) > 0 && w.rng.IntN(3) > 0 {
		w.arrive()
	}
	w.now = w.now.Add(simPending + simGrace + time.Second)
	w.changed = true
	w.observe()
	if w.wrong != "" {
		return
	}
	ctx := context.Background()
	o := opaque.RunOptions{}
	if w.evict || w.restart {
		o.IDs = func(yield func(string, error) bool) {
			for _, id := range simIDs {
				if !yield(id, nil) {
					return
				}
			}
		}
	}
	if r, err := w.c.Run(ctx, o); err != nil {
		w.fail("run: %v", err)
	} else if r.Lost != "" || len(r.NotReady) > 0 {
		w.fail("after run: %+v", r)
	}
	w.lost, w.changed = false, true
	w.observe()
	if r, err := w.c.Verify(ctx, opaque.RunOptions{}); err != nil || !r.Clean() {
		w.fail("after run verify finds %v, %v", r, err)
	}
	w.nothingDangles("after run")
	// What arrives after the scrub may leave garbage, and does no harm.
	for len(w.late) > 0 {
		w.arrive()
	}
}

func (w *world) nothingDangles(when string) {
	for k := range w.kv.Keys(context.Background(), "") {
		stored, _ := w.kv.Peek(k)
		switch {
		case len(stored.Value) == 0 || stored.Value[0] == '{':
		case stored.Value[0] == 'L' || stored.Value[0] == 'C':
			entries, err := opaque.ReadEntries(stored.Value)
			if err != nil {
				w.fail("%s: %v", k, err)
			}
			for _, e := range entries {
				if !w.needs(e, k) {
					w.fail("%s the entry of %s dangles in %s", when, e.ID, k)
				}
			}
		default:
			if rec, err := w.c.ReadRecord(stored.Value); err != nil || !rec.Live {
				w.fail("%s %s is pending, %v", when, k, err)
			}
		}
	}
}

// needs reports whether a live record has an entry.
func (w *world) needs(e opaque.Entry, k string) bool {
	rec := w.records[e.ID]
	return rec.Live && slices.ContainsFunc(rec.Marks, func(m opaque.Mark) bool { return m.Key == k && m.WriteID == e.WriteID })
}
