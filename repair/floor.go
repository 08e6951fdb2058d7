package repair

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// floor is a ranked key that has trimmed, with the best live records outside of it. Its mark was read before the first record
// was: if its counter is the same at the end, nothing has been trimmed meanwhile, and whatever is outside has been seen.
type floor struct {
	mark  lua.Floor
	d     declared
	best  []candidate
	limit int
}

// candidate is an entry that was trimmed.
type candidate struct {
	plan.Placed
	id, key string
}

// readFloors notes the floors of the declared indexes.
func (p *pass) readFloors(ctx context.Context) error {
	for cursor := uint64(0); ; {
		page, err := lua.Call(ctx, func() (*redis.ScanCmd, error) {
			page := p.rdb.HScan(ctx, p.part.Floor(), cursor, "", scanCount)
			return page, page.Err()
		})
		if err != nil {
			return p.readError(ctx, p.part.Floor(), err)
		}
		fields, next := page.Val()
		for i := 0; i+1 < len(fields); i += 2 {
			if d, ok := p.current(fields[i]); ok && (p.only == "" || p.only == nameIn(fields[i])) {
				p.floors[fields[i]] = &floor{mark: lua.ParseFloor(fields[i+1]), d: d, limit: d.bound.Keep + lua.MaxListed}
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// offer notes a live record that is outside. The caller holds the lock of the pass.
func (f *floor) offer(c candidate) {
	f.best = append(f.best, c)
	if len(f.best) >= 4*f.limit+64 {
		f.cut()
	}
}

// cut sorts the candidates, best first, each once, and leaves as many as the key may hold and its floor name.
func (f *floor) cut() {
	slices.SortFunc(f.best, func(a, b candidate) int {
		return f.d.bound.Compare(f.d.kind, b.Score, member(b.Token, b.id), a.Score, member(a.Token, a.id))
	})
	f.best = slices.CompactFunc(f.best, func(a, b candidate) bool { return a.id == b.id && a.Placed == b.Placed })
	f.best = f.best[:min(len(f.best), f.limit)]
}

// refill takes trimmed entries back where a ranked key holds fewer than it may, and lowers its floor to the best that is
// still outside.
func (p *pass) refill(ctx context.Context) error {
	p.phase(Floors, int64(len(p.floors)))
	for body, f := range p.floors {
		if err := p.refillKey(ctx, body, f); err != nil {
			return err
		}
		p.advance(1)
	}
	p.phaseOver()
	return nil
}

func (p *pass) refillKey(ctx context.Context, body string, f *floor) error {
	f.cut()
	k, err := p.part.Entry(body)
	if err != nil {
		return nil //nolint:nilerr // a damaged field of the floor hash names no key
	}
	cmds, err := p.ask(ctx, func(pipe redis.Pipeliner) { pipe.ZCard(ctx, k) })
	if err != nil {
		return err
	}
	size, err := cmds[0].(*redis.IntCmd).Result()
	if err != nil {
		return nil //nolint:nilerr // a foreign value, reported as such
	}
	room := min(max(0, f.d.bound.Keep-int(size)), len(f.best))
	taken := make([]*suspect, room)
	for i, c := range f.best[:room] {
		taken[i] = &suspect{id: c.id, key: c.key, refill: c.Token}
	}
	if err := p.examine(ctx, taken); err != nil {
		return err
	}
	var outside []lua.Pair
	for i, c := range f.best {
		if i < room && taken[i].refilled {
			continue
		}
		score := c.Score
		if f.d.kind == plan.Lexical {
			score = "0"
		}
		outside = append(outside, lua.Pair{Member: member(c.Token, c.id), Score: score})
	}
	// Of as many candidates as are remembered, more may have been seen.
	to := f.mark.Lowered(outside, len(f.best) == f.limit)
	if to == f.mark.Raw {
		return nil
	}
	err = p.run.Refloor(ctx, p.part.Floor(), body, f.mark.Counter(), to)
	if errors.Is(err, lua.ErrMoved) {
		return nil // something was trimmed meanwhile: the key is full
	}
	return err
}
