package proof

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

// sweepStep is how far apart the faults of one run of a program are, in requests as they would be without faults. A fault
// costs one request more, so that runs that begin at 1 .. sweepStep have had one at every request; one run more, because an
// answer that was lost may save a request later.
const sweepStep = 12

// fault is one kind of fault that a program is swept with. lost says that the server has run what it struck.
type fault struct {
	name string
	redistest.Fault
	lost    bool
	always  bool     // part of the short form in full: every request of the program
	counted []string // the requests that it strikes, redistest.Data if empty
}

var faults = []fault{
	{name: "cut before the server has it", Fault: redistest.Fault{Kind: redistest.CutBefore}, always: true},
	{name: "cut after the server ran it", Fault: redistest.Fault{Kind: redistest.CutAfter}, lost: true, always: true},
	{name: "half-close after the server ran it", Fault: redistest.Fault{Kind: redistest.HalfClose}, lost: true},
	{name: "reply dropped", Fault: redistest.Fault{Kind: redistest.DropReply}, lost: true},
	{name: "never handed on, never answered", Fault: redistest.Fault{Kind: redistest.Swallow}},
	{name: "delayed", Fault: redistest.Fault{Kind: redistest.Delay, For: time.Millisecond}},
	{name: "NOSCRIPT", Fault: redistest.Fault{Kind: redistest.Answer, Text: "NOSCRIPT No matching script"}, counted: []string{"evalsha", "evalsha_ro"}},
	{name: "TRYAGAIN", Fault: redistest.Fault{Kind: redistest.Answer, Text: "TRYAGAIN Multiple keys request during rehashing of slot"}},
	{name: "READONLY", Fault: redistest.Fault{Kind: redistest.Answer, Text: "READONLY You can't write against a read only replica."}},
	{name: "LOADING", Fault: redistest.Fault{Kind: redistest.Answer, Text: "LOADING Redis is loading the dataset in memory"}},
	{name: "BUSY", Fault: redistest.Fault{Kind: redistest.Answer, Text: "BUSY Redis is busy running a script"}},
}

// silent faults end with the client's read timeout.
func (f fault) silent() bool { return f.Kind == redistest.DropReply || f.Kind == redistest.Swallow }

func (f fault) strikes() []string {
	if f.counted == nil {
		return redistest.Data
	}
	return f.counted
}

// sweepWorld is a server behind a proxy. Only a client that waits for an answer that never comes is impatient: a timeout in
// the middle of a call that is merely slow would be a fault of another kind.
func sweepWorld(t testing.TB, impatient bool) (*world, *redistest.Proxy) {
	s := redistest.Redis(t)
	p := redistest.NewProxy(t, s)
	rdb := p.Client(t, func(o *redis.UniversalOptions) {
		o.PoolSize = 4
		if impatient {
			o.ReadTimeout = 40 * time.Millisecond
		}
	})
	return newWorld(t, s, rdb), p
}

// aProgram is the mixed program of 200 operations that is swept. Its counters are updated from where a write has set them.
func aProgram(seed uint64) []op {
	r := random(seed)
	return someProgram(func(_ string, n int) int { return r.IntN(n) }, 200, writing, writing, reading)
}

// TestACutAtAnyRequestNeitherLosesNorRepeatsAWrite runs one program of 200 operations with a fault at every request in turn,
// of every kind. After each operation the library must have said what a map of records says, so that a write that was
// repeated and took itself for a stranger shows, and so does an update that was counted twice.
func TestACutAtAnyRequestNeitherLosesNorRepeatsAWrite(t *testing.T) {
	for seed := range seeds(t, 1, 1, 20) {
		program := aProgram(seed)
		var unknown sync.Map
		// The kinds run side by side: most of their time is waiting.
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, f := range faults {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					struck, lost := sweep(t, f, program, soaking(t) > 0)
					unknown.Store(f.name, [2]int{struck, lost})
				})
			}
		})
		for _, f := range faults {
			n, _ := unknown.Load(f.name)
			t.Logf("%-40s faults, unknown outcomes: %v", f.name, n)
		}
	}
}

// sweep runs the program until there has been a fault at every request, or at a sample of them, and counts faults and
// unknown outcomes. single gives each run one fault only.
func sweep(t *testing.T, f fault, program []op, single bool) (struck, unknown int) {
	w, p := sweepWorld(t, f.silent())
	run := func(decide redistest.Decide) (requests int) {
		w.fresh()
		p.Inject(f.strikes(), decide)
		m := newModel()
		for i, o := range program {
			r := w.run(o)
			if err := knowable(o, r); err != nil {
				t.Fatalf("operation %d, %s: %v", i, o, err)
			}
			if err := m.step(o, r, w.stored); err != nil {
				t.Fatalf("operation %d, %s: %v", i, o, err)
			}
		}
		requests, faults := p.Seen()
		struck += faults
		unknown += m.unknown
		p.Inject(nil, nil)
		require.NoError(t, m.finish(w))
		return requests
	}
	requests := run(nil)
	require.Greater(t, requests, 200)
	if single {
		for k := 1; k <= requests; k++ {
			run(redistest.At(k, f.Fault))
		}
		require.Equal(t, requests, struck)
		return struck, unknown
	}
	runs := sweepStep + 1
	if !f.always {
		runs = 1
	}
	for first := range runs {
		run(redistest.Every(first+1, sweepStep+1, f.Fault))
	}
	if f.always {
		require.GreaterOrEqual(t, struck, requests, "a fault at every request")
	}
	return struck, unknown
}

