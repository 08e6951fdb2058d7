package repair

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

const (
	scanCount    = 1000 // of a SCAN and its like: enough that round trips do not dominate, few enough to hold up nobody
	batchRecords = 200
	workers      = 4 // batches on their way at once
)

// recordKey is the key of a record with what it tells of the id.
type recordKey struct {
	key, id  string
	digested bool
}

// checkRecords goes over the keyspace: records are held against their entries at once, index keys are kept for later.
func (p *pass) checkRecords(ctx context.Context) error {
	total, err := p.rdb.HLen(ctx, p.part.Manifest()).Result()
	if wrongType(err) {
		return p.mustBe(ctx, p.part.Manifest())
	}
	p.phase(Records, total)
	batches := make(chan []recordKey)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(batches)
		return p.scan(ctx, func(batch []recordKey) error {
			select {
			case batches <- batch:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	for range workers {
		g.Go(func() error {
			for batch := range batches {
				if err := p.checkBatch(ctx, batch); err != nil {
					return err
				}
				p.advance(len(batch))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.phaseOver()
	return nil
}

// scan gives the keys of the records in batches, on every primary, each once as far as memory serves.
func (p *pass) scan(ctx context.Context, give func([]recordKey) error) error {
	size := batchRecords
	if p.limiter != nil {
		size = min(size, max(1, p.o.Rate/10))
	}
	met := map[uint64]struct{}{}
	return p.m.EachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		var batch []recordKey
		for cursor := uint64(0); ; {
			keys, next, err := node.Scan(ctx, cursor, p.space.Prefix()+"*", scanCount).Result()
			if err != nil {
				return lua.Judge(err)
			}
			for _, k := range keys {
				h := p.mark("key", k)
				if _, again := met[h]; again {
					continue // SCAN may give a key twice
				}
				met[h] = struct{}{}
				rec, ok := p.sort(k)
				if !ok {
					continue
				}
				if batch = append(batch, rec); len(batch) < size {
					continue
				}
				if err := p.throttle(ctx, len(batch)); err != nil {
					return err
				}
				if err := give(batch); err != nil {
					return err
				}
				batch = nil
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
		if len(batch) == 0 {
			return nil
		}
		if err := p.throttle(ctx, len(batch)); err != nil {
			return err
		}
		return give(batch)
	})
}

// sort puts a key where it belongs and reports whether it is that of a record.
func (p *pass) sort(k string) (recordKey, bool) {
	parsed, err := p.space.Rules().Parse(k)
	if err != nil {
		if p.ourVersion(k) {
			p.strangers = append(p.strangers, k)
		}
		return recordKey{}, false
	}
	if parsed.Owner != p.space.Owner() || parsed.Entity != p.space.Entity() || parsed.Version != p.space.Version() {
		return recordKey{}, false
	}
	if parsed.Kind != key.KindCatalog && parsed.Tag != p.part.Tag() {
		p.strangers = append(p.strangers, k) // no query looks there
		return recordKey{}, false
	}
	switch parsed.Kind {
	case key.KindRecord:
		if parsed.HasField {
			return recordKey{}, false // kept beside the record by the application
		}
		return recordKey{k, parsed.ID, parsed.Digested}, true
	case key.KindIndex:
		if p.only == "" || parsed.Index == p.only {
			p.keys = append(p.keys, indexKey{k, parsed})
		}
	}
	return recordKey{}, false
}

// ourVersion reports whether a key that is none of the layout ends as keys of another version do.
func (p *pass) ourVersion(k string) bool {
	at := strings.LastIndex(k, ":v")
	if at < 0 {
		return true
	}
	version, err := strconv.Atoi(k[at+2:])
	return err != nil || version == p.space.Version()
}
