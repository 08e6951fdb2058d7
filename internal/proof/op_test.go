package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/index"
)

// kind is what one operation of a program does.
type kind string

const (
	put        kind = "put"
	create     kind = "create"
	replace    kind = "replace"
	update     kind = "update"
	remove     kind = "delete"
	putIf      kind = "put if token"
	removeIf   kind = "delete if token"
	putMany    kind = "put many"
	removeMany kind = "delete many"
	get        kind = "get"
	one        kind = "one"
	find       kind = "find"
	top        kind = "top"

	// What incidents do, past the library.
	vanish    kind = "vanish"     // the record is evicted
	loseRow   kind = "lose row"   // the manifest loses it
	loseEntry kind = "lose entry" // an index key loses the id
)

// op is one operation. Recs are the states that it writes, or names by id and value.
type op struct {
	Kind kind
	Recs []thing
	N    int
}

func (o op) String() string { return fmt.Sprintf("%s %d %+v", o.Kind, o.N, o.Recs) }

// chooser makes the choices of a program: a seed's, or those of a test that shrinks.
type chooser func(what string, n int) int

var (
	writing   = []kind{put, put, create, replace, update, update, remove, putIf, removeIf, putMany, putMany, removeMany}
	reading   = []kind{get, one, find, top}
	incidents = []kind{vanish, loseRow, loseEntry}
)

// someOp chooses an operation of the kinds.
func someOp(choose chooser, kinds []kind, serial int) op {
	o := op{Kind: kinds[choose("kind", len(kinds))], N: choose("n", 6)}
	n := 1
	if o.Kind == putMany || o.Kind == removeMany {
		n = 1 + choose("records", 4)
	}
	for i := range n {
		x := someThing(choose)
		x.Stamp = fmt.Sprintf("%d.%d", serial, i)
		o.Recs = append(o.Recs, x)
	}
	return o
}

// someThing chooses a state of a record: few ids and few values, so that they meet.
func someThing(choose chooser) thing {
	text := func(what, prefix string, n int) string { return fmt.Sprint(prefix, choose(what, n)) }
	x := thing{
		ID: text("id", "i", 7), Color: text("color", "c", 3), Score: choose("score", 5), Fine: int64(choose("fine", 5)) - 2,
		Group: text("group", "g", 2), Heat: choose("heat", 4),
	}
	if choose("foreign", 25) == 24 {
		x.Color = "foreign"
	}
	if r := choose("region", 3); r > 0 {
		x.Region = fmt.Sprint("r", r)
	}
	if c := choose("code", 4); c > 0 {
		x.Code = fmt.Sprint("k", c)
	}
	for i := range choose("tags", 3) {
		if tag := text("tag", "t", 3); i == 0 || x.Tags[0] != tag {
			x.Tags = append(x.Tags, tag)
		}
	}
	return x
}

// result is what the library said: an error for each record of a write, and what a read gave.
type result struct {
	errs     []error
	things   []thing
	ids      []string
	complete bool
	count    int64
	done     bool // an incident happened
}

// run does one operation through the library.
func (w *world) run(o op) (r result) {
	ctx := context.Background()
	x := o.Recs[0]
	var err error
	switch o.Kind {
	case put:
		err = w.c.Put(ctx, x)
	case create:
		err = w.c.Create(ctx, x)
	case replace:
		err = w.c.Replace(ctx, x)
	case update:
		_, err = w.c.Update(ctx, x.ID, x.over)
	case remove:
		err = w.c.Delete(ctx, x.ID)
	case putIf, removeIf:
		var snap index.Snapshot[thing]
		if snap, err = w.c.Read(ctx, x.ID); err != nil {
			break
		}
		if o.Kind == putIf {
			err = w.c.Put(ctx, x, index.IfToken(snap.Token))
		} else {
			err = w.c.Delete(ctx, x.ID, index.IfToken(snap.Token))
		}
	case putMany, removeMany:
		var outcomes []index.Outcome
		if o.Kind == putMany {
			outcomes, _ = w.c.PutMany(ctx, o.Recs)
		} else {
			var ids []string
			for _, x := range o.Recs {
				ids = append(ids, x.ID)
			}
			outcomes, _ = w.c.DeleteMany(ctx, ids)
		}
		for _, out := range outcomes {
			r.errs = append(r.errs, out.Err)
		}
		return r
	case get:
		x, err = w.c.Get(ctx, x.ID)
		r.things = []thing{x}
	case one:
		x, err = w.c.One(ctx, byCode.Is(x.Code))
		r.things = []thing{x}
	case find, top:
		err = w.query(o, &r)
	default:
		r.done = w.incident(o)
	}
	r.errs = []error{err}
	return r
}

// over is what an update makes of a record: the fields of x, and one more on the counter.
func (x thing) over(rec *thing) error {
	count := rec.Count + 1
	*rec = x
	rec.Count = count
	return nil
}

// query reads an index chosen by the operation's number.
func (w *world) query(o op, r *result) (err error) {
	ctx, x := context.Background(), o.Recs[0]
	if o.Kind == top {
		page, err := w.c.Top(ctx, o.order())
		r.complete = page.Complete
		for _, item := range page.Items {
			r.things = append(r.things, item.Record)
		}
		return err
	}
	cond := byColor.Is(x.Color)
	switch o.N % 3 {
	case 1:
		cond = byRegion.In("r1", "r2")
	case 2:
		cond = byTag.Is("t1")
	}
	for x, err := range w.c.Find(ctx, cond) {
		if err != nil {
			return err
		}
		r.things = append(r.things, x)
	}
	for id, err := range w.c.IDs(ctx, cond) {
		if err != nil {
			return err
		}
		r.ids = append(r.ids, id)
	}
	slices.Sort(r.ids)
	r.count, err = w.c.Count(ctx, cond)
	return err
}

// order is the order that a top operation asks for.
func (o op) order() index.Order[thing] {
	switch o.N {
	case 0:
		return byScore.Top(keptScores)
	case 1:
		return byScore.Bottom(2)
	case 2:
		return byFine.Top(3)
	case 3:
		return byFine.Bottom(10)
	case 4:
		return byHeat.Of(o.Recs[0].Group).Bottom(keptHeats)
	}
	return byHeat.Of(o.Recs[0].Group).Top(1)
}

// incident does to the store what no program does, and reports whether there was something to do. A record that has lost
// its row does not vanish too: what is left then only repair can find.
func (w *world) incident(o op) bool {
	ctx, id := context.Background(), o.Recs[0].ID
	now, alive := w.stored(id)
	hasRow, err := w.direct.HExists(ctx, manifest, id).Result()
	if err != nil || !alive || !hasRow {
		return false
	}
	switch o.Kind {
	case vanish:
		err = w.direct.Del(ctx, recordKey(id)).Err()
	case loseRow:
		err = w.direct.HDel(ctx, manifest, id).Err()
	case loseEntry:
		err = w.direct.SRem(ctx, space+"~color.1:"+now.Color+version, id).Err()
	}
	if err != nil {
		w.t.Fatalf("%s: %v", o, err)
	}
	return true
}

// is reports which of the known causes an error has.
func is(err, target error) bool {
	return target == nil && err == nil || target != nil && errors.Is(err, target)
}
