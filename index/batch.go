package index

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/lua"
)

// maxRemembered is from how many records on a call leaves no memory of them: a load of data is not what is written again
// soon, and must not take the place of what is.
const maxRemembered = 50

// Outcome is what became of one record of a batch.
type Outcome struct {
	ID string
	// Applied says that the store was changed: false for an error, and for the delete of a record that did not exist.
	Applied bool
	Err     error
}

// PutMany puts records, each atomically with its entries, in batches of some hundred per round trip. The outcomes are
// aligned with recs. Records of one id are written in the order given; a unique value that one record gives up can be
// taken by a later one of the same call. One record's error does not stop the others; the error that PutMany returns
// joins all of them, and is nil if every record was written. After an error of the connection the records not yet sent
// are not sent.
//
// Cost: one round trip per 200 records or 1 MiB, and one more for those of a batch that change index values which the
// collection does not know, see Put. Of more than 50 records at once it remembers only those that it knew before.
func (c *Collection[T]) PutMany(ctx context.Context, recs []T) ([]Outcome, error) {
	all := make([]write, len(recs))
	writes := make([]*write, len(recs))
	for i, rec := range recs {
		all[i] = c.prepare("put", lua.Put, rec, nil)
		all[i].bulk = len(recs) > maxRemembered
		writes[i] = &all[i]
	}
	return c.applyMany(ctx, writes)
}

// DeleteMany deletes records as Delete does, in batches. The outcomes are aligned with ids, and tell in Applied whether
// there was something to delete.
func (c *Collection[T]) DeleteMany(ctx context.Context, ids []string) ([]Outcome, error) {
	writes := make([]*write, len(ids))
	for i, id := range ids {
		writes[i] = c.prepareDelete(id)
	}
	return c.applyMany(ctx, writes)
}

func (c *Collection[T]) applyMany(ctx context.Context, writes []*write) ([]Outcome, error) {
	c.apply(ctx, writes)
	out := make([]Outcome, len(writes))
	var errs []error
	for i, w := range writes {
		out[i] = Outcome{w.id, w.applied, w.err}
		if w.err != nil {
			errs = append(errs, w.err)
		}
	}
	return out, errors.Join(errs...)
}
