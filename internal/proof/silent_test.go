package proof

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

// patience is how long a caller waits, and punctual how much longer a call may take than that.
const (
	patience = 60 * time.Millisecond
	punctual = 100 * time.Millisecond
	// noticed is less than the read timeout that would end a call otherwise, and enough for one try on a busy machine.
	noticed = 300 * time.Millisecond
)

// TestACallerIsNotKeptByAServerThatNeverAnswers holds every request, with clients that look at the deadline of a context and
// with those that do not, and ends the caller's context by its deadline and by hand.
func TestACallerIsNotKeptByAServerThatNeverAnswers(t *testing.T) {
	s := redistest.Redis(t)
	p := redistest.NewProxy(t, s)
	x := thing{ID: "i0", Color: "c0", Code: "k1", Group: "g0"}
	calls := map[string]struct {
		writes bool
		call   func(context.Context, *index.Collection[thing]) error
	}{
		"put":    {true, func(ctx context.Context, c *index.Collection[thing]) error { return c.Put(ctx, x) }},
		"create": {true, func(ctx context.Context, c *index.Collection[thing]) error { return c.Create(ctx, x) }},
		"delete": {true, func(ctx context.Context, c *index.Collection[thing]) error { return c.Delete(ctx, "i0") }},
		"put many": {true, func(ctx context.Context, c *index.Collection[thing]) error {
			_, err := c.PutMany(ctx, []thing{x})
			return err
		}},
		"update": {true, func(ctx context.Context, c *index.Collection[thing]) error { // of what it remembers
			_, err := c.Update(ctx, "i0", func(*thing) error { return nil })
			return err
		}},
		"update of another record": {false, func(ctx context.Context, c *index.Collection[thing]) error { // ends with its read
			_, err := c.Update(ctx, "i1", func(*thing) error { return nil })
			return err
		}},
		"get": {false, func(ctx context.Context, c *index.Collection[thing]) error { _, err := c.Get(ctx, "i0"); return err }},
		"get many": {false, func(ctx context.Context, c *index.Collection[thing]) error {
			_, err := c.GetMany(ctx, []string{"i0", "i1"})
			return err
		}},
		"one": {false, func(ctx context.Context, c *index.Collection[thing]) error {
			_, err := c.One(ctx, byCode.Is("k1"))
			return err
		}},
		"count": {false, func(ctx context.Context, c *index.Collection[thing]) error {
			_, err := c.Count(ctx, byColor.Is("c0"))
			return err
		}},
		"top": {false, func(ctx context.Context, c *index.Collection[thing]) error {
			_, err := c.Top(ctx, byScore.Top(2))
			return err
		}},
		"find": {false, func(ctx context.Context, c *index.Collection[thing]) error {
			for _, err := range c.Find(ctx, byColor.Is("c0")) {
				return err
			}
			return nil
		}},
		"open": {false, func(ctx context.Context, c *index.Collection[thing]) error {
			_, err := index.Open(ctx, p.Client(t), things, index.OpenOptions{ReadOnly: true})
			return err
		}},
	}
	for _, looks := range []bool{true, false} {
		rdb := p.Client(t, func(o *redis.UniversalOptions) {
			o.ContextTimeoutEnabled, o.ReadTimeout = looks, 400*time.Millisecond
		})
		w := newWorld(t, s, rdb)
		for name, c := range calls {
			for _, byHand := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, client looks %t, by hand %t", name, looks, byHand), func(t *testing.T) {
					defer p.Inject(nil, nil)
					// A machine that is busy may wake a caller late, but not three times in a row.
					var late time.Duration
					for range 3 {
						p.Inject(nil, nil)
						require.NoError(t, w.c.Put(t.Context(), x))
						var ended time.Time
						ctx, cancel := context.WithCancel(t.Context())
						if byHand {
							time.AfterFunc(patience, cancel)
							ended = time.Now().Add(patience)
						} else {
							ctx, cancel = context.WithTimeout(ctx, patience)
							ended, _ = ctx.Deadline()
						}
						p.Inject(redistest.Data, redistest.Every(1, 1, redistest.Fault{Kind: redistest.Swallow}))
						err := c.call(ctx, w.c)
						late = time.Since(ended)
						require.Error(t, err)
						require.ErrorIs(t, err, context.Cause(ctx))
						cancel()
						if sent, _ := p.Seen(); sent > 0 {
							require.Equal(t, c.writes, errors.Is(err, index.ErrUnknown), "%v", err)
						} else {
							t.Log("on a slow machine it never left")
						}
						if late < punctual {
							return
						}
					}
					require.Less(t, late, punctual)
				})
			}
		}
	}
}

