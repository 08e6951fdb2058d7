package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
)

// Forever is the lifetime of records that do not expire.
const Forever time.Duration = -1

// Limits that a declaration gets where it states none.
const (
	DefaultKeyBudget      = 32
	DefaultMaxRecordBytes = 1 << 20
)

// fixedKeys are the keys that every write touches beside its index keys: record, manifest and meta.
const fixedKeys = 3

// Options declares an entity type. ID, Version and Lifetime are required.
type Options[T any] struct {
	// ID gives the id of a record. It must be pure and never change for a record. The empty id is refused when it is
	// written; any other bytes are good.
	ID func(T) string
	// Version is the format version of the keys, at least 1. Two versions are two keyspaces that never touch.
	Version int
	// Lifetime is how long a record lives after its last Put, or Forever. Leaving it out is an error: every key has a
	// lifetime decision.
	Lifetime time.Duration
	// Codec turns records into bytes. JSON by default.
	Codec Codec[T]
	// Place decides which keys share a hash tag. Single by default.
	Place Placement
	// Indexes of the entity type, in any order.
	Indexes []Index[T]
	// KeyBudget is the largest number of keys that one write may touch, DefaultKeyBudget by default: record, manifest and
	// meta, and one for each index. A declaration above it is an error that names the indexes. Values of Multi indexes
	// count against their own limit.
	KeyBudget int
	// MaxRecordBytes is the largest encoded record, DefaultMaxRecordBytes by default.
	MaxRecordBytes int
}

// Entity is a declared entity type: what Open needs to give a Collection. It holds no connection and is safe for
// concurrent use.
type Entity[T any] struct {
	owner, name string
	options     Options[T]
	space       key.Space
	fresh       bool                  // the codec gives bytes that nobody else changes
	bounds      map[string]plan.Bound // of the ranked indexes, by name
	err         error
}

// Define declares the entity type name of an owner. It never fails; what is wrong with the declaration is reported, all
// at once, by Err and by Open.
func Define[T any](owner, name string, o Options[T]) *Entity[T] {
	fresh := o.Codec.Encode == nil && o.Codec.Decode == nil
	if fresh {
		o.Codec = JSON[T]()
	}
	if o.KeyBudget == 0 {
		o.KeyBudget = DefaultKeyBudget
	}
	if o.MaxRecordBytes == 0 {
		o.MaxRecordBytes = DefaultMaxRecordBytes
	}
	e := &Entity[T]{owner: owner, name: name, options: o, fresh: fresh}
	e.err = e.check()
	return e
}

// check validates the declaration and prepares its keyspace.
func (e *Entity[T]) check() error {
	o := e.options
	var errs []error
	wrong := func(ix, format string, args ...any) {
		errs = append(errs, &Error{"define", e.String(), "", ix, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)})
	}
	space, err := key.NewSpace(e.owner, e.name, o.Version, key.Redis)
	if err != nil {
		wrong("", "%w", err)
	}
	e.space = space
	if o.ID == nil {
		wrong("", "no ID function")
	}
	if o.Codec.Encode == nil || o.Codec.Decode == nil {
		wrong("", "a codec needs both Encode and Decode")
	}
	switch {
	case o.Lifetime == 0:
		wrong("", "no lifetime: state a duration, or index.Forever")
	case o.Lifetime < 0 && o.Lifetime != Forever:
		wrong("", "negative lifetime %v", o.Lifetime)
	default:
		if _, err := lifetimeOf(o.Lifetime); err != nil {
			wrong("", "%w", err)
		}
	}
	if o.KeyBudget < 0 || o.MaxRecordBytes < 0 {
		wrong("", "a limit is negative")
	}
	names := map[string]bool{}
	e.bounds = map[string]plan.Bound{}
	for i, ix := range o.Indexes {
		if ix == nil {
			wrong("", "index %d is nil", i)
			continue
		}
		d := ix.Definition()
		if err := key.CheckIndexName(d.Name); err != nil {
			wrong(d.Name, "%w", err)
		}
		if names[d.Name] {
			wrong(d.Name, "the name is taken by another index of the entity type")
		}
		names[d.Name] = true
		e.bounds[d.Name] = d.Bound
		if d.Err != nil {
			wrong(d.Name, "%w", d.Err)
		}
	}
	if n := e.Amplification(); n > o.KeyBudget {
		wrong("", "a write touches %d keys, the budget is %d; indexes: %s", n, o.KeyBudget, strings.Join(e.indexNames(), ", "))
	}
	return errors.Join(errs...)
}

// Err is everything that is wrong with the declaration, nil if nothing is. It matches ErrInvalid.
func (e *Entity[T]) Err() error { return e.err }

// Owner is the owner of the keys, such as "acme:billing".
func (e *Entity[T]) Owner() string { return e.owner }

// Name is the name of the entity type, such as "account".
func (e *Entity[T]) Name() string { return e.name }

// Version is the format version of the keys.
func (e *Entity[T]) Version() int { return e.options.Version }

// Lifetime is the declared lifetime of records, or Forever.
func (e *Entity[T]) Lifetime() time.Duration { return e.options.Lifetime }

// String is owner and name, as errors give them.
func (e *Entity[T]) String() string { return e.owner + ":" + e.name }

// ID is the id of a record.
func (e *Entity[T]) ID(rec T) string { return e.options.ID(rec) }

// Codec is how records are stored.
func (e *Entity[T]) Codec() Codec[T] { return e.options.Codec }

// Space is the keyspace of the entity type. It makes no keys if Err is not nil.
func (e *Entity[T]) Space() key.Space { return e.space }

// Definitions describes the indexes, sorted by name.
func (e *Entity[T]) Definitions() []Definition {
	var out []Definition
	for _, ix := range e.options.Indexes {
		if ix != nil {
			out = append(out, ix.Definition())
		}
	}
	slices.SortFunc(out, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Amplification is how many keys a write of a new record touches: record, manifest and meta, and one for each index. A
// Multi index counts once; it adds a key for each further value. A write that changes a value touches one more key for
// each changed index.
func (e *Entity[T]) Amplification() int { return fixedKeys + len(e.options.Indexes) }

// Fingerprint identifies what decides the keys: placement and index definitions. Cosmetic changes, the order of the
// indexes and limits do not alter it. A process with another fingerprint has another schema generation.
func (e *Entity[T]) Fingerprint() string { return digest(e.definitionText()) }

// definitionText is what the fingerprint is the digest of, and what the catalog keeps for people to read.
func (e *Entity[T]) definitionText() string {
	var b strings.Builder
	b.WriteString("placement " + e.options.Place.String() + "\n")
	for _, d := range e.Definitions() {
		b.WriteString("index " + d.Canonical() + "\n")
	}
	return b.String()
}

// OpenErased opens the entity type for programs that handle it without its type.
func (e *Entity[T]) OpenErased(ctx context.Context, rdb redis.UniversalClient, o ...OpenOptions) (Opened, error) {
	c, err := Open(ctx, rdb, e, o...)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (e *Entity[T]) indexNames() []string {
	var names []string
	for _, d := range e.Definitions() {
		names = append(names, d.Name)
	}
	return names
}

func (e *Entity[T]) index(name string) (Index[T], bool) {
	for _, ix := range e.options.Indexes {
		if ix.Name() == name {
			return ix, true
		}
	}
	return nil, false
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
