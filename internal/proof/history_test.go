package proof

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

// historian runs histories of concurrent callers: in two processes, one of which shares round trips as soon as it can,
// against one server behind a proxy.
type historian struct {
	t      testing.TB
	w      *world
	proxy  *redistest.Proxy
	cs     []*index.Collection[thing]
	number atomic.Int64
	leave  bool // callers leave before they have their answer

	callers, calls, ids int // of one history
	kinds               []kind
	unknown             atomic.Int64
}

// mixed is what the callers of a history do.
var mixed = []kind{put, put, put, update, update, create, replace, remove, get, get, one}

func newHistorian(t testing.TB, mutate func(redis.UniversalClient), retry index.Retry) *historian {
	s := redistest.Redis(t)
	h := &historian{t: t, proxy: redistest.NewProxy(t, s), callers: 4, calls: 6, ids: historyIDs, kinds: mixed}
	client := func() redis.UniversalClient {
		rdb := h.proxy.Client(t, func(o *redis.UniversalOptions) {
			o.MinRetryBackoff, o.MaxRetryBackoff = 50*time.Microsecond, time.Millisecond
		})
		if mutate != nil {
			mutate(rdb)
		}
		return rdb
	}
	h.w = newWorld(t, s, client(), index.OpenOptions{Retry: retry})
	gathering, err := index.Open(t.Context(), client(), things, index.OpenOptions{Retry: retry, DirectWrites: 1})
	require.NoError(t, err)
	h.cs = []*index.Collection[thing]{h.w.c, gathering}
	return h
}

// strike is the faults of a history: one request in six, cut on either side of the server, refused or held up. The proxy
// tells the client of a cut only when the server has answered, so that none is applied after its caller gave up on it.
func strike(seed uint64) redistest.Decide {
	r := random(seed)
	return func(int, string) redistest.Fault {
		switch r.IntN(24) {
		case 0:
			return redistest.Fault{Kind: redistest.CutBefore}
		case 1:
			return redistest.Fault{Kind: redistest.CutAfter}
		case 2:
			return redistest.Fault{Kind: redistest.HalfClose}
		case 3:
			return redistest.Fault{Kind: redistest.Answer, Text: "TRYAGAIN not now"}
		case 4, 5:
			return redistest.Fault{Kind: redistest.Delay, For: time.Duration(r.IntN(800)) * time.Microsecond}
		}
		return redistest.Fault{}
	}
}

// losing is a decision that loses one reply in four.
func losing(seed uint64) redistest.Decide {
	r := random(seed)
	return func(int, string) redistest.Fault {
		if r.IntN(4) == 0 {
			return redistest.Fault{Kind: redistest.CutAfter}
		}
		return redistest.Fault{}
	}
}

// run plays one history and gives an error if no order of its calls explains it.
func (h *historian) run(seed uint64) error {
	prefix := fmt.Sprintf("h%d-", h.number.Add(1))
	start := time.Now()
	clock := func() int64 { return time.Since(start).Nanoseconds() }
	var mu sync.Mutex
	var history []porcupine.Operation
	var failure error
	var stamps atomic.Int64
	var wg sync.WaitGroup
	for caller := range h.callers {
		r := random(seed + uint64(caller)<<32)
		wg.Go(func() {
			c := h.cs[caller%len(h.cs)]
			for range h.calls {
				in := asked{
					kind:  h.kinds[r.IntN(len(h.kinds))],
					id:    r.IntN(h.ids),
					stamp: int(stamps.Add(1)),
					code:  max(0, r.IntN(historyCodes+2)-1),
				}
				if in.kind == one && in.code == 0 {
					in.code = 1
				}
				ctx, cancel := context.WithCancel(context.Background())
				if h.leave && r.IntN(3) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(700))*time.Microsecond)
				}
				called := clock()
				out, err := h.call(ctx, c, prefix, in)
				returned := clock()
				cancel()
				if out.outcome == unsure {
					h.unknown.Add(1)
					if h.leave {
						returned = math.MaxInt64 // it may still be on its way
					}
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: caller, Input: in, Call: called, Output: out, Return: returned})
				if err != nil && failure == nil {
					failure = fmt.Errorf("%+v: %w", in, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if failure != nil {
		return failure
	}
	switch porcupine.CheckOperationsTimeout(linear.ToModel(), history, 20*time.Second) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return errors.New("not decided in time")
	}
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var lines []string
	for _, o := range history {
		lines = append(lines, fmt.Sprintf("%d %9d-%d %s", o.ClientId, o.Call/1000, o.Return/1000, linear.DescribeOperation(o.Input, o.Output)))
	}
	return fmt.Errorf("no order explains seed %d:\n%s", seed, strings.Join(lines, "\n"))
}

// call makes one call. An error is one that no call may end with.
func (h *historian) call(ctx context.Context, c *index.Collection[thing], prefix string, in asked) (told, error) {
	id := fmt.Sprint(prefix, in.id)
	code := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(prefix, "k", n)
	}
	x := thing{ID: id, Color: fmt.Sprint("c", in.stamp%3), Code: code(in.code), Group: "g", Score: in.stamp, Count: in.code, Stamp: fmt.Sprint(in.stamp)}
	out := told{outcome: done, id: in.id}
	took := func(x thing) { out.stamp, out.code = x.Score, x.Count }
	var err error
	switch in.kind {
	case put:
		err = c.Put(ctx, x)
	case create:
		err = c.Create(ctx, x)
	case replace:
		err = c.Replace(ctx, x)
	case update:
		_, err = c.Update(ctx, id, func(rec *thing) error {
			took(*rec)
			*rec = x
			return nil
		})
	case remove:
		err = c.Delete(ctx, id)
	case get:
		x, err = c.Get(ctx, id)
		took(x)
	case one:
		x, err = c.One(ctx, byCode.Is(x.Code))
		took(x)
		_, _ = fmt.Sscanf(strings.TrimPrefix(x.ID, prefix), "%d", &out.id)
	}
	reads := in.kind == get || in.kind == one
	switch {
	case err == nil:
	case errors.Is(err, index.ErrUnknown) && !reads:
		out.outcome = unsure
	case errors.Is(err, context.DeadlineExceeded) && h.leave:
		out.outcome = unsent
	case errors.Is(err, index.ErrNotFound):
		out.outcome = absent
	case errors.Is(err, index.ErrExists):
		out.outcome = present
	case errors.Is(err, index.ErrConflict):
		out.outcome = taken
	default:
		return out, err
	}
	return out, nil
}

