package index

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
)

// DefaultDirectWrites is how many single writes of a collection are on their way at once before others are gathered.
const DefaultDirectWrites = 3

// gatherer lets the single writes of concurrent callers share round trips: while enough calls are on their way, further
// writes wait in a queue, and the next call takes all of them. A caller alone never waits. Each record keeps its own
// conditions, outcome and atomicity; only the trip is shared. (Databases know it as group commit.)
type gatherer struct {
	limit int // calls at once; negative: nothing is gathered

	mu      sync.Mutex
	running int
	queue   []*gathered
}

// gathered is one write that waits for a shared call.
type gathered struct {
	*write
	ctx  context.Context //nolint:containedctx // of a caller that waits for it
	call *sharedCall     // nil while it is queued
	done chan struct{}
}

// sharedCall is a call on behalf of several callers; it ends early when all of them have gone.
type sharedCall struct {
	waiting int
	cancel  context.CancelFunc
}

// submit brings a single write to its end, alone or together with those of other callers.
func (c *Collection[T]) submit(ctx context.Context, w *write) error {
	if w.err != nil {
		return w.err
	}
	g := &c.gather
	if g.limit < 0 {
		c.apply(ctx, []*write{w})
		return w.err
	}
	g.mu.Lock()
	if g.running < g.limit {
		g.running++
		g.mu.Unlock()
		defer c.shareNext()
		c.apply(ctx, []*write{w})
		return w.err
	}
	w.value = bytes.Clone(w.value) // a caller who leaves may use its bytes again while they wait
	q := &gathered{write: w, ctx: ctx, done: make(chan struct{})}
	w.ended = sync.OnceFunc(func() { close(q.done) })
	g.queue = append(g.queue, q)
	g.mu.Unlock()

	select {
	case <-q.done:
		return w.err
	case <-ctx.Done():
		return c.leave(ctx, q)
	}
}

// leave takes a caller out whose context is done before its write is.
func (c *Collection[T]) leave(ctx context.Context, q *gathered) error {
	g := &c.gather
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	default:
	}
	cause := context.Cause(ctx)
	if q.call == nil {
		g.queue = slices.DeleteFunc(g.queue, func(other *gathered) bool { return other == q })
		return c.fail(q.op, q.id, "", fmt.Errorf("not sent: %w", cause))
	}
	if q.call.waiting--; q.call.waiting == 0 {
		q.call.cancel()
	}
	return c.fail(q.op, q.id, "", fmt.Errorf("%w: %w", ErrUnknown, cause))
}

// shareNext ends a call and starts the next one for the writes that wait.
func (c *Collection[T]) shareNext() {
	g := &c.gather
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.running--
		return
	}
	n := min(len(g.queue), batchRecords)
	batch := slices.Clone(g.queue[:n])
	g.queue = append(g.queue[:0], g.queue[n:]...)
	// The call belongs to all of its callers: it outlives the one whose values it carries, and ends with the last.
	ctx, cancel := context.WithCancel(context.WithoutCancel(batch[0].ctx))
	call := &sharedCall{waiting: n, cancel: cancel}
	writes := make([]*write, n)
	for i, q := range batch {
		q.call = call
		writes[i] = q.write
	}
	go func() {
		defer c.shareNext()
		defer cancel()
		c.apply(ctx, writes)
	}()
}
