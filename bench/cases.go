package bench

import (
	"context"

	"github.com/lockstep-go/lockstep/index"
)

// Case is one thing to measure on both sides.
type Case struct {
	Name     string
	Baseline string  // what is done by hand
	Bar      float64 // the least ratio that the library promises
	Callers  int     // at the same time
	// Ours and Theirs do it once, and give how many records that was.
	Ours, Theirs func(context.Context) (int, error)
	// whole says that one call is a round of its own.
	whole bool
}

// callers is how many callers write or read at the same time.
const callers = 32

// byWatch is how a record is changed by hand so that no index is left wrong.
const byWatch = "WATCH, GET, MULTI: SREM, SET, SADD, ZADD"

// Cases are everything that is measured, memory aside. Those that read the whole data come first, while both sides have
// equally much of it.
func (w *World) Cases() []Case {
	one := func(fn func(context.Context) error) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) { return 1, fn(ctx) }
	}
	return []Case{
		{
			Name: "verify", Baseline: "SCAN and MGET of every record", Bar: 0.4, Callers: 1, whole: true,
			Ours: w.verify, Theirs: w.hand.readAll,
		},
		{
			Name: "newest 20 with records", Baseline: "ZREVRANGE, MGET", Bar: 0.85, Callers: callers,
			Ours: one(w.newest), Theirs: one(w.newestByHand),
		},
		{
			Name: "put that changes a value, 32 callers", Baseline: byWatch, Bar: 1.2, Callers: callers,
			Ours: one(w.putOver(w.items)), Theirs: one(w.putOverByHand),
		},
		{
			Name: "update", Baseline: byWatch, Bar: 1.4, Callers: callers,
			Ours: one(w.update(w.items)), Theirs: one(w.updateByHand),
		},
		{
			Name: "put that changes what others wrote", Baseline: byWatch, Bar: 1, Callers: callers,
			Ours: one(w.putOver(w.others)), Theirs: one(w.putOverByHand),
		},
		{
			Name: "update of what others wrote", Baseline: byWatch, Bar: 1, Callers: callers,
			Ours: one(w.update(w.others)), Theirs: one(w.updateByHand),
		},
		{
			Name: "put new, 32 callers", Baseline: "MULTI: SET, SADD, ZADD", Bar: 0.7, Callers: callers,
			Ours:   one(func(ctx context.Context) error { return w.items.Put(ctx, w.fresh(1)[0]) }),
			Theirs: one(func(ctx context.Context) error { return w.hand.put(ctx, w.fresh(1)[0]) }),
		},
		{
			Name: "put many by 200", Baseline: "a pipeline of SET, SADD, ZADD", Bar: 0.8, Callers: 1,
			Ours:   func(ctx context.Context) (int, error) { return batchSize, w.putMany(ctx, w.fresh(batchSize)) },
			Theirs: func(ctx context.Context) (int, error) { return batchSize, w.hand.putMany(ctx, w.fresh(batchSize)) },
		},
	}
}

// putOver puts a new state over that of a record.
func (w *World) putOver(c *index.Collection[item]) func(context.Context) error {
	return func(ctx context.Context) error { return c.Put(ctx, newItem(w.known(), fill)) }
}

func (w *World) putOverByHand(ctx context.Context) error {
	next := newItem(w.known(), fill)
	return w.hand.change(ctx, next.ID, func(i *item) { *i = next })
}

// update changes one field of a record.
func (w *World) update(c *index.Collection[item]) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Update(ctx, idOf(w.known()), func(i *item) error { i.change(); return nil })
		return err
	}
}

func (w *World) updateByHand(ctx context.Context) error {
	return w.hand.change(ctx, idOf(w.known()), (*item).change)
}
