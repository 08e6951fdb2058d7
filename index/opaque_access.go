package index

import (
	"fmt"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
)

// Untyped is what package opaque, which keeps the same declaration on another kind of store, asks of an *Entity: its codec,
// ids and values, for records that travel as any. A record of another type than the entity's is ErrInvalid.
type Untyped interface {
	Declared
	// IDOf is the id of a record.
	IDOf(rec any) (string, error)
	// EncodeOf gives the bytes of a record, ErrTooLarge above the declared limit.
	EncodeOf(rec any) ([]byte, error)
	// DecodeOf gives the record of stored bytes, ErrUndecodable if they are none. The id is "" for bytes that are not stored
	// yet, which must hold it: ErrInvalid then.
	DecodeOf(id string, raw []byte) (any, error)
	// EntriesOf are the memberships that a record asks for, over all indexes.
	EntriesOf(rec any) ([]plan.Entry, error)
	// ReadingsOf are the values that a text typed by a person can stand for in an index.
	ReadingsOf(index, text string) ([]key.Value, error)
}

// IDOf implements Untyped.
func (e *Entity[T]) IDOf(rec any) (string, error) {
	typed, err := e.typed(rec)
	if err != nil {
		return "", err
	}
	id := e.options.ID(typed)
	if id == "" {
		return "", fmt.Errorf("%w: the id is empty", ErrInvalid)
	}
	return id, nil
}

// EncodeOf implements Untyped.
func (e *Entity[T]) EncodeOf(rec any) ([]byte, error) {
	typed, err := e.typed(rec)
	if err != nil {
		return nil, err
	}
	raw, err := e.options.Codec.Encode(typed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if limit := e.options.MaxRecordBytes; len(raw) > limit {
		return nil, &TooLargeError{What: "record bytes", Size: len(raw), Limit: limit}
	}
	return raw, nil
}

// DecodeOf implements Untyped.
func (e *Entity[T]) DecodeOf(id string, raw []byte) (any, error) {
	rec, err := e.options.Codec.Decode(id, raw)
	switch {
	case err != nil && id == "":
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUndecodable, err)
	}
	return rec, nil
}

// EntriesOf implements Untyped.
func (e *Entity[T]) EntriesOf(rec any) ([]plan.Entry, error) {
	typed, err := e.typed(rec)
	if err != nil {
		return nil, err
	}
	var all []plan.Entry
	for _, ix := range e.options.Indexes {
		entries, err := ix.Entries(typed)
		if err != nil {
			return nil, &Error{Op: "entries", Entity: e.String(), Index: ix.Name(), Err: invalid(err)}
		}
		all = append(all, entries...)
	}
	return all, nil
}

// ReadingsOf implements Untyped.
func (e *Entity[T]) ReadingsOf(index, text string) ([]key.Value, error) {
	ix, ok := e.index(index)
	if !ok {
		return nil, fmt.Errorf("%w: there is no such index; there are %v", ErrInvalid, e.indexNames())
	}
	values, err := ix.Readings(text)
	if err != nil {
		return nil, invalid(err)
	}
	return values, nil
}

// Exact takes a condition apart: the index of the entity type that it is about and the values of which a record has one.
// ErrInvalid for a condition on an index of another declaration, ErrUnsupported for anything but exact values.
func (e *Entity[T]) Exact(c Condition[T]) (index string, values []key.Value, err error) {
	if c == nil {
		return "", nil, fmt.Errorf("%w: the condition is nil", ErrInvalid)
	}
	q := c.clause()
	switch {
	case q.order != nil || q.cond.span != nil:
		return "", nil, fmt.Errorf("%w: only exact values can be asked for", ErrUnsupported)
	case q.cond.index == nil:
		return "", nil, fmt.Errorf("%w: the condition has no index", ErrInvalid)
	case q.cond.err != nil:
		return "", nil, &Error{Op: "find", Entity: e.String(), Index: q.cond.index.Name(), Err: invalid(q.cond.err)}
	}
	name := q.cond.index.Name()
	if known, ok := e.index(name); !ok || known != q.cond.index {
		return "", nil, &Error{
			Op: "find", Entity: e.String(), Index: name,
			Err: fmt.Errorf("%w: the index is not one of %s", ErrInvalid, e),
		}
	}
	return name, q.cond.values, nil
}

func (e *Entity[T]) typed(rec any) (T, error) {
	typed, ok := rec.(T)
	if !ok {
		return typed, fmt.Errorf("%w: a record of type %T for %s", ErrInvalid, rec, e)
	}
	return typed, nil
}
