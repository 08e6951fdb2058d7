package bench

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options say how long to measure. The zero value is good.
type Options struct {
	// Rounds is how often the two sides take turns: 9 by default.
	Rounds int
	// Round is how long one side has in a round: 200 ms by default.
	Round time.Duration
	// Progress is called when a case begins: its name, and how many of how many are done.
	Progress func(name string, done, total int)
}

// A case whose single call is a round gets fewer rounds, and none that begins after this time.
const (
	wholeRounds = 3
	wholeTime   = 6 * time.Second
)

// Result is what came of one case: the round whose ratio is the median one.
type Result struct {
	Name         string  `json:"name"`
	PerS         float64 `json:"per_s"` // in Unit; bytes for memory
	Baseline     string  `json:"baseline"`
	BaselinePerS float64 `json:"baseline_per_s"`
	Ratio        float64 `json:"ratio"`
	Bar          float64 `json:"bar"`
	Unit         string  `json:"unit"`
	// AtMost says that the ratio should not be above the bar; else it should not be below.
	AtMost bool `json:"at_most"`
	// What the server spent on one record, in microseconds; 0 where it does not tell.
	ServerMicros         float64 `json:"server_us"`
	BaselineServerMicros float64 `json:"baseline_server_us"`
}

// Holds reports whether the bar holds.
func (r Result) Holds() bool {
	if r.AtMost {
		return r.Ratio <= r.Bar
	}
	return r.Ratio >= r.Bar
}

// Run measures every case. It changes and adds records.
func (w *World) Run(ctx context.Context, o Options) ([]Result, error) {
	if o.Rounds < 1 {
		o.Rounds = 9
	}
	if o.Round <= 0 {
		o.Round = 200 * time.Millisecond
	}
	cases := w.Cases()
	var out []Result
	for i, c := range cases {
		if o.Progress != nil {
			o.Progress(c.Name, i, len(cases))
		}
		r, err := w.measure(ctx, c, o)
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	if w.memory != nil {
		out = append(out, *w.memory)
	}
	return out, nil
}

// turn is what one side did in one round.
type turn struct {
	rate   float64 // records a second
	micros float64 // of the server for each
}

// measure lets the two sides of a case take turns.
func (w *World) measure(ctx context.Context, c Case, o Options) (Result, error) {
	rounds := o.Rounds
	if c.whole {
		rounds = min(rounds, wholeRounds)
	}
	start := time.Now()
	type pair struct{ ours, theirs turn }
	var pairs []pair
	for n := range rounds + 1 {
		var p pair
		var err error
		sides := []struct {
			do   func(context.Context) (int, error)
			into *turn
		}{{c.Ours, &p.ours}, {c.Theirs, &p.theirs}}
		if n%2 == 1 { // who comes first changes too
			slices.Reverse(sides)
		}
		for _, side := range sides {
			if *side.into, err = w.turn(ctx, c, side.do, o.Round); err != nil {
				return Result{}, err
			}
		}
		if n > 0 || c.whole { // the first round opens connections and fills caches
			pairs = append(pairs, p)
		}
		if c.whole && (len(pairs) == rounds || time.Since(start) > wholeTime) {
			break
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		x, y := a.ours.rate/a.theirs.rate, b.ours.rate/b.theirs.rate
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	m := pairs[len(pairs)/2]
	return Result{
		Name: c.Name, Unit: "records/s", Baseline: c.Baseline, Bar: c.Bar,
		PerS: m.ours.rate, BaselinePerS: m.theirs.rate, Ratio: m.ours.rate / m.theirs.rate,
		ServerMicros: m.ours.micros, BaselineServerMicros: m.theirs.micros,
	}, nil
}

// turn lets the callers of one side go on for a while.
func (w *World) turn(ctx context.Context, c Case, do func(context.Context) (int, error), d time.Duration) (turn, error) {
	before, known := processor(ctx, w.rdb)
	start := time.Now()
	records, err := Perform(ctx, c.Callers, func(int64) bool { return !c.whole && time.Since(start) < d }, do)
	took := time.Since(start)
	if err != nil {
		return turn{}, err
	}
	t := turn{rate: float64(records) / took.Seconds()}
	if after, still := processor(ctx, w.rdb); known && still {
		t.micros = (after - before) / float64(records)
	}
	return t, nil
}

// Perform calls do from so many callers, each at least once, as long as more says so, which is told how many calls have
// begun before. It gives the number of records.
func Perform(ctx context.Context, callers int, more func(begun int64) bool, do func(context.Context) (int, error)) (int64, error) {
	var begun, records atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range callers {
		g.Go(func() error {
			for first := true; first || more(begun.Load()); first = false {
				begun.Add(1)
				n, err := do(ctx)
				if err != nil {
					return err
				}
				records.Add(int64(n))
			}
			return nil
		})
	}
	err := g.Wait()
	return records.Load(), err
}
