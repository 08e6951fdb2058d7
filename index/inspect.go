package index

import (
	"fmt"

	"github.com/lockstep-go/lockstep/lua"
)

// Inspect says what is wrong with the bytes of a record by itself, without asking the store: that they do not decode, have
// no id, ask for values that no index can hold, or are too large. It gives the id as far as there is one. Bytes that pass
// can still meet a conflict when PutEncoded writes them.
func (c *Collection[T]) Inspect(raw []byte) (id string, err error) {
	rec, err := c.entity.options.Codec.Decode("", raw)
	if err != nil {
		return "", &Error{Op: "put", Entity: c.entity.String(), Err: fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	w := c.prepare("put", lua.Put, rec, nil)
	return w.id, w.err
}