// histories runs many of them, two at a time, and then holds what is left on the server against the records.
func (h *historian) histories(t *testing.T, short, long, share int) {
	slots := make(chan struct{}, 2)
	var wg sync.WaitGroup
	var failed atomic.Bool
	n := 0
	for seed := range seeds(t, short, long, share) {
		if failed.Load() {
			break
		}
		if n%100 == 0 {
			h.proxy.Inject(redistest.Data, strike(seed))
		}
		n++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := h.run(seed); err != nil {
				failed.Store(true)
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, struck := h.proxy.Seen()
	h.proxy.Inject(nil, nil)
	require.Empty(t, h.w.findings())
	t.Logf("%d histories of %d calls, %d unknown outcomes; %d faults in the last hundred", n, h.callers*h.calls, h.unknown.Load(), struck)
}

// TestConcurrentCallersUnderFaultsSeeOneOrderOfEverything checks that some order of the calls of each history explains every
// answer: per record, and for the unique values over all records. A seed repeats the calls and the faults, not the timing.
func TestConcurrentCallersUnderFaultsSeeOneOrderOfEverything(t *testing.T) {
	newHistorian(t, nil, patient).histories(t, 300, 8000, 25)
}

// TestCallersWhoLeaveAreToldTheTruthAboutTheirWrites is the same with callers who give up in the middle of a call: what they
// call unknown may happen at any later time, and what they call not sent never does.
func TestCallersWhoLeaveAreToldTheTruthAboutTheirWrites(t *testing.T) {
	h := newHistorian(t, nil, patient)
	h.leave = true
	h.histories(t, 100, 2000, 10)
}

// TestAHistoryWithAWrongAnswerIsNotExplained gives the checker histories that no store with one order can have.
func TestAHistoryWithAWrongAnswerIsNotExplained(t *testing.T) {
	op := func(at int64, in asked, out told) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: 2 * at, Return: 2*at + 1}
	}
	a := asked{kind: put, id: 0, stamp: 1, code: 1}
	for name, history := range map[string][]porcupine.Operation{
		"a lost write":        {op(1, a, told{outcome: done}), op(2, asked{kind: get}, told{outcome: absent})},
		"two holders":         {op(1, a, told{outcome: done}), op(2, asked{kind: put, id: 1, stamp: 2, code: 1}, told{outcome: done})},
		"a conflict with us":  {op(1, a, told{outcome: done}), op(2, a, told{outcome: taken})},
		"applied twice":       {op(1, a, told{outcome: unsure}), op(2, asked{kind: remove}, told{outcome: done}), op(3, asked{kind: get}, told{outcome: done, stamp: 1, code: 1})},
		"update of old state": {op(1, a, told{outcome: done}), op(2, asked{kind: put, stamp: 2}, told{outcome: done}), op(3, asked{kind: update, stamp: 3}, told{outcome: done, stamp: 1, code: 1})},
	} {
		require.False(t, porcupine.CheckOperations(linear.ToModel(), history), name)
		require.True(t, porcupine.CheckOperations(linear.ToModel(), history[:1]), name)
	}
}
