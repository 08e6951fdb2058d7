package opaque

import (
	"errors"
	"fmt"
	"time"
)

// Defaults of Options.
const (
	DefaultGrace           = 5 * time.Second
	DefaultPendingLifetime = time.Minute
	DefaultLease           = 10 * time.Second
	DefaultMaxEntries      = 4096
	DefaultMaxListBytes    = 256 << 10
	DefaultIDBuckets       = 64
	DefaultReadRepairs     = 8
	DefaultAttempts        = 128
)

// SuspectPolicy says what happens to a write that would take a unique value while the store is known to have lost data.
type SuspectPolicy int

const (
	// RefuseUnique answers ErrSuspect. It is the default.
	RefuseUnique SuspectPolicy = iota
	// CheckUnique looks through all records that the all-ids index knows, after the value was claimed: O(records) for each
	// such write, and as good as the all-ids index still is.
	CheckUnique
)

// Options tune a collection. The zero value is good. All clients of an entity type should use the same ones; Buckets and
// IDBuckets have to be the same and are part of what Open compares.
type Options struct {
	// Grace is how old an unfinished write of somebody else has to look before it is pushed aside, DefaultGrace by
	// default. It avoids needless conflicts; safety does not hang on it, nor on clocks that agree.
	Grace time.Duration
	// PendingLifetime is how long the store keeps the reservation of a create that never finished,
	// DefaultPendingLifetime by default. A create that takes longer starts again.
	PendingLifetime time.Duration
	// Lease is how long a client trusts what it knows of the declaration in force and of losses, DefaultLease by default:
	// the first write or query after it costs two more round trips.
	Lease time.Duration
	// MaxEntries and MaxListBytes bound one list: the ids under one value, or in one bucket of it. A write beyond them is
	// ErrTooLarge. DefaultMaxEntries, and DefaultMaxListBytes or half of what the store takes, by default.
	MaxEntries, MaxListBytes int
	// Buckets says for indexes, by name, into how many lists by hash of the id a value is divided; 1 by default. More
	// buckets hold more ids and let more writers work at once; a query reads all of them in one round trip.
	Buckets map[string]int
	// IDBuckets divides the index of all ids, DefaultIDBuckets by default.
	IDBuckets int
	// NoIDs keeps no index of all ids. It saves two round trips on each create and delete; Verify and Run then reach only
	// what the store can list.
	NoIDs bool
	// Suspect says what happens to unique values after a loss of data: RefuseUnique by default.
	Suspect SuspectPolicy
	// ReadRepairs is how many dead entries one query may remove, DefaultReadRepairs by default, negative for none.
	ReadRepairs int
	// Attempts bounds how often one call starts again because of others, DefaultAttempts by default; then
	// index.ErrContended.
	Attempts int
	// ReadOnly opens for queries and Verify only, and writes nothing: no declaration, no state after a loss, no read repair.
	// The declaration must have been opened for writing before: index.ErrNotReady where the store knows none, or where
	// another one is in force. Writes and Run answer index.ErrReadOnly.
	ReadOnly bool
	// Events tells the application what happens inside.
	Events Events

	// For tests.
	now     func() time.Time
	wait    waiter
	without safeguard
}

// fill puts defaults in and reports what is wrong.
func (o *Options) fill(limits Limits) error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{errInvalid}, args...)...))
	}
	duration := func(name string, d *time.Duration, standard time.Duration) {
		switch {
		case *d == 0:
			*d = standard
		case *d < 0:
			wrong("%s is %v", name, *d)
		}
	}
	number := func(name string, n *int, standard int) {
		switch {
		case *n == 0:
			*n = standard
		case *n < 0:
			wrong("%s is %d", name, *n)
		}
	}
	duration("Grace", &o.Grace, DefaultGrace)
	duration("PendingLifetime", &o.PendingLifetime, DefaultPendingLifetime)
	duration("Lease", &o.Lease, DefaultLease)
	number("MaxEntries", &o.MaxEntries, DefaultMaxEntries)
	bytes := DefaultMaxListBytes
	if limits.MaxValue > 0 {
		bytes = min(bytes, limits.MaxValue/2)
	}
	number("MaxListBytes", &o.MaxListBytes, bytes)
	number("IDBuckets", &o.IDBuckets, DefaultIDBuckets)
	number("Attempts", &o.Attempts, DefaultAttempts)
	if limits.MaxValue > 0 && o.MaxListBytes > limits.MaxValue {
		wrong("MaxListBytes is %d, the store takes %d", o.MaxListBytes, limits.MaxValue)
	}
	if o.PendingLifetime < limits.MinLifetime {
		wrong("PendingLifetime is %v, the store keeps nothing shorter than %v", o.PendingLifetime, limits.MinLifetime)
	}
	for name, n := range o.Buckets {
		if n < 1 || n > MaxBuckets {
			wrong("%d buckets for index %s, allowed are 1 to %d", n, name, MaxBuckets)
		}
	}
	if o.IDBuckets > MaxIDBuckets {
		wrong("IDBuckets is %d, at most %d", o.IDBuckets, MaxIDBuckets)
	}
	if o.Suspect != RefuseUnique && o.Suspect != CheckUnique {
		wrong("no such SuspectPolicy: %d", o.Suspect)
	}
	switch {
	case o.ReadOnly:
		o.ReadRepairs = -1
	case o.ReadRepairs == 0:
		o.ReadRepairs = DefaultReadRepairs
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.wait == nil {
		o.wait = sleep
	}
	return errors.Join(errs...)
}

// Bounds of Options.Buckets and Options.IDBuckets: a query reads all buckets of a value at once, a walk those of the ids one
// by one.
const (
	MaxBuckets   = 256
	MaxIDBuckets = 65536
)