// TestACallerWhoseWriteNeverLeftIsToldSo ends contexts before the write was sent: before the call, in the queue for a shared
// call, and in the queue for a connection.
func TestACallerWhoseWriteNeverLeftIsToldSo(t *testing.T) {
	s := redistest.Redis(t)
	p := redistest.NewProxy(t, s)
	rdb := p.Client(t, func(o *redis.UniversalOptions) {
		o.ContextTimeoutEnabled, o.ReadTimeout, o.PoolSize, o.PoolTimeout = false, 500*time.Millisecond, 1, 5*time.Second
	})
	for name, limit := range map[string]int{"a shared call": 1, "a connection": -1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, s, rdb, index.OpenOptions{Retry: index.Retry{Budget: -1}, DirectWrites: limit})
			over, cancel := context.WithCancel(t.Context())
			cancel()
			err := w.c.Put(over, thing{ID: "i0", Color: "c0", Group: "g0"})
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, index.ErrUnknown)

			p.Inject(redistest.Data, redistest.Every(1, 1, redistest.Fault{Kind: redistest.Swallow}))
			first := make(chan error, 1)
			go func() { first <- w.c.Put(context.Background(), thing{ID: "i1", Color: "c0", Group: "g0"}) }()
			require.Eventually(t, func() bool { n, _ := p.Seen(); return n == 1 }, 5*time.Second, time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			started := time.Now()
			err = w.c.Put(ctx, thing{ID: "i2", Color: "c0", Group: "g0"})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, index.ErrUnknown)
			require.Less(t, time.Since(started)-patience, noticed)
			require.ErrorIs(t, <-first, index.ErrUnknown, "it was sent")
			p.Inject(nil, nil)
			require.Empty(t, w.findings())
		})
	}
}

// TestAGatheredCallerIsNotKeptByAServerThatNeverAnswers lets callers share a call that is not answered. One leaves alone, the
// other has its answer when the server is back.
func TestAGatheredCallerIsNotKeptByAServerThatNeverAnswers(t *testing.T) {
	s := redistest.Redis(t)
	ignore := goleak.IgnoreCurrent()
	p := redistest.NewProxy(t, s)
	rdb := p.Client(t, func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled, o.ReadTimeout = false, 400*time.Millisecond })
	w := newWorld(t, s, rdb, index.OpenOptions{Retry: patient, DirectWrites: 1})
	rec := func(id string) thing { return thing{ID: id, Color: "c0", Group: "g0"} }

	// The first call holds the others up until they are queued; theirs is the second request.
	p.Inject(redistest.Writes, func(n int, _ string) redistest.Fault {
		switch n {
		case 1:
			return redistest.Fault{Kind: redistest.Delay, For: patience / 2}
		case 2:
			return redistest.Fault{Kind: redistest.DropReply}
		}
		return redistest.Fault{}
	})
	first, stays := make(chan error, 1), make(chan error, 1)
	go func() { first <- w.c.Put(context.Background(), rec("i0")) }()
	require.Eventually(t, func() bool { n, _ := p.Seen(); return n == 1 }, 5*time.Second, 100*time.Microsecond)
	go func() { stays <- w.c.Put(context.Background(), rec("i1")) }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	started := time.Now()
	err := w.c.Put(ctx, rec("i2"))
	late := time.Since(started) - 2*patience
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, index.ErrUnknown)
	require.Less(t, late, noticed)
	require.NoError(t, <-first)
	require.NoError(t, <-stays, "the repeat finds its own write")
	for _, id := range []string{"i0", "i1", "i2"} {
		_, alive := w.stored(id)
		require.True(t, alive, id)
	}
	require.Empty(t, w.findings())
	require.NoError(t, rdb.Close())
	require.NoError(t, w.direct.Close())
	p.CutAll()
	goleak.VerifyNone(t, ignore, goleak.IgnoreAnyFunction("github.com/lockstep-go/lockstep/internal/redistest.(*Proxy).accept"))
}

