package index

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/lua"
)

// What can go wrong, one sentinel a cause. Errors of this package wrap one of them and say which entity, id and index it
// is about; test with errors.Is, and with errors.As for the typed errors below. Unless a sentinel says otherwise, a write
// that ends with it has changed nothing.
var (
	ErrNotFound    = errors.New("lockstep: not found")
	ErrExists      = errors.New("lockstep: the record exists")
	ErrConflict    = errors.New("lockstep: another record holds a unique value")
	ErrChanged     = errors.New("lockstep: the record has changed since it was read")
	ErrContended   = errors.New("lockstep: other writers kept changing the record")
	ErrNotReady    = errors.New("lockstep: the index is not ready")
	ErrTooLarge    = errors.New("lockstep: too large")
	ErrInvalid     = errors.New("lockstep: invalid")
	ErrUndecodable = errors.New("lockstep: a stored record does not decode")
	ErrCursor      = errors.New("lockstep: not a cursor of this query")
	ErrEviction    = errors.New("lockstep: the server may evict index keys")
	ErrUnsupported = errors.New("lockstep: not supported")

	// ErrIncomplete says that a sequence or a count is right but may be short: the index has trimmed what would follow.
	ErrIncomplete = errors.New("lockstep: the index has trimmed what may belong here")
	// ErrUnknown says that the reply was lost and the outcome cannot be decided any more: the write has happened, or not,
	// or has been overwritten since. It is never half done. Reading the record tells.
	ErrUnknown = lua.ErrUnknown
	// ErrSchema says that a newer declaration has taken over and this one may not write any more.
	ErrSchema = lua.ErrSchema
	// ErrKeyType says that a foreign value of another type sits at a key that Lockstep names.
	ErrKeyType = lua.ErrKeyType
	// ErrReadOnly says that the server is a replica, or the collection was opened read-only.
	ErrReadOnly = lua.ErrReadOnly
	// ErrOutOfMemory says that the server has reached its maxmemory.
	ErrOutOfMemory = lua.ErrOutOfMemory
	// ErrDenied says that the user lacks a permission.
	ErrDenied = lua.ErrDenied
	// ErrUnavailable says that the server is gone, loading, or without a primary, for longer than the retry budget.
	ErrUnavailable = lua.ErrUnavailable
)

// Error says what an error is about. Err wraps the cause.
type Error struct {
	Op     string // put, create, get, find, open, ...
	Entity string // owner and name: "acme:billing:account"
	ID     string // "" if it is about no single record
	Index  string // "" if it is about no single index
	Err    error
}

func (e *Error) Error() string {
	s := e.Op + " " + e.Entity
	if e.ID != "" {
		s += fmt.Sprintf(" %q", e.ID)
	}
	if e.Index != "" {
		s += fmt.Sprintf(" (index %s)", e.Index)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ConflictError reports a unique value that another record holds. It matches ErrConflict. Its text names neither the value
// nor the holder: texts end up in logs and in answers to strangers.
type ConflictError struct {
	Entity string
	ID     string // of the record that was not written
	Index  string
	Value  string // as it stands in the key; a digest if the index keeps digests
	Holder string // id of the record that has the value
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %s %q (index %s)", ErrConflict, e.Entity, e.ID, e.Index)
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// NotReadyError reports a query on an index that is not known to be whole. It matches ErrNotReady.
type NotReadyError struct {
	Index string
	State string // building, dropping, or "" where the store does not know the index
}

func (e *NotReadyError) Error() string {
	state := e.State
	if state == "" {
		state = "unknown to the store"
	}
	return fmt.Sprintf("%v: %s is %s", ErrNotReady, e.Index, state)
}

// Is makes errors.Is(err, ErrNotReady) hold.
func (e *NotReadyError) Is(target error) bool { return target == ErrNotReady }

// TooLargeError reports something over a declared limit. It matches ErrTooLarge.
type TooLargeError struct {
	What  string // "record bytes", "values"
	Size  int
	Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: %d %s, the limit is %d", ErrTooLarge, e.Size, e.What, e.Limit)
}

// Is makes errors.Is(err, ErrTooLarge) hold.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// KeyTypeError reports the key at which a foreign value sits, and its type. It matches ErrKeyType.
type KeyTypeError = lua.KeyTypeError

// SchemaError reports the generation of the caller and the oldest that may write. It matches ErrSchema.
type SchemaError = lua.SchemaError
