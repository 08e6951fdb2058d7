package opaque

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/index"
)

// The errors of a KV. Those that package index knows too are the same values, so that a program tests for one sentinel
// whatever store it runs on.
var (
	// ErrNotFound says that a key is absent, or that there is no such record.
	ErrNotFound = index.ErrNotFound
	// ErrExists says that a key or a record is there already.
	ErrExists = index.ErrExists
	// ErrChanged says that a key holds another write than the token names, or that the token's server is gone.
	ErrChanged = index.ErrChanged
	// ErrUnknown says that a write may have happened, or may still happen.
	ErrUnknown = index.ErrUnknown
	// ErrTooLarge says that a value is over the limit of the store, or a list over its bounds.
	ErrTooLarge = index.ErrTooLarge
	// ErrOutOfMemory says that the store has no room for the value. What was there before stays.
	ErrOutOfMemory = index.ErrOutOfMemory
	// ErrUnavailable says that the store was not reached: nothing was sent.
	ErrUnavailable = index.ErrUnavailable

	// ErrKeyType says that a key holds a value of a kind that is none of a store of bytes.
	ErrKeyType = index.ErrKeyType

	// ErrBadKey says that the store does not take the key: too long, or bytes that it does not allow.
	ErrBadKey = errors.New("lockstep: the store does not take such a key")
	// ErrNoToken says that a token is empty: given to a store, or issued by one that breaks its contract.
	ErrNoToken = errors.New("lockstep: an empty token names no value")
	// ErrNotExpressible says that a declaration asks for what a store of opaque values cannot keep.
	ErrNotExpressible = errors.New("lockstep: cannot be kept on an opaque store")
	// ErrSuspect says that the store has lost data, so that what the indexes do not show may exist all the same. Run
	// clears it.
	ErrSuspect = errors.New("lockstep: the store has lost data, the indexes are suspect")
)

// NotExpressibleError lists the indexes that an opaque store cannot keep. It matches ErrNotExpressible.
type NotExpressibleError struct {
	Entity  string
	Indexes []string // names
}

func (e *NotExpressibleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", ErrNotExpressible, e.Entity)
	for _, name := range e.Indexes {
		fmt.Fprintf(&b, "\n  index %s: an order needs a server that compares scores; a store of opaque values can only hand back"+
			" a whole list. Keep this index with index.Open on Redis, or ask a database for it", name)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrNotExpressible) hold.
func (e *NotExpressibleError) Is(target error) bool { return target == ErrNotExpressible }

// UnknownError reports a write whose outcome could not be decided. Collection.Outcome looks again. It matches ErrUnknown.
type UnknownError struct {
	ID      string
	WriteID WriteID
	Err     error // what hid the outcome
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v: write %v of %q: %v", ErrUnknown, e.WriteID, e.ID, e.Err)
}

// Is makes errors.Is(err, ErrUnknown) hold.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// Unwrap gives what hid the outcome.
func (e *UnknownError) Unwrap() error { return e.Err }

// settled reports an error of a write that says for certain that it has not happened and never will.
func settled(err error) bool {
	for _, known := range []error{
		ErrNotFound, ErrExists, ErrChanged, ErrTooLarge, ErrBadKey, ErrNoToken, ErrOutOfMemory, ErrUnavailable,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// moved reports an error that says that the key holds something else by now.
func moved(err error) bool {
	return errors.Is(err, ErrChanged) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists)
}
