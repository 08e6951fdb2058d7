package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// stored is everything that a contender of the race has on the server.
type stored struct {
	records map[string]order
	sets    map[string]map[string]bool // status -> ids
	totals  map[string]float64         // id -> score
}

func newStored() stored {
	return stored{map[string]order{}, map[string]map[string]bool{}, map[string]float64{}}
}

// damage counts what does not fit together, entry by entry.
type damage struct {
	missing, stale, orphan, misranked int
	twoSets                           int // ids in more than one set
}

// damage holds records and entries against each other, both ways.
func (s stored) damage() damage {
	var d damage
	for id, o := range s.records {
		if !s.sets[o.Status][id] {
			d.missing++
		}
		total, ranked := s.totals[id]
		switch {
		case !ranked:
			d.missing++
		case total != float64(o.Total):
			d.misranked++
		}
	}
	sets := map[string]int{}
	for status, ids := range s.sets {
		for id := range ids {
			sets[id]++
			o, exists := s.records[id]
			switch {
			case !exists:
				d.orphan++
			case o.Status != status:
				d.stale++
			}
		}
	}
	for _, n := range sets {
		if n > 1 {
			d.twoSets++
		}
	}
	for id := range s.totals {
		if _, exists := s.records[id]; !exists {
			d.orphan++
		}
	}
	return d
}

// add reads one key of a contender into what is stored: a record, the set of a status, or the sorted set.
func (s stored) add(ctx context.Context, rdb redis.UniversalClient, k, status string) error {
	kind, err := rdb.Type(ctx, k).Result()
	if err != nil {
		return err
	}
	switch kind {
	case "string":
		raw, err := rdb.Get(ctx, k).Bytes()
		if err != nil {
			return err
		}
		var o order
		if err := json.Unmarshal(raw, &o); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		s.records[o.ID] = o
	case "set":
		ids, err := rdb.SMembers(ctx, k).Result()
		if err != nil {
			return err
		}
		s.sets[status] = map[string]bool{}
		for _, id := range ids {
			s.sets[status][id] = true
		}
	case "zset":
		all, err := rdb.ZRangeWithScores(ctx, k, 0, -1).Result()
		if err != nil {
			return err
		}
		for _, z := range all {
			s.totals[fmt.Sprint(z.Member)] = z.Score
		}
	}
	return nil
}
