package opaque_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memkv"
)

// The simulator runs the library's own code over a store in memory. Every operation is a task; every call of the store and
// every pause is a point where a seeded scheduler decides which task goes on and what becomes of the call: it happens, is
// refused, is cut off before or after it happens, arrives later, or its task crashes. Between two steps the clock may jump,
// calls that were cut off arrive, and keys are evicted or the store is restarted. After each step the invariants are checked.

// simEntity is small on purpose: two records and two values of each index meet all the time.
func simEntity(lifetime time.Duration) *index.Entity[Account] {
	return index.Define("sim", "a", index.Options[Account]{
		ID: func(a Account) string { return a.ID }, Version: 1, Lifetime: lifetime,
		Indexes: []index.Index[Account]{ByStatus, ByEmail},
	})
}

var (
	simMortal   = simEntity(simLifetime)
	simImmortal = simEntity(index.Forever)
	simIDs      = []string{"r1", "r2"}
)

const (
	simGrace    = 30 * time.Millisecond
	simPending  = 400 * time.Millisecond
	simLifetime = 300 * time.Millisecond
	simSteps    = 4000
)

// simConfig is what a world is like beside its seed.
type simConfig struct {
	without opaque.Safeguard
	bare    bool // tokens start again after a restart
}

type world struct {
	rng     *rand.Rand
	now     time.Time
	kv      *memkv.Store
	c       *opaque.Collection[Account]
	mortal  bool
	crash   bool // kinds of trouble in this world
	cuts    bool
	restart bool
	evict   bool
	jumps   bool
	tasks   []*task
	late    []memkv.Call
	changed bool // a write has reached the store since the last check
	records map[string]opaque.Record
	raw     map[string]string
	commits map[int]int // by number of the write
	lost    bool        // index keys were evicted: what is missing may be missing
	wrong   string      // the first violation
	trace   func(format string, args ...any)
}

type task struct {
	w       *world
	name    string
	n       int // number of the write
	run     func(ctx context.Context) error
	resume  func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	verdict memkv.Verdict
	call    memkv.Call // what it waits for; Op is "" in a pause
	crashed bool
	done    bool
	unsure  bool // one of its calls was cut
	err     error
	// seen are the ids that had a value while the task ran, at some state and at all states.
	seen   map[string]map[string]bool
	always map[string]map[string]bool
	result map[string]bool // ids that a query gave
	asked  string          // index:value of a query
	report *opaque.Report
}

type taskKey struct{}

