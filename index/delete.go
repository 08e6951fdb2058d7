package index

import (
	"context"

	"github.com/lockstep-go/lockstep/lua"
)

// Delete removes a record and every entry that was written for it, whatever is declared today, in one atomic step. A
// record that does not exist is no error; what is left of one that vanished is removed. With IfToken a record that is in
// another state stays (ErrChanged).
//
// Cost: one round trip with IfToken, if there is nothing, or if the collection knows the record's entries as for Put, else
// two.
func (c *Collection[T]) Delete(ctx context.Context, id string, o ...WriteOption) error {
	w := c.prepareDelete(id)
	if err := w.options(o); err != nil && w.err == nil {
		w.err = c.fail(w.op, id, "", err)
	}
	return c.submit(ctx, w)
}

func (c *Collection[T]) prepareDelete(id string) *write {
	w := &write{op: "delete", id: id, mode: lua.Delete, writeID: newWriteID(), lifetime: lua.Forever}
	var err error
	if w.key, err = c.keyOf(id); err != nil {
		w.err = c.fail(w.op, id, "", err)
	}
	return w
}