// knowable is an error where an outcome is called unknown that can be known. Nobody else writes during a sweep, so only a
// conditional delete is left: that the record is gone may be our work or another's.
func knowable(o op, r result) error {
	for _, err := range r.errs {
		if errors.Is(err, index.ErrUnknown) && o.Kind != removeIf {
			return fmt.Errorf("%w, and it can be known", err)
		}
	}
	return nil
}

// TestACounterUpdatedNTimesHasNWhateverIsCut counts updates through every kind of lost request and reply.
func TestACounterUpdatedNTimesHasNWhateverIsCut(t *testing.T) {
	w, p := sweepWorld(t, false)
	ctx := t.Context()
	const updates = 60
	for _, f := range faults {
		if f.silent() {
			continue
		}
		for step := range 3 {
			w.fresh()
			require.NoError(t, w.c.Put(ctx, thing{ID: "i0", Color: "c0", Group: "g0"}))
			p.Inject(f.strikes(), redistest.Every(1, 2+step, f.Fault))
			for range updates {
				_, err := w.c.Update(ctx, "i0", func(x *thing) error { x.Count++; x.Score++; return nil })
				require.NoError(t, err, f.name)
			}
			p.Inject(nil, nil)
			x, _ := w.stored("i0")
			require.Equal(t, updates, x.Count, f.name)
			require.Empty(t, w.findings())
		}
	}
}

// TestAServerThatAlwaysRefusesEndsInATypedErrorAndNoLoop answers every request with one error.
func TestAServerThatAlwaysRefusesEndsInATypedErrorAndNoLoop(t *testing.T) {
	w, p := sweepWorld(t, false)
	for _, f := range faults {
		if f.Kind != redistest.Answer {
			continue
		}
		w.fresh(index.OpenOptions{Retry: index.Retry{Budget: 40 * time.Millisecond, MinBackoff: time.Millisecond}})
		p.Inject(redistest.Data, redistest.Every(1, 1, f.Fault))
		err := w.c.Put(t.Context(), thing{ID: "i0", Color: "c0"})
		want := index.ErrUnavailable
		if f.name == "READONLY" {
			want = index.ErrReadOnly
		}
		require.ErrorIs(t, err, want, f.name)
		require.NotErrorIs(t, err, index.ErrUnknown, f.name)
		requests, _ := p.Seen()
		if f.name == "NOSCRIPT" {
			require.Equal(t, 2, requests, "the digest, and once the source")
		}
		require.Less(t, requests, 60, f.name)
		p.Inject(nil, nil)
		_, alive := w.stored("i0")
		require.False(t, alive)
	}
}

// TestASweepThatHasGoneBlindIsNoticed holds a wrong answer against the model.
func TestASweepThatHasGoneBlindIsNoticed(t *testing.T) {
	m := newModel()
	o := op{Kind: create, Recs: []thing{{ID: "i0", Color: "c0"}}}
	absent := func(string) (thing, bool) { return thing{}, false }
	require.NoError(t, m.step(o, result{errs: []error{nil}}, absent))
	require.Error(t, m.step(o, result{errs: []error{nil}}, absent), "created twice")
	m = newModel()
	require.Error(t, m.step(o, result{errs: []error{index.ErrExists}}, absent), "a conflict with itself")
	require.True(t, slices.ContainsFunc(faults, fault.silent))
}

// TestTheRetryPolicyThatTheCallerChoseIsKept counts attempts and measures how long a call goes on against a server that never
// takes it.
func TestTheRetryPolicyThatTheCallerChoseIsKept(t *testing.T) {
	w, p := sweepWorld(t, false)
	for name, c := range map[string]struct {
		retry         index.Retry
		least, most   int // attempts
		atLeast, upTo time.Duration
	}{
		"one attempt":    {index.Retry{Budget: -1}, 1, 1, 0, time.Second},
		"a short budget": {index.Retry{Budget: 50 * time.Millisecond, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}, 2, 110, 50 * time.Millisecond, time.Second},
		"rare attempts":  {index.Retry{Budget: 100 * time.Millisecond, MinBackoff: 80 * time.Millisecond, MaxBackoff: 80 * time.Millisecond}, 2, 4, 80 * time.Millisecond, time.Second},
	} {
		w.fresh(index.OpenOptions{Retry: c.retry})
		for what, call := range map[string]func() error{
			"write": func() error { return w.c.Put(t.Context(), thing{ID: "i0", Color: "c0", Group: "g0"}) },
			"query": func() error { _, err := w.c.Count(t.Context(), byColor.Is("c0")); return err },
			"get":   func() error { _, err := w.c.Get(t.Context(), "i0"); return err },
		} {
			p.Inject(redistest.Data, redistest.Every(1, 1, redistest.Fault{Kind: redistest.Answer, Text: "LOADING not yet"}))
			started := time.Now()
			err := call()
			took := time.Since(started)
			attempts, _ := p.Seen()
			p.Inject(nil, nil)
			require.ErrorIs(t, err, index.ErrUnavailable, "%s, %s", name, what)
			require.NotErrorIs(t, err, index.ErrUnknown, "%s, %s", name, what)
			require.GreaterOrEqual(t, attempts, c.least, "%s, %s", name, what)
			require.LessOrEqual(t, attempts, c.most, "%s, %s", name, what)
			require.GreaterOrEqual(t, took, c.atLeast, "%s, %s", name, what)
			require.Less(t, took, c.upTo, "%s, %s", name, what)
		}
	}
}
