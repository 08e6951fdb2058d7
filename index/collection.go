package index

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/gather"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

// Collection runs the writes and queries of one entity type on one server, Sentinel set or cluster. It is safe for
// concurrent use, holds no records, and needs no Close: the client stays the caller's.
type Collection[T any] struct {
	entity   *Entity[T]
	rdb      redis.UniversalClient
	run      *lua.Runner
	part     key.Partition
	events   Events
	readOnly bool
	schema   atomic.Pointer[schema]
	writes   *gather.Gatherer[*write]
	reads    *gather.Gatherer[*reading]
	rows     *rowCache
	records  *recordCache
	due      dueQueue
}

// schema is what the catalog assigned to a declaration.
type schema struct {
	generation int64
	epoch      string         // of the partition: its write counter only grows within one
	seen       *atomic.Int64  // that counter, as last seen
	indexes    map[string]int // name -> generation of its definition
}

// state is the field of meta that holds the state of an index.
func (s *schema) state(index string) string { return lua.StateField(index, s.indexes[index]) }

// Declared is the declaration that was opened.
func (c *Collection[T]) Declared() Declared { return c.entity }

// Entity is the declaration that was opened, with its type.
func (c *Collection[T]) Entity() *Entity[T] { return c.entity }

// RecordKey is the key at which the record of an id is stored.
func (c *Collection[T]) RecordKey(id string) (string, error) { return c.part.Record(id) }

// EntryKeys are the index keys under which a record is entered, sorted: what one write of it touches beside the record
// and the bookkeeping of its partition. For tests and for people who look at the store.
func (c *Collection[T]) EntryKeys(rec T) ([]string, error) {
	entries, err := c.entriesOf(rec)
	if err != nil {
		return nil, c.fail("entries", c.entity.options.ID(rec), "", err)
	}
	placed, err := plan.Place(c.entity.space, c.schema.Load().indexes, entries)
	if err != nil {
		return nil, c.fail("entries", c.entity.options.ID(rec), "", err)
	}
	keys := make([]string, len(placed))
	for i, p := range placed {
		if keys[i], err = c.part.Entry(p.Token.Body()); err != nil {
			return nil, c.fail("entries", c.entity.options.ID(rec), p.Index, err)
		}
	}
	return keys, nil
}

// see remembers the newest write counter of the partition.
func (s *schema) see(seq int64) {
	for {
		old := s.seen.Load()
		if seq <= old || s.seen.CompareAndSwap(old, seq) {
			return
		}
	}
}

// fail wraps an error with what it is about, once: an error that only names its index is completed.
func (c *Collection[T]) fail(op, id, index string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	var conflict *ConflictError
	switch {
	case errors.As(err, &known):
		if known.Entity == "" {
			known.Op, known.Entity, known.ID = op, c.entity.String(), id
		}
		return err
	case errors.As(err, &conflict):
		return err
	}
	var state *lua.StateError
	if errors.As(err, &state) {
		err = &NotReadyError{Index: index, State: state.State}
	}
	return &Error{Op: op, Entity: c.entity.String(), ID: id, Index: index, Err: err}
}

// retrying runs fn again after the partition has been entered, where fn finds that it does not know the declaration yet:
// the first call of a new partition, a newer declaration, or a server that was emptied under an open collection.
func (c *Collection[T]) retrying(ctx context.Context, fn func(*schema) error) error {
	for n := 1; ; n++ {
		s := c.schema.Load()
		err := fn(s)
		switch {
		case errors.Is(err, ErrUnknown):
			return err
		case errors.Is(err, lua.ErrNotEntered):
		case errors.Is(err, ErrSchema) && n == 1:
			// The catalog may have given the same declaration a newer generation.
		default:
			return err
		}
		if c.readOnly {
			return &lua.StateError{}
		}
		if n > maxEnter {
			return fmt.Errorf("%w: %w", ErrContended, err)
		}
		if rerr := c.register(ctx, false); rerr != nil {
			return rerr
		}
		if now := c.schema.Load(); errors.Is(err, ErrSchema) && now.generation == s.generation {
			return err
		}
	}
}

// maxEnter bounds how often one call enters a partition that keeps losing its meta.
const maxEnter = 8
