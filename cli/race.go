package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// The race: writers that change and delete the same few orders. All of it is measured, nothing is written down here.
const (
	raceWriters = 16
	raceOrders  = 20
	raceWrites  = 2000 // of each contender
	raceDeletes = 8    // one write in so many is a delete
	raceKills   = 12   // one write in so many is by a client that is killed on the way
)

var raceStatuses = []string{"new", "paid", "sent", "closed"}

// order is the record of the race, indexed by status and ranked by total.
type order struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Total  int64  `json:"total"`
}

// contender is one way to keep record, set and sorted set together.
type contender struct {
	name  string
	steps int // calls of one write, among which a client is killed
	// writer makes one client program on a connection.
	writer func(ctx context.Context, rdb redis.UniversalClient) (writer, error)
	// read gives all that the contender has stored.
	read func(ctx context.Context, rdb redis.UniversalClient) (stored, error)
}

// writer is a client program of the race.
type writer struct {
	put    func(context.Context, order) error
	remove func(ctx context.Context, id string) error
}

// raceResult is what came of one contender.
type raceResult struct {
	name   string
	rate   float64 // acknowledged writes a second
	killed int64
	damage damage
}

// race lets the writers of one contender write, each with a connection of its own, and counts the damage afterwards by
// reading everything again.
func (d *demo) race(c contender) (raceResult, error) {
	result := raceResult{name: c.name}
	ctx, stop := context.WithCancel(d.ctx)
	defer stop()
	var left, done, killed atomic.Int64
	left.Store(int64(d.s.app.raceWrites))
	failed := make(chan error, raceWriters)
	var ready, all sync.WaitGroup
	start := make(chan struct{})
	for range raceWriters {
		ready.Add(1)
		all.Go(func() {
			begun := sync.OnceFunc(ready.Done)
			defer begun()
			if err := d.raceWriter(ctx, c, func() { begun(); <-start }, &left, &done, &killed); err != nil {
				failed <- err
				stop()
			}
		})
	}
	ready.Wait()
	began := time.Now()
	close(start)
	all.Wait()
	took := time.Since(began)
	select {
	case err := <-failed:
		return result, fmt.Errorf("the race, %s: %w", c.name, err)
	default:
	}
	if err := d.ctx.Err(); err != nil {
		return result, err
	}
	result.rate, result.killed = float64(done.Load())/took.Seconds(), killed.Load()
	found, err := c.read(d.ctx, d.rdb)
	result.damage = found.damage()
	return result, err
}

// raceWriter is one writer: a client program that is started again whenever it was killed.
func (d *demo) raceWriter(ctx context.Context, c contender, wait func(), left, done, killed *atomic.Int64) error {
	rdb, err := d.dial(ctx)
	if err != nil {
		return err
	}
	defer rdb.Close()
	life := &mortal{}
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(life) }) // a WATCH sees only these
	} else {
		rdb.AddHook(life)
	}
	w, err := c.writer(ctx, rdb)
	if err != nil {
		return err
	}
	wait()
	for left.Add(-1) >= 0 {
		write, end := context.WithCancel(ctx)
		life.begin(rand.IntN(raceKills) == 0, rand.IntN(c.steps+1), end) //nolint:gosec // chance, not secrecy
		err := raceWrite(write, w)
		end()
		switch dead := life.dead(); {
		case dead:
			killed.Add(1)
		case err == nil:
			done.Add(1)
		case ctx.Err() != nil:
			return ctx.Err()
		case !ofData(err): // lost against other writers too often: not written
			return err
		}
	}
	return nil
}

// raceWrite makes one write of a random order.
func raceWrite(ctx context.Context, w writer) error {
	id := raceID(rand.IntN(raceOrders)) //nolint:gosec // chance, not secrecy
	if rand.IntN(raceDeletes) == 0 {    //nolint:gosec // as above
		return w.remove(ctx, id)
	}
	return w.put(ctx, order{id, raceStatuses[rand.IntN(len(raceStatuses))], rand.Int64N(10_000)}) //nolint:gosec // as above
}

// errKilled stands for the end of a process: nothing of it runs any more.
var errKilled = errors.New("the client was killed")

// mortal is a hook that lets a client die: after some calls it sends nothing more and gets no reply, as a process that
// was killed between two commands.
type mortal struct {
	mu     sync.Mutex
	doomed bool
	calls  int // that it still lives for
	end    context.CancelFunc
}

// begin starts a life: an endless one, or one of so many calls.
func (m *mortal) begin(doomed bool, calls int, end context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doomed, m.calls, m.end = doomed, calls, end
}

// dead reports whether the life ended.
func (m *mortal) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.doomed && m.calls < 0
}

// step is one call: it reports whether the client still lives to send it.
func (m *mortal) step() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.doomed {
		return true
	}
	if m.calls--; m.calls >= 0 {
		return true
	}
	m.end()
	return false
}

// DialHook implements redis.Hook.
func (m *mortal) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (m *mortal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !m.step() {
			cmd.SetErr(errKilled)
			return errKilled
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (m *mortal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !m.step() {
			for _, cmd := range cmds {
				cmd.SetErr(errKilled)
			}
			return errKilled
		}
		return next(ctx, cmds)
	}
}
