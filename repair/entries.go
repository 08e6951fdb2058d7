package repair

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

// indexKey is an index key met by the scan.
type indexKey struct {
	key     string
	parsed  key.Parsed
	at      int32 // its place among the keys
	body    string
	d       declared
	current bool // of a declared index in its generation
	scored  bool // a ZSET
	open    bool // it has members that no record has accounted for, or something else sits there
}

// seen is a member of an index key, as the entries were read.
type seen struct {
	key  int32 // place in keys
	used bool  // a record accounts for it
}

const (
	keyBatch = 100 // index keys that are read in one round trip
	workers  = 4   // round trips on their way at once
)

// scoreMark tells the scores of a member apart; 0 for a member of a SET.
func scoreMark(score float64) uint64 {
	const odd = 0xd6e8feb86659fd93
	return math.Float64bits(score+0) * odd // -0 is 0
}

// readEntries reads the members of the declared indexes, and the rows of the manifest where they may be written again: what
// is wrong with an entry shows without them.
func (p *pass) readEntries(ctx context.Context) error {
	if p.early != nil {
		p.phase(Entries, int64(len(p.seen)))
		p.advance(len(p.seen))
		p.phaseOver()
		return nil
	}
	if err := p.expectMembers(ctx); err != nil {
		return err
	}
	current, err := p.placeAll(p.keys, 0)
	if err != nil {
		return err
	}
	p.phase(Entries, p.expected)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	if p.fix {
		g.Go(func() error { return p.readRows(gctx) })
	}
	for batch := range slices.Chunk(current, keyBatch) {
		g.Go(func() error {
			return p.readKeys(gctx, batch, p.member)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.phaseOver()
	return nil
}

// expectMembers makes room for the members of index keys.
func (p *pass) expectMembers(ctx context.Context) error {
	rows, err := p.rowCount(ctx)
	if err != nil {
		return err
	}
	p.expected = rows
	p.members = make(map[uint64]int32, 2*rows)
	return nil
}

// rowCount is how many rows the manifest has.
func (p *pass) rowCount(ctx context.Context) (int64, error) {
	rows, err := lua.Call(ctx, func() (int64, error) { return p.rdb.HLen(ctx, p.part.Manifest()).Result() })
	if err != nil {
		return 0, p.readError(ctx, p.part.Manifest(), err)
	}
	return rows, nil
}

// member remembers one member of an index key. The caller holds mu.
func (p *pass) member(_ int, k *indexKey, member string, score float64) {
	p.members[p.mark(k.body, member)^scoreMark(score)] = int32(len(p.seen))
	p.seen = append(p.seen, seen{key: k.at})
}

// placeAll finds out which indexes keys belong to, the first of which is the one at a place among all, and gives those whose
// members are read.
func (p *pass) placeAll(keys []*indexKey, at int) (current []*indexKey, err error) {
	for i, k := range keys {
		if err := p.place(k); err != nil {
			return nil, err
		}
		k.at = int32(at + i)
		if k.open = !k.current; k.current {
			current = append(current, k)
		}
	}
	return current, nil
}

// place finds out which index a key belongs to.
func (p *pass) place(k *indexKey) (err error) {
	var value *key.Value
	if k.parsed.HasValue {
		value = &k.parsed.Value
	}
	if k.body, err = p.space.RankedBody(k.parsed.Index, k.parsed.Gen, value); err != nil {
		return err
	}
	k.d, k.current = p.current(k.body)
	k.scored = k.current && k.d.kind != plan.Set
	return nil
}

// readRows reads the manifest.
func (p *pass) readRows(ctx context.Context) error {
	return p.scanManifest(ctx, func(id, row string) { p.rows[p.mark("", id)] = p.rowMark(row) })
}

// rowMark is what a pass remembers of a row. A damaged one is equal to none.
func (p *pass) rowMark(row string) uint64 {
	if len(row) <= plan.WriteIDSize {
		return 0
	}
	stamp, entries, _ := strings.Cut(row[plan.WriteIDSize:], "\n")
	for _, c := range []byte(stamp) {
		if c < '0' || c > '9' {
			return 0
		}
	}
	if stamp == "" {
		return 0
	}
	return p.mark("row", entries)
}

// scanManifest gives the rows of the manifest, under the lock.
func (p *pass) scanManifest(ctx context.Context, give func(id, row string)) error {
	manifest, cursor := p.part.Manifest(), uint64(0)
	return ahead(ctx, func(ctx context.Context) ([]string, bool, error) {
		cmds, err := p.ask(ctx, func(pipe redis.Pipeliner) { pipe.HScan(ctx, manifest, cursor, "", scanCount) })
		if err != nil {
			return nil, false, err
		}
		fields, next, err := cmds[0].(*redis.ScanCmd).Result()
		if err != nil {
			return nil, false, p.readError(ctx, manifest, err)
		}
		cursor = next
		return fields, next != 0, p.throttle(ctx, len(fields)/2)
	}, func(fields []string) error {
		p.mu.Lock()
		for i := 0; i+1 < len(fields); i += 2 {
			give(fields[i], fields[i+1])
		}
		p.mu.Unlock()
		p.advance(len(fields) / 2)
		return nil
	})
}

// readKeys gives the members of index keys, under the lock: first pages together, further ones key by key. A key of another
// type is left open and gives no members.
func (p *pass) readKeys(ctx context.Context, batch []*indexKey, give func(i int, k *indexKey, member string, score float64)) error {
	pages, err := p.ask(ctx, func(pipe redis.Pipeliner) {
		for _, k := range batch {
			scanPage(ctx, pipe, k, 0)
		}
	})
	if err != nil {
		return err
	}
	for i, k := range batch {
		step := 1
		if k.scored {
			step = 2 // member, score
		}
		cursor := uint64(0)
		taken := func(ctx context.Context, page *redis.ScanCmd) (members []string, more bool, err error) {
			members, cursor, err = page.Result()
			if wrongType(err) {
				k.open = true
				return nil, false, nil
			}
			if err != nil {
				return nil, false, lua.Judge(err)
			}
			return members, cursor != 0, p.throttle(ctx, len(members)/step)
		}
		use := func(members []string) error {
			p.mu.Lock()
			for m := 0; m+step <= len(members); m += step {
				score := 0.0
				if k.scored {
					score, _ = strconv.ParseFloat(members[m+1], 64) // as the server writes it
				}
				give(i, k, members[m], score)
			}
			early := p.progress.Phase == Keys
			p.mu.Unlock()
			if !early {
				p.advance(len(members) / step)
			}
			return nil
		}
		first, more, err := taken(ctx, pages[i].(*redis.ScanCmd))
		if err != nil {
			return err
		}
		_ = use(first) // never fails
		if !more {
			continue
		}
		err = ahead(ctx, func(ctx context.Context) ([]string, bool, error) {
			pages, err := p.ask(ctx, func(pipe redis.Pipeliner) { scanPage(ctx, pipe, k, cursor) })
			if err != nil {
				return nil, false, err
			}
			return taken(ctx, pages[0].(*redis.ScanCmd))
		}, use)
		if err != nil {
			return err
		}
	}
	return nil
}

// scanPage asks for a page of members.
func scanPage(ctx context.Context, rdb redis.Cmdable, k *indexKey, cursor uint64) {
	if k.scored {
		rdb.ZScan(ctx, k.key, cursor, "", scanCount)
	} else {
		rdb.SScan(ctx, k.key, cursor, "", scanCount)
	}
}

// readError names what is wrong with a bookkeeping key that could not be read.
func (p *pass) readError(ctx context.Context, k string, err error) error {
	if wrongType(err) {
		return p.mustBe(ctx, k)
	}
	return lua.Judge(err)
}
