package index

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // compares bytes with those that the server digests, not a safeguard
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// tokensOf are the entries that the bytes of a record ask for under today's declaration: what to remove where the row
// that would say it is lost.
func (c *Collection[T]) tokensOf(id, value string) ([]plan.Token, error) {
	rec, err := c.decode(id, []byte(value))
	if err != nil {
		return nil, err
	}
	entries, err := c.entriesOf(rec)
	if err != nil {
		return nil, err
	}
	placed, err := plan.Place(c.entity.space, c.schema.Load().indexes, entries)
	if err != nil {
		return nil, err
	}
	return plan.Tokens(placed), nil
}

// entriesOf are the memberships that a record asks for, over all indexes.
func (c *Collection[T]) entriesOf(rec T) ([]plan.Entry, error) {
	all := make([]plan.Entry, 0, len(c.entity.options.Indexes))
	for _, ix := range c.entity.options.Indexes {
		entries, err := ix.Entries(rec)
		if err != nil {
			return nil, &Error{Index: ix.Name(), Err: invalid(err)}
		}
		all = append(all, entries...)
	}
	return all, nil
}

// invalid makes an error of a value match ErrInvalid, unless it says something more exact.
func invalid(err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

func (c *Collection[T]) decode(id string, b []byte) (T, error) {
	rec, err := c.entity.options.Codec.Decode(id, b)
	if err != nil {
		var zero T
		return zero, fmt.Errorf("%w: %w", ErrUndecodable, err)
	}
	return rec, nil
}

// ifValue is the condition that a record without a row still has these bytes.
func ifValue(value string) string {
	sum := sha1.Sum([]byte(value)) //nolint:gosec // as above
	return lua.IfValue(hex.EncodeToString(sum[:]))
}

func newWriteID() string {
	b := make([]byte, plan.WriteIDSize)
	_, _ = rand.Read(b) // never fails
	return string(b)
}

// keyOf is the primary key of an id.
func (c *Collection[T]) keyOf(id string) (string, error) {
	if id == "" {
		return "", fmt.Errorf("%w: the id is empty", ErrInvalid)
	}
	return c.part.Record(id)
}
