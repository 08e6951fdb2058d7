// Package gather lets concurrent callers share round trips: while enough calls are on their way, further requests wait in a
// queue, and the next call takes all of them. A caller alone never waits. (Databases know it as group commit.)
package gather

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// Gatherer makes calls for requests. It is safe for concurrent use.
type Gatherer[R any] struct {
	limit, most int
	call        func(context.Context, []R)

	mu      sync.Mutex
	running int
	queue   []*waiting[R]
}

// New gives a Gatherer that lets limit calls run at once, any number if it is negative, each for at most so many requests.
// call brings requests to their end; it is called by a single caller itself, or by a goroutine that ends with it.
func New[R any](limit, most int, call func(ctx context.Context, requests []R)) *Gatherer[R] {
	return &Gatherer[R]{limit: limit, most: most, call: call}
}

// waiting is a request whose caller waits for a shared call.
type waiting[R any] struct {
	request R
	ctx     context.Context //nolint:containedctx // of a caller that waits for it
	shared  *shared         // nil while it is queued
	done    chan struct{}
	end     func() // closes done, once
}

// shared is a call on behalf of several callers; it ends early when all of them have gone.
type shared struct {
	waiting int
	cancel  context.CancelFunc
}

// Outcome is how a request left.
type Outcome int

// The outcomes. Only an ended request may be looked at: one on its way still belongs to the call.
const (
	Ended    Outcome = iota // the call has brought it to its end
	NotSent                 // its context ended while it was queued
	OnItsWay                // its context ended during the call, which goes on for the others
)

// Submit brings a request to its end, alone or together with those of other callers. queued, which may be nil, is called
// before a request is queued, with a function by which the call may end it before the others.
func (g *Gatherer[R]) Submit(ctx context.Context, request R, queued func(end func())) Outcome {
	if g.limit < 0 {
		g.call(ctx, []R{request})
		return Ended
	}
	g.mu.Lock()
	mine := g.running < g.limit // to make a call
	if mine {
		g.running++
		g.mu.Unlock()
		// Callers that are about to submit too, such as those of the call before, may come along.
		runtime.Gosched()
		g.mu.Lock()
		if len(g.queue) == 0 {
			g.mu.Unlock()
			defer g.next()
			g.call(ctx, []R{request})
			return Ended
		}
	}
	w := &waiting[R]{request: request, ctx: ctx, done: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.done) })
	if queued != nil {
		queued(w.end)
	}
	g.queue = append(g.queue, w)
	if mine {
		g.start()
	}
	g.mu.Unlock()

	select {
	case <-w.done:
		return Ended
	case <-ctx.Done():
		return g.leave(w)
	}
}

// leave takes a caller out whose context is done before its request is.
func (g *Gatherer[R]) leave(w *waiting[R]) Outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.done:
		return Ended
	default:
	}
	if w.shared == nil {
		g.queue = slices.DeleteFunc(g.queue, func(other *waiting[R]) bool { return other == w })
		return NotSent
	}
	if w.shared.waiting--; w.shared.waiting == 0 {
		w.shared.cancel()
	}
	return OnItsWay
}

// next ends a call and starts another one if requests wait.
func (g *Gatherer[R]) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.running--
		return
	}
	g.start()
}

// start makes a call for the requests that wait. The caller holds mu.
func (g *Gatherer[R]) start() {
	n := min(len(g.queue), g.most)
	batch := slices.Clone(g.queue[:n])
	g.queue = append(g.queue[:0], g.queue[n:]...)
	// The call belongs to all of its callers: it outlives the one whose values it carries, and ends with the last.
	ctx, cancel := context.WithCancel(context.WithoutCancel(batch[0].ctx))
	call := &shared{waiting: n, cancel: cancel}
	requests := make([]R, n)
	for i, w := range batch {
		w.shared = call
		requests[i] = w.request
	}
	go func() {
		defer g.next()
		defer cancel()
		g.call(ctx, requests)
		for _, w := range batch {
			w.end()
		}
		runtime.Gosched() // to those who have ended
	}()
}