// TestACallThatWasLeftEndsWithTheReadTimeout looks for goroutines that outlive it.
func TestACallThatWasLeftEndsWithTheReadTimeout(t *testing.T) {
	s := redistest.Redis(t)
	p := redistest.NewProxy(t, s)
	rdb := p.Client(t, func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled, o.ReadTimeout = false, 300*time.Millisecond })
	w := newWorld(t, s, rdb)
	require.NoError(t, w.c.Put(t.Context(), thing{ID: "i0", Color: "c0", Group: "g0"}))
	p.Inject(redistest.Data, redistest.Every(1, 1, redistest.Fault{Kind: redistest.Swallow}))
	left := 0
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := w.c.Get(ctx, "i0"); errors.Is(err, context.DeadlineExceeded) {
			left++
		}
		cancel()
	}
	require.Positive(t, left)
	p.Inject(nil, nil)
	require.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "lockstep/lua.Await")
	}, 5*time.Second, 10*time.Millisecond)
}

// TestACallerWhoLeftMayUseItsBytesAgain has a codec that hands out the bytes of the record itself. The caller leaves while its
// write waits, and uses them for something else.
func TestACallerWhoLeftMayUseItsBytesAgain(t *testing.T) {
	s := redistest.Redis(t)
	p := redistest.NewProxy(t, s)
	rdb := p.Client(t, func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = false })
	raw := index.Define("acme", "raw", index.Options[[]byte]{
		ID: func([]byte) string { return "i0" }, Version: 1, Lifetime: index.Forever,
		Codec: index.Codec[[]byte]{
			Encode: func(rec []byte) ([]byte, error) { return rec, nil },
			Decode: func(_ string, b []byte) ([]byte, error) { return b, nil },
		},
	})
	newWorld(t, s, rdb) // for its scripts
	c, err := index.Open(t.Context(), rdb, raw, index.OpenOptions{DirectWrites: 1, Retry: patient})
	require.NoError(t, err)
	p.Inject(redistest.Writes, func(n int, _ string) redistest.Fault {
		if n > 2 {
			return redistest.Fault{}
		}
		return redistest.Fault{Kind: redistest.Delay, For: time.Duration(n) * 2 * patience}
	})
	// Both wait for the first call and then share the next. It writes one of them, as they have one id, and is held up.
	first, stays := make(chan error, 1), make(chan error, 1)
	go func() { first <- c.Put(context.Background(), []byte("first")) }()
	require.Eventually(t, func() bool { n, _ := p.Seen(); return n == 1 }, 5*time.Second, 100*time.Microsecond)
	go func() { stays <- c.Put(context.Background(), []byte("stays")) }()
	require.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ".submit(") == 2
	}, time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	mine := []byte("mine")
	require.ErrorIs(t, c.Put(ctx, mine), index.ErrUnknown)
	copy(mine, "XXXX")
	require.NoError(t, <-first)
	require.NoError(t, <-stays)
	require.Eventually(t, func() bool { got, err := c.Get(t.Context(), "i0"); return err == nil && string(got) == "mine" }, 5*time.Second, time.Millisecond)
}