func newWorld(seed uint64, cfg simConfig) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 0x5eed)), now: time.UnixMilli(1_800_000_000_000),
		records: map[string]opaque.Record{}, raw: map[string]string{}, commits: map[int]int{},
		trace: func(string, ...any) {},
	}
	trouble := w.rng.IntN(16)
	w.crash, w.cuts, w.jumps = trouble&1 != 0, trouble&2 != 0, trouble&4 != 0
	switch w.rng.IntN(8) {
	case 0:
		w.restart = true
	case 1:
		w.evict = true
	case 2, 3:
		w.mortal = true
	}
	w.kv = memkv.New(memkv.Options{Now: func() time.Time { return w.now }, Hook: w.hook, BareTokens: cfg.bare})
	e := simImmortal
	if w.mortal {
		e = simMortal
	}
	o := opaque.Options{Grace: simGrace, PendingLifetime: simPending, IDBuckets: 1, Lease: time.Hour, ReadRepairs: 2, Attempts: 60}
	if w.evict {
		o.Lease = time.Nanosecond
		if w.rng.IntN(2) == 0 {
			o.Suspect = opaque.CheckUnique
		}
	}
	o = opaque.Testing(o, func() time.Time { return w.now }, w.wait, cfg.without)
	var err error
	if w.c, err = opaque.Open(context.Background(), w.kv, e, o); err != nil {
		w.fail("open: %v", err)
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

func taskOf(ctx context.Context) *task {
	t, _ := ctx.Value(taskKey{}).(*task)
	return t
}

// hook hands the call to the scheduler and comes back with its verdict.
func (w *world) hook(ctx context.Context, call memkv.Call) memkv.Verdict {
	t := taskOf(ctx)
	if t == nil {
		return memkv.Do
	}
	verdict := t.give(call)
	if call.Op != memkv.Get && call.Op != memkv.Life && (verdict == memkv.Do || verdict == memkv.CutAfter) {
		w.changed = true
	}
	return verdict
}

func (t *task) give(call memkv.Call) memkv.Verdict {
	if t.crashed {
		return memkv.Refuse
	}
	t.call = call
	if !t.yield(struct{}{}) {
		t.crashed = true
		return memkv.Refuse
	}
	return t.verdict
}

var errCrashed = errors.New("crashed")

func (w *world) wait(ctx context.Context, d time.Duration) error {
	t := taskOf(ctx)
	if t == nil {
		w.now = w.now.Add(d)
		return nil
	}
	if t.give(memkv.Call{}); t.crashed {
		return errCrashed
	}
	w.now = w.now.Add(simGrace / 3)
	return nil
}

// spawn adds a task.
func (w *world) spawn(name string, run func(ctx context.Context, t *task) error) *task {
	t := &task{w: w, name: name, n: len(w.tasks) + 100, seen: map[string]map[string]bool{}, always: map[string]map[string]bool{}}
	t.run = func(ctx context.Context) error { return run(ctx, t) }
	w.tasks = append(w.tasks, t)
	return t
}

// begin runs a task up to its first call.
func (t *task) begin() {
	for value, ids := range t.w.holders() {
		t.seen[value], t.always[value] = set(ids), set(ids)
	}
	ctx := context.WithValue(context.Background(), taskKey{}, t)
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		t.err = t.run(ctx)
		t.done = true
	})
	t.resume()
}

func set(ids []string) map[string]bool {
	out := map[string]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out
}

// step lets one task go on to its next call.
func (w *world) step(t *task, faults bool) {
	t.verdict = memkv.Do
	if faults && t.call.Op != "" {
		switch n := w.rng.IntN(100); {
		case w.crash && n < 4:
			w.trace("%s crashes before %s %s", t.name, t.call.Op, t.call.Key)
			t.crashed = true
			t.stop()
			t.done = true
			w.observe()
			return
		case w.cuts && n < 14:
			t.verdict = []memkv.Verdict{memkv.CutFirst, memkv.CutFirst, memkv.CutAfter, memkv.Refuse}[w.rng.IntN(4)]
			if t.verdict == memkv.CutFirst && t.call.Op != memkv.Get && t.call.Op != memkv.Life {
				t.unsure = true
				w.late = append(w.late, t.call)
			}
		}
	}
	w.trace("%s: %s %s (%d) %q", t.name, t.call.Op, t.call.Key, t.verdict, short(t.call.Value))
	t.resume()
	if t.done {
		w.trace("%s ends: %v", t.name, t.err)
	}
	w.observe()
}

func short(v []byte) string {
	if len(v) > 0 && v[0] == '{' {
		return "descriptor"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(v))
}

// event is something that happens beside the tasks.
func (w *world) event() {
	switch n := w.rng.IntN(60); {
	case n < 4 && len(w.late) > 0:
		w.arrive()
	case n == 5 && w.jumps:
		w.now = w.now.Add(simGrace + time.Millisecond)
		w.trace("the clock jumps over the grace")
		w.changed = true
	case n == 6 && w.jumps && w.rng.IntN(2) == 0:
		w.now = w.now.Add(simPending + time.Millisecond)
		w.trace("the clock jumps over lifetimes")
		w.changed = true
	case n == 7 && w.restart:
		w.trace("the store restarts")
		w.kv.Restart()
		w.late = nil // what was on its way went to the old process
		w.changed = true
	}
	w.observe()
}

// arrive applies a call that was cut off.
func (w *world) arrive() {
	i := w.rng.IntN(len(w.late))
	call := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	w.trace("late: %s %s %q", call.Op, call.Key, short(call.Value))
	w.kv.Apply(call)
	w.changed = true
	w.observe()
}
