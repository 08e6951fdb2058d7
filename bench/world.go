package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/repair"
)

// World holds the same records twice on one server: in a collection and by hand. Everything lies under one owner.
type World struct {
	rdb     redis.UniversalClient
	owner   string
	items   *index.Collection[item]
	others  *index.Collection[item] // the same records, as a process has them that has written none
	hand    byHand
	records int64        // that both sides begin with: numbers 0 to records-1
	next    atomic.Int64 // number of the next new record, of either side

	memory *Result
}

// Open fills both sides with so many records under an owner, which must be nobody else's: Close removes all of its keys.
// If Open fails, it has removed them itself.
func Open(ctx context.Context, rdb redis.UniversalClient, owner string, records int) (w *World, err error) {
	if records < batchSize {
		return nil, fmt.Errorf("%d records: at least %d", records, batchSize)
	}
	w = &World{rdb: rdb, owner: owner, hand: newByHand(rdb, owner), records: int64(records)}
	w.next.Store(w.records)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close(ctx))
		}
	}()
	if w.items, err = index.Open(ctx, rdb, items(owner), index.OpenOptions{AssumeEmpty: true}); err != nil {
		return w, err
	}
	if w.others, err = index.Open(ctx, rdb, items(owner), index.OpenOptions{RowCacheBytes: -1, RecordCacheBytes: -1}); err != nil {
		return w, err
	}
	return w, w.fill(ctx)
}

// Close removes every key.
func (w *World) Close(ctx context.Context) error { return remove(ctx, w.rdb, w.owner+":") }

// fill writes the first records of both sides and compares what they take.
func (w *World) fill(ctx context.Context) error {
	start, known := dataset(ctx, w.rdb)
	if err := w.each(func(batch []item) error { return w.putEach(ctx, batch) }); err != nil {
		return err
	}
	middle, _ := dataset(ctx, w.rdb)
	if err := w.each(func(batch []item) error { return w.hand.putMany(ctx, batch) }); err != nil {
		return err
	}
	end, still := dataset(ctx, w.rdb)
	if ours, theirs := middle-start, end-middle; known && still && ours > 0 && theirs > 0 {
		n := float64(w.records)
		w.memory = &Result{
			Name: "memory", Unit: "bytes/record", Baseline: "the plain keys", Bar: 1.25, AtMost: true,
			PerS: ours / n, BaselinePerS: theirs / n, Ratio: ours / theirs,
		}
	}
	return nil
}

// each gives the first records in batches, the same for both sides up to chance.
func (w *World) each(fn func([]item) error) error {
	for from := int64(0); from < w.records; from += batchSize {
		batch := make([]item, min(batchSize, w.records-from))
		for i := range batch {
			batch[i] = newItem(from+int64(i), fill)
		}
		if err := fn(batch); err != nil {
			return err
		}
	}
	return nil
}

// fresh gives records that neither side has.
func (w *World) fresh(n int64) []item {
	first := w.next.Add(n) - n
	batch := make([]item, n)
	for i := range batch {
		batch[i] = newItem(first+int64(i), fill)
	}
	return batch
}

// known is the number of a record that both sides have.
func (w *World) known() int64 { return rand.Int64N(w.records) } //nolint:gosec // chance, not secrecy

func (w *World) putMany(ctx context.Context, batch []item) error {
	outcomes, err := w.items.PutMany(ctx, batch)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// putEach writes records by single calls, which the collection remembers.
func (w *World) putEach(ctx context.Context, batch []item) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(callers)
	for _, i := range batch {
		g.Go(func() error { return w.items.Put(ctx, i) })
	}
	return g.Wait()
}

func (w *World) newest(ctx context.Context) error {
	p, err := w.items.Top(ctx, recent.Newest(pageSize))
	if err == nil && (len(p.Items) != pageSize || !p.Complete) {
		err = fmt.Errorf("a page of %d records, complete: %t", len(p.Items), p.Complete)
	}
	return err
}

func (w *World) newestByHand(ctx context.Context) error {
	page, err := w.hand.newest(ctx, pageSize)
	if err == nil && len(page) != pageSize {
		err = fmt.Errorf("a page of %d records", len(page))
	}
	return err
}

func (w *World) verify(ctx context.Context) (int, error) {
	r, err := repair.Verify(ctx, w.items, repair.Options{})
	if err == nil && !r.Clean() {
		err = fmt.Errorf("verify found %d entries that are wrong", r.Found())
	}
	return int(r.Records), err
}
