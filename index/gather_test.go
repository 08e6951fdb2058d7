package index_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestWritesOfManyCallersShareRoundTrips(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		rdb := s.Client(t)
		c, err := index.Open(context.Background(), rdb, items, index.OpenOptions{DirectWrites: 1})
		require.NoError(t, err)
		counter := redistest.Count(rdb)
		var wg sync.WaitGroup
		for n := range 200 {
			wg.Go(func() {
				if err := c.Put(context.Background(), item{ID: fmt.Sprint("i", n), Color: "red", Code: fmt.Sprint("c", n)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Less(t, counter.Trips(), 150)
		verify(t, rdb)
	})
}

// TestAGatheredWriteFailsAlone mixes writes that must fail with good ones in shared calls.
func TestAGatheredWriteFailsAlone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items, index.OpenOptions{DirectWrites: 1})
		require.NoError(t, c.Put(ctx, item{ID: "holder", Color: "red", Code: "taken"}))
		require.NoError(t, rdb.Set(ctx, "acme:item:{item}:~color.1:foreign:v1", "x", 0).Err())
		var wg sync.WaitGroup
		for n := range 60 {
			wg.Go(func() {
				var err, want error
				id := fmt.Sprint("i", n)
				switch n % 4 {
				case 0:
					err, want = c.Create(ctx, item{ID: id, Color: "red", Code: "taken"}), index.ErrConflict
				case 1:
					err, want = c.Replace(ctx, item{ID: id, Color: "red"}), index.ErrNotFound
				case 2:
					err, want = c.Put(ctx, item{ID: id, Color: "foreign"}), index.ErrKeyType
				default:
					err = c.Put(ctx, item{ID: id, Color: "red"})
				}
				if !errors.Is(err, want) {
					t.Errorf("write %d: %v, want %v", n, err, want)
				}
			})
		}
		wg.Wait()
		require.NoError(t, rdb.Del(ctx, "acme:item:{item}:~color.1:foreign:v1").Err())
		n, err := c.Count(ctx, byColor.Is("red"))
		require.NoError(t, err)
		require.EqualValues(t, 16, n)
		verify(t, rdb)
	})
}

// TestACallerThatGivesUpLeavesTheOthersAlone holds the server still while calls are queued and on their way.
func TestACallerThatGivesUpLeavesTheOthersAlone(t *testing.T) {
	s := redistest.Redis(t)
	ignore := goleak.IgnoreCurrent()
	ctx := context.Background()
	rdb := s.Client(t, func(o *redis.UniversalOptions) { o.ReadTimeout = 10 * time.Second })
	c, err := index.Open(ctx, rdb, items, index.OpenOptions{DirectWrites: 1})
	require.NoError(t, err)
	require.NoError(t, c.Put(ctx, item{ID: "warm", Color: "red"}))

	s.Stop(t)
	first := make(chan error, 1)
	go func() { first <- c.Put(ctx, item{ID: "first", Color: "red"}) }()
	require.Eventually(t, func() bool { return rdb.PoolStats().TotalConns > rdb.PoolStats().IdleConns }, 5*time.Second, time.Millisecond)
	queued, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	started := time.Now()
	err = c.Put(queued, item{ID: "queued", Color: "red"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, index.ErrUnknown, "it never left the queue")
	require.Less(t, time.Since(started), time.Second)

	// Two more share the next call; one of them leaves while it is on its way.
	stays := make(chan error, 1)
	leaves := make(chan error, 1)
	leaving, leave := context.WithCancel(ctx)
	go func() { stays <- c.Put(ctx, item{ID: "stays", Color: "red"}) }()
	go func() { leaves <- c.Put(leaving, item{ID: "leaves", Color: "red"}) }()
	s.Continue(t)
	require.NoError(t, <-first)
	leave()
	require.NoError(t, <-stays)
	if err := <-leaves; err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err = c.Get(ctx, "queued")
	require.ErrorIs(t, err, index.ErrNotFound)
	verify(t, rdb)
	require.NoError(t, rdb.Close())
	goleak.VerifyNone(t, ignore)
}

func TestReadsOfManyCallersShareRoundTrips(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		rdb := s.Client(t)
		c, err := index.Open(ctx, rdb, items, index.OpenOptions{DirectReads: 1})
		require.NoError(t, err)
		const n = 60
		for i := range n {
			require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("i", i), Color: fmt.Sprint("c", i%3), Code: fmt.Sprint("k", i)}))
		}
		require.NoError(t, rdb.Set(ctx, "acme:item:{item}:broken:v1", "{", 0).Err())
		require.NoError(t, rdb.Del(ctx, "acme:item:{item}:list:v1").Err())
		require.NoError(t, rdb.RPush(ctx, "acme:item:{item}:list:v1", "x").Err())
		_ = rdb.ScriptFlush(ctx) // a script that the server has forgotten is sent again, by each call for itself
		counter := redistest.Count(rdb)
		var wg sync.WaitGroup
		check := func(what string, err, want error, ok bool) {
			if !errors.Is(err, want) || want == nil && err != nil || !ok {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		for i := range n {
			id := fmt.Sprint("i", i)
			wg.Go(func() {
				got, err := c.Get(ctx, id)
				check("get", err, nil, got.ID == id)
			})
			wg.Go(func() {
				got, err := c.Read(ctx, id)
				check("read", err, nil, got.Record.ID == id && got.Token != "" && got.Expires.IsZero())
			})
			wg.Go(func() {
				got, err := c.One(ctx, byCode.Is(fmt.Sprint("k", i)))
				check("one", err, nil, got.ID == id)
			})
			wg.Go(func() {
				n, err := c.Count(ctx, byColor.Is("c1"))
				check("count", err, nil, n == 20)
			})
			// What is wrong with one of them is nobody else's.
			wg.Go(func() {
				_, err := c.Read(ctx, []string{"none", "broken", "list"}[i%3])
				check("bad read", err, []error{index.ErrNotFound, index.ErrUndecodable, index.ErrKeyType}[i%3], true)
			})
		}
		wg.Wait()
		require.Less(t, counter.Trips(), 4*n, "six round trips each when alone")
	})
}

func TestUpdatesOfManyCallersShareTheirReadsAndNoneIsLost(t *testing.T) {
	redistest.EachAtOnce(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		c, rdb := open(t, s, items, index.OpenOptions{DirectReads: 1, DirectWrites: 1})
		for i := range 4 {
			require.NoError(t, c.Put(ctx, item{ID: fmt.Sprint("i", i), Color: "red"}))
		}
		var wg sync.WaitGroup
		for i := range 80 {
			wg.Go(func() {
				_, err := c.Update(ctx, fmt.Sprint("i", i%4), func(x *item) error { x.Tags = append(x.Tags, fmt.Sprint("t", i)); return nil })
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for i := range 4 {
			got, err := c.Get(ctx, fmt.Sprint("i", i))
			require.NoError(t, err)
			require.Len(t, got.Tags, 20)
		}
		verify(t, rdb)
	})
}
