package cli

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
)

func raceIDs() []string {
	ids := make([]string, raceOrders)
	for i := range ids {
		ids[i] = raceID(i)
	}
	return ids
}

func raceID(i int) string { return fmt.Sprintf("order-%02d", i) }

// orders declares the record of the race.
func orders(owner string) *index.Entity[order] {
	return index.Define(owner, "order", index.Options[order]{
		ID: func(o order) string { return o.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[order]{
			membership.New("status", func(o order) string { return o.Status }),
			ranked.New("total", func(o order) int64 { return o.Total }),
		},
	})
}

// lockstep is the contender that uses the library.
func lockstep(d *demo) contender {
	e := orders(d.owner)
	return contender{
		name: "Lockstep: Put, Delete", steps: 1,
		writer: func(ctx context.Context, rdb redis.UniversalClient) (writer, error) {
			c, err := index.Open(ctx, rdb, e, index.OpenOptions{Retry: index.Retry{Budget: d.s.timeout}, AssumeEmpty: true})
			if err != nil {
				return writer{}, err
			}
			return writer{
				put:    func(ctx context.Context, o order) error { return c.Put(ctx, o) },
				remove: func(ctx context.Context, id string) error { return c.Delete(ctx, id) },
			}, nil
		},
		read: func(ctx context.Context, rdb redis.UniversalClient) (stored, error) {
			s := newStored()
			all, err := d.scan(ctx, e.Space().Prefix())
			if err != nil {
				return s, err
			}
			for _, k := range all {
				p, err := key.Parse(k)
				if err != nil {
					return s, err
				}
				if p.Kind != key.KindRecord && p.Kind != key.KindIndex {
					continue // bookkeeping
				}
				if err := s.add(ctx, rdb, k, p.Value.String()); err != nil {
					return s, err
				}
			}
			return s, nil
		},
	}
}

// raceAll runs the race of every contender and shows what is left of the data.
func (d *demo) raceAll() error {
	d.title("1  The race: %d writers on %d orders, kept in a set by status and in a sorted set by total", raceWriters, raceOrders)
	d.say("  %d writes each way, one in %d a delete, one in %d by a client that is killed between two of its commands.",
		d.s.app.raceWrites, raceDeletes, raceKills)
	d.say("  Afterwards every record, set and sorted set is read again and counted:\n")
	g := grid{
		header: []string{"each write is", "writes/s", "killed", "missing", "stale", "orphan", "wrong score", "ids in two sets"},
		right:  []int{1, 2, 3, 4, 5, 6, 7},
	}
	for _, c := range []contender{
		handWritten(d.owner, "plain", "GET, SREM, SADD, ZADD, SET", 5, plainly),
		handWritten(d.owner, "multi", "GET, then the others in MULTI", 2, inMulti),
		handWritten(d.owner, "watch", "WATCH, GET, MULTI, again if it failed", 4, watching),
		lockstep(d),
	} {
		r, err := d.race(c)
		if err != nil {
			return err
		}
		row := []string{r.name, fmt.Sprintf("%.0f", r.rate), fmt.Sprint(r.killed)}
		for _, n := range []int{r.damage.missing, r.damage.stale, r.damage.orphan, r.damage.misranked, r.damage.twoSets} {
			if n > 0 {
				g.mark(len(g.rows), len(row), bad)
			} else {
				g.mark(len(g.rows), len(row), good)
			}
			row = append(row, fmt.Sprint(n))
		}
		g.rows = append(g.rows, row)
		d.results = append(d.results, r)
	}
	if err := d.s.grid(g, "  "); err != nil {
		return err
	}
	if d.embedded {
		d.say("  (This server interprets scripts in Go, which costs Lockstep most of its pace: --redis URL shows it on Redis.)")
	}
	return nil
}
