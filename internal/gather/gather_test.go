package gather

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// held is a call that waits until the test lets it go.
type held struct {
	requests []*int
	ctx      context.Context //nolint:containedctx // of the call
	release  chan struct{}
}

// holding gives a Gatherer whose calls wait for the test, and where they turn up.
func holding(limit, most int) (*Gatherer[*int], chan *held) {
	calls := make(chan *held, 10)
	return New(limit, most, func(ctx context.Context, requests []*int) {
		h := &held{requests, ctx, make(chan struct{})}
		calls <- h
		<-h.release
		for _, r := range requests {
			*r++
		}
	}), calls
}

func number(n int) *int { return &n }

// queued waits until so many requests wait.
func queued(t *testing.T, g *Gatherer[*int], n int) {
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.queue) == n
	}, 5*time.Second, time.Millisecond)
}

func TestRequestsWaitForACallAndShareTheNext(t *testing.T) {
	g, calls := holding(1, 2)
	ctx := t.Context()
	var wg sync.WaitGroup
	submit := func(r *int) {
		wg.Go(func() {
			if g.Submit(ctx, r, nil) != Ended || *r%10 != 1 {
				t.Errorf("request %d", *r)
			}
		})
	}
	submit(number(0))
	first := <-calls
	require.Len(t, first.requests, 1, "a caller alone goes at once")
	require.Equal(t, ctx, first.ctx, "under its own context")
	for n := range 3 {
		submit(number(10 * (n + 1)))
		queued(t, g, n+1)
	}
	close(first.release)
	second := <-calls
	require.Equal(t, []*int{number(10), number(20)}, second.requests, "in order, at most as many as a call takes")
	close(second.release)
	third := <-calls
	require.Equal(t, []*int{number(30)}, third.requests)
	close(third.release)
	wg.Wait()
}

func TestSoManyCallsRunAtOnce(t *testing.T) {
	for limit, want := range map[int]int{1: 1, 3: 3, -1: 5} {
		g, calls := holding(limit, 10)
		var wg sync.WaitGroup
		submit := func() { wg.Go(func() { g.Submit(context.Background(), number(0), nil) }) }
		running := make([]*held, want)
		for i := range running {
			submit()
			running[i] = <-calls
		}
		for range 5 - want {
			submit()
		}
		if want < 5 {
			queued(t, g, 5-want)
		}
		for _, h := range running {
			close(h.release)
		}
		if want < 5 {
			close((<-calls).release)
		}
		wg.Wait()
		require.Empty(t, calls)
	}
}

func TestACallerLeavesWithoutItsRequestOrAlone(t *testing.T) {
	g, calls := holding(1, 10)
	outcome := func(ctx context.Context) chan Outcome {
		c := make(chan Outcome, 1)
		go func() { c <- g.Submit(ctx, number(0), nil) }()
		return c
	}
	first := outcome(context.Background())
	h := <-calls
	ctx, cancel := context.WithCancel(t.Context())
	early := outcome(ctx)
	queued(t, g, 1)
	cancel()
	require.Equal(t, NotSent, <-early)

	ctx, cancel = context.WithCancel(t.Context())
	leaves, stays := outcome(ctx), outcome(context.Background())
	queued(t, g, 2)
	close(h.release)
	require.Equal(t, Ended, <-first)
	h = <-calls
	require.Len(t, h.requests, 2, "the one that left is not among them")
	cancel()
	require.Equal(t, OnItsWay, <-leaves)
	require.NoError(t, h.ctx.Err(), "the call goes on for the other")
	close(h.release)
	require.Equal(t, Ended, <-stays)
}

func TestACallEndsWithItsLastCaller(t *testing.T) {
	g, calls := holding(1, 10)
	go g.Submit(context.Background(), number(0), nil)
	h := <-calls
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if g.Submit(ctx, number(0), nil) != OnItsWay {
				t.Error("left, but its call did not go on")
			}
		})
	}
	queued(t, g, 2)
	close(h.release)
	h = <-calls
	cancel()
	wg.Wait()
	<-h.ctx.Done()
	close(h.release)
}

func TestARequestMayEndBeforeItsCall(t *testing.T) {
	ends := make(chan func(), 1)
	g, calls := holding(1, 10)
	go g.Submit(context.Background(), number(0), nil)
	h := <-calls
	done := make(chan Outcome)
	go func() { done <- g.Submit(context.Background(), number(0), func(end func()) { ends <- end }) }()
	end := <-ends
	close(h.release)
	h = <-calls
	end()
	require.Equal(t, Ended, <-done)
	close(h.release)
}
