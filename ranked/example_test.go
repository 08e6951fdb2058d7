package ranked_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/ranked"
)

// collection opens records with some indexes on a server inside the program.
func collection[T any](name string, id func(T) string, ix ...index.Index[T]) (c *index.Collection[T], done func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	c, err = index.Open(context.Background(), rdb, index.Define("acme:shop", name, index.Options[T]{
		ID: id, Version: 1, Lifetime: index.Forever, Indexes: ix,
	}))
	if err != nil {
		panic(err)
	}
	return c, func() {
		_ = rdb.Close()
		server.Close()
	}
}

type Order struct {
	ID, Customer string
	Placed       time.Time
}

// The latest orders of one customer, page by page.
func ExampleWithin() {
	ctx := context.Background()
	latest := ranked.Within(
		func(o Order) string { return o.Customer },
		ranked.New("latest", func(o Order) time.Time { return o.Placed }, ranked.Keep(100)),
	)
	orders, done := collection("order", func(o Order) string { return o.ID }, latest)
	defer done()

	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i, customer := range []string{"ann", "bob", "ann", "ann", "bob", "ann"} {
		_ = orders.Put(ctx, Order{fmt.Sprint("o", i), customer, noon.Add(time.Duration(i) * time.Hour)})
	}
	page, _ := orders.Top(ctx, latest.Of("ann").Newest(3))
	for _, item := range page.Items {
		fmt.Println(item.ID, item.Record.Placed.Format(time.TimeOnly))
	}
	fmt.Println("complete:", page.Complete)
	page, _ = orders.Top(ctx, latest.Of("ann").Newest(3).After(page.Next))
	fmt.Println("then:", page.Items[0].ID, "and no more:", page.Next == "")
	// Output:
	// o5 17:00:00
	// o3 15:00:00
	// o2 14:00:00
	// complete: true
	// then: o0 and no more: true
}

type Player struct {
	ID     string
	Points int
}

// A leaderboard that keeps the best three. Equal points are ordered by id, and a list that may have lost a place to
// trimming says so.
func ExampleNew() {
	ctx := context.Background()
	board := ranked.New("points", func(p Player) int { return p.Points }, ranked.Keep(3), ranked.Slack(0))
	players, done := collection("player", func(p Player) string { return p.ID }, board)
	defer done()

	show := func() {
		page, _ := players.Top(ctx, board.Top(3))
		for _, item := range page.Items {
			fmt.Print(item.ID, " ", item.Score, ", ")
		}
		fmt.Println("complete:", page.Complete)
	}
	_, _ = players.PutMany(ctx, []Player{{"ann", 70}, {"bob", 90}, {"cem", 70}, {"dora", 40}})
	show()
	better, _ := players.Count(ctx, board.Above(70))
	fmt.Println("rank of ann and of cem:", better+1)
	_, _ = players.Update(ctx, "dora", func(p *Player) error { p.Points += 40; return nil })
	show()
	_ = players.Delete(ctx, "bob") // ann, who was trimmed, belongs here now
	show()
	// Output:
	// bob 90, cem 70, ann 70, complete: true
	// rank of ann and of cem: 2
	// bob 90, dora 80, cem 70, complete: true
	// dora 80, cem 70, complete: false
}

type Session struct {
	ID       string
	LastSeen time.Time
}

// Sessions by the time at which they were last seen: the most recent, and those that are idle.
func ExampleIndex_Below() {
	ctx := context.Background()
	seen := ranked.New("last_seen", func(s Session) time.Time { return s.LastSeen }, ranked.Unit(time.Second))
	sessions, done := collection("session", func(s Session) string { return s.ID }, seen)
	defer done()

	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for id, idle := range map[string]time.Duration{"a": time.Minute, "b": 3 * time.Hour, "c": 0, "d": 2 * time.Hour} {
		_ = sessions.Put(ctx, Session{id, now.Add(-idle)})
	}
	_, _ = sessions.Update(ctx, "b", func(s *Session) error { s.LastSeen = now.Add(time.Second); return nil })

	page, _ := sessions.Top(ctx, seen.Newest(2))
	fmt.Println("newest:", page.Items[0].ID, page.Items[1].ID)
	for s, err := range sessions.Find(ctx, seen.Below(now.Add(-30*time.Minute))) {
		fmt.Println("idle:", s.ID, err)
	}
	n, _ := sessions.Count(ctx, seen.AtLeast(now.Add(-time.Hour)))
	fmt.Println("seen within the hour:", n)
	// Output:
	// newest: b c
	// idle: d <nil>
	// seen within the hour: 3
}

type Job struct {
	ID, State, Worker string
	Added             time.Time
}

var errTaken = errors.New("another worker has it")

// Workers that take the oldest pending job, each job exactly once: a job is in the order only while it is pending, and a
// worker claims one by an update, which another worker's update makes fail.
func ExampleSparse() {
	ctx := context.Background()
	pending := ranked.Sparse("pending", func(j Job) (time.Time, bool) { return j.Added, j.State == "pending" }, ranked.LowestFirst())
	jobs, done := collection("job", func(j Job) string { return j.ID }, pending)
	defer done()

	for i := range 20 {
		_ = jobs.Put(ctx, Job{ID: fmt.Sprintf("job%02d", i), State: "pending", Added: time.Unix(int64(i), 0)})
	}
	take := func(worker string) (Job, error) {
		for {
			page, err := jobs.Top(ctx, pending.Oldest(1))
			if err != nil || len(page.Items) == 0 {
				return Job{}, err
			}
			job, err := jobs.Update(ctx, page.Items[0].ID, func(j *Job) error {
				if j.State != "pending" {
					return errTaken
				}
				j.State, j.Worker = "running", worker
				return nil
			})
			if !errors.Is(err, errTaken) {
				return job, err
			}
		}
	}
	var mu sync.Mutex
	var taken []string
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for {
				job, err := take(fmt.Sprint("worker", w))
				if err != nil || job.ID == "" {
					return
				}
				mu.Lock()
				taken = append(taken, job.ID)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	slices.Sort(taken)
	fmt.Println(len(taken), "taken,", len(slices.Compact(taken)), "different")
	// Output:
	// 20 taken, 20 different
}

type Event struct {
	ID  string
	Seq uint64
}

// Numbers that a float64 cannot hold keep their order.
func ExampleExact() {
	ctx := context.Background()
	bySeq := ranked.Exact("seq", func(e Event) uint64 { return e.Seq })
	events, done := collection("event", func(e Event) string { return e.ID }, bySeq)
	defer done()

	_, _ = events.PutMany(ctx, []Event{{"a", 1<<53 + 1}, {"b", 1 << 53}, {"c", 1<<64 - 1}})
	page, _ := events.Top(ctx, bySeq.Top(10), bySeq.Above(1<<53))
	for _, item := range page.Items {
		fmt.Println(item.ID, item.Score)
	}
	// Output:
	// c 18446744073709551615
	// a 9007199254740993
}
