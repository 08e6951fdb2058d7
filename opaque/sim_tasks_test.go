package opaque_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
)

// simulate runs the world of a seed and gives the first violation, "" if there is none.
func simulate(seed uint64, cfg simConfig, trace func(string, ...any)) string {
	w := newWorld(seed, cfg)
	if trace != nil {
		w.trace = trace
		trace("crash %v cuts %v jumps %v restart %v evict %v mortal %v", w.crash, w.cuts, w.jumps, w.restart, w.evict, w.mortal)
	}
	w.prepare()
	for range 2 + w.rng.IntN(3) {
		w.randomTask()
	}
	for _, t := range w.tasks {
		t.begin()
	}
	for steps := 0; w.wrong == ""; steps++ {
		running := w.running()
		if len(running) == 0 {
			break
		}
		if steps > simSteps {
			w.fail("no end after %d steps", steps)
			break
		}
		w.event()
		w.step(running[w.rng.IntN(len(running))], steps < simSteps/8)
	}
	for _, t := range w.tasks {
		t.stop()
		if w.wrong == "" {
			w.judge(t)
		}
	}
	if w.wrong == "" {
		w.end()
	}
	return w.wrong
}

func (w *world) running() []*task {
	var out []*task
	for _, t := range w.tasks {
		if !t.done {
			out = append(out, t)
		}
	}
	return out
}

// prepare writes what is there at the beginning, and evicts an index key in some worlds.
func (w *world) prepare() {
	ctx := context.Background()
	for i, id := range simIDs {
		if w.rng.IntN(3) == 0 {
			continue
		}
		a := Account{ID: id, Status: w.status(), N: i}
		if w.rng.IntN(2) == 0 {
			a.Email = []string{"x", "y"}[i]
		}
		if err := w.c.Put(ctx, a); err != nil {
			w.fail("prepare: %v", err)
		}
	}
	w.now = w.now.Add([]time.Duration{0, simGrace + 1}[w.rng.IntN(2)])
	w.changed = true
	w.observe()
	if w.evict {
		keys := []string{w.c.ListKey("status", "A"), w.c.ListKey("status", "B"), w.c.ListKey("email", "x"), w.c.ListKey("email", "y")}
		w.kv.Evict(keys[w.rng.IntN(len(keys))])
		w.lost = true
	}
}

func (w *world) id() string     { return simIDs[w.rng.IntN(len(simIDs))] }
func (w *world) status() string { return []string{"", "A", "B"}[w.rng.IntN(3)] }
func (w *world) email() string  { return []string{"", "x", "x", "y"}[w.rng.IntN(4)] }

func (w *world) randomTask() {
	id := w.id()
	a := Account{ID: id, Status: w.status(), Email: w.email()}
	switch n := w.rng.IntN(20); {
	case n < 4:
		w.spawn(fmt.Sprintf("w%d create %s %q %q", len(w.tasks), id, a.Status, a.Email), func(ctx context.Context, t *task) error {
			a.N = t.n
			return w.c.Create(ctx, a)
		})
	case n < 7:
		w.spawn(fmt.Sprintf("w%d put %s %q %q", len(w.tasks), id, a.Status, a.Email), func(ctx context.Context, t *task) error {
			a.N = t.n
			return w.c.Put(ctx, a)
		})
	case n < 12:
		which := w.rng.IntN(4)
		w.spawn(fmt.Sprintf("w%d update %s %q %q %d", len(w.tasks), id, a.Status, a.Email, which), func(ctx context.Context, t *task) error {
			_, err := w.c.Update(ctx, id, func(old *Account) error {
				if which != 1 {
					old.Status = a.Status
				}
				if which > 0 && which < 3 {
					old.Email = a.Email
				}
				old.N = t.n
				return nil
			})
			return err
		})
	case n < 15:
		w.spawn(fmt.Sprintf("%d delete %s", len(w.tasks), id), func(ctx context.Context, _ *task) error {
			return w.c.Delete(ctx, id)
		})
	case n < 17:
		status := []string{"A", "B"}[w.rng.IntN(2)]
		w.query("status:"+status, ByStatus.Is(status))
	case n < 18:
		email := []string{"x", "y"}[w.rng.IntN(2)]
		w.query("email:"+email, ByEmail.Is(email))
	default:
		scrub := w.rng.IntN(3) > 0
		w.spawn(fmt.Sprintf("%d run %v", len(w.tasks), scrub), func(ctx context.Context, t *task) (err error) {
			if scrub {
				t.report, err = w.c.Run(ctx, opaque.RunOptions{})
			} else {
				t.report, err = w.c.Verify(ctx, opaque.RunOptions{})
			}
			return err
		})
	}
}

func (w *world) query(asked string, cond index.Condition[Account]) {
	t := w.spawn(fmt.Sprintf("%d find %s", len(w.tasks), asked), func(ctx context.Context, t *task) error {
		t.result = map[string]bool{}
		for a, err := range w.c.Find(ctx, cond) {
			if err != nil {
				return err
			}
			t.result[a.ID] = true
		}
		return nil
	})
	t.asked = asked
}
