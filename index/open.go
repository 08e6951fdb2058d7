package index

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/gather"
	"github.com/lockstep-go/lockstep/internal/primaries"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

// Retry bounds how long a call waits for a server that did not run it, and how long it looks for the outcome of a write
// whose reply was lost.
type Retry = lua.Retry

// OpenOptions tune a collection. The zero value is good.
type OpenOptions struct {
	// Events tells the application what happens inside.
	Events Events
	// Retry bounds waiting and repeating: 30 s with pauses of 2 to 250 ms by default.
	Retry Retry
	// DirectWrites is how many single writes are on their way at once before further ones are gathered and share a round
	// trip; DefaultDirectWrites by default, negative to gather nothing. Gathering costs a caller at most the rest of the
	// call that is on its way, and many callers together write several times as much.
	DirectWrites int
	// DirectReads is the same for what only reads, by default DefaultDirectReads: further reads share a script or a pipeline.
	DirectReads int
	// RowCacheBytes bounds the memory in which the collection remembers the entries of records that it has written, so that
	// writing one again with other index values takes one round trip instead of two; DefaultRowCacheBytes by default,
	// negative for none. What others have written since costs that second trip and nothing else.
	RowCacheBytes int
	// RecordCacheBytes bounds the memory in which the collection remembers whole records that it has written, so that Update
	// takes one round trip instead of two; DefaultRecordCacheBytes by default, negative for none. Records of more than 4 KiB
	// are left out. What others have written since is noticed by the script, and costs the second trip. A record that is written stays in memory until it is deleted
	// through the collection, or others take its place.
	RecordCacheBytes int
	// ReadOnly opens for queries only, without writing anything: for replicas, and for users without the right to write.
	// The declaration must have been opened for writing before; writes answer ErrReadOnly.
	ReadOnly bool
	// Supersede makes this declaration the newest although the catalog has seen a newer one: after a rollback, so that
	// its dropped indexes can be built again. Indexes that only the newer declaration has stop being ready.
	Supersede bool
	// RefuseEviction makes it an error, ErrEviction, that a server evicts keys without a lifetime when its memory is full.
	// Without it such a server is reported to Events.Notice.
	RefuseEviction bool
	// AssumeEmpty skips the search for existing records on the very first opening of an entity type. Without it the
	// keyspace is scanned once, because an index over records that it has never seen must not answer.
	AssumeEmpty bool
}

// Open checks the declaration, registers it in the store's catalog, and gives the collection that runs it on rdb: a
// client of one server, of a Sentinel set or of a cluster. Everything wrong with the declaration is reported at once.
//
// An index that the store knows to be whole is ready at once, as are all indexes of an entity type without records.
// Queries on another one answer ErrNotReady until it is built; writes maintain it from now on.
//
// Open also tries every command that the scripts use on a scratch key: a missing permission is ErrDenied here rather than
// in the middle of a write. Errors: ErrInvalid, ErrDenied, ErrSchema, ErrReadOnly, ErrKeyType, ErrUnavailable.
//
// Cost: about six round trips; on the very first opening of an entity type also one SCAN of the keyspace.
func Open[T any](ctx context.Context, rdb redis.UniversalClient, e *Entity[T], o ...OpenOptions) (*Collection[T], error) {
	var opts OpenOptions
	switch {
	case e == nil:
		return nil, &Error{Op: "open", Err: fmt.Errorf("%w: no entity", ErrInvalid)}
	case rdb == nil:
		return nil, &Error{Op: "open", Entity: e.String(), Err: fmt.Errorf("%w: no client", ErrInvalid)}
	case len(o) > 1:
		return nil, &Error{Op: "open", Entity: e.String(), Err: fmt.Errorf("%w: more than one OpenOptions", ErrInvalid)}
	case len(o) == 1:
		opts = o[0]
	}
	if e.err != nil {
		return nil, e.err
	}
	part, err := e.space.Partition(key.Single(e.name))
	if err != nil {
		return nil, &Error{Op: "open", Entity: e.String(), Err: err}
	}
	c := &Collection[T]{entity: e, rdb: rdb, part: part, events: opts.Events, readOnly: opts.ReadOnly}
	c.writes = gather.New(cmp.Or(opts.DirectWrites, DefaultDirectWrites), batchRecords, c.apply)
	c.rows = newRowCache(cmp.Or(opts.RowCacheBytes, DefaultRowCacheBytes))
	c.records = newRecordCache(cmp.Or(opts.RecordCacheBytes, DefaultRecordCacheBytes))
	c.reads = gather.New(cmp.Or(opts.DirectReads, DefaultDirectReads), batchRecords, c.readAll)
	var onRetry func(lua.Attempt)
	if opts.Events.Retry != nil {
		onRetry = func(a lua.Attempt) { opts.Events.Retry(a.Script, a.N, a.Err) }
	}
	c.run = lua.NewRunner(rdb, opts.Retry, onRetry)
	c.run.ShareReads(cmp.Or(opts.DirectReads, DefaultDirectReads))

	if c.readOnly {
		if err := c.lookUp(ctx); err != nil {
			return nil, c.fail("open", "", "", err)
		}
		return c, nil
	}
	if err := c.open(ctx, opts); err != nil {
		return nil, c.fail("open", "", "", err)
	}
	if _, ok := rdb.(*redis.ClusterClient); ok {
		c.events.notice(fmt.Sprintf("%s: placement %v keeps all records and indexes in slot %d of the cluster",
			e, e.options.Place, part.Slot()))
	}
	return c, nil
}

func (c *Collection[T]) open(ctx context.Context, o OpenOptions) error {
	if err := c.run.Probe(ctx, c.part.Probe()); err != nil && !errors.Is(err, ErrOutOfMemory) {
		return err
	}
	if err := c.checkEviction(ctx, o.RefuseEviction); err != nil {
		return err
	}
	if o.AssumeEmpty {
		if _, err := c.run.Register(ctx, c.registration(lua.Ready, o.Supersede)); err != nil {
			return err
		}
	}
	return c.register(ctx, o.Supersede)
}

// registration is the declaration as the catalog takes it.
func (c *Collection[T]) registration(start lua.Start, supersede bool) lua.RegisterCall {
	text := c.entity.definitionText()
	call := lua.RegisterCall{
		Catalog: c.entity.space.Catalog(), Fingerprint: digest(text), Text: text, Start: start, Supersede: supersede,
	}
	for _, d := range c.entity.Definitions() {
		call.Indexes = append(call.Indexes, lua.IndexDefinition{Name: d.Name, Fingerprint: digest(d.Canonical())})
	}
	return call
}

// register presents the declaration to the catalog and enters the partition under the generation that it gets.
func (c *Collection[T]) register(ctx context.Context, supersede bool) error {
	reg, err := c.run.Register(ctx, c.registration("", supersede))
	if err != nil {
		return err
	}
	if reg.New {
		start := lua.Ready
		found, err := c.anyRecord(ctx)
		if err != nil {
			return err
		}
		if found {
			start = lua.Building
		}
		if reg, err = c.run.Register(ctx, c.registration(start, supersede)); err != nil {
			return err
		}
	}
	s := c.assign(reg)
	states := make([]string, 0, len(s.indexes))
	for name := range s.indexes {
		states = append(states, s.state(name))
	}
	start := reg.Start
	if reg.Planted {
		// The partition has existed: without its meta nothing is known to be whole.
		start = lua.Building
	}
	s.epoch, err = c.run.Enter(ctx, c.part.Meta(), c.part.Manifest(), s.generation, start, rand.Text(), states)
	if err != nil {
		return err
	}
	if old := c.schema.Load(); old != nil && old.epoch == s.epoch {
		s.seen = old.seen
	}
	if !reg.Planted {
		if err := c.run.Planted(ctx, c.entity.space.Catalog()); err != nil {
			return err
		}
	}
	c.schema.Store(s)
	return nil
}

// lookUp finds the declaration in the catalog without writing.
func (c *Collection[T]) lookUp(ctx context.Context) error {
	reg, err := c.run.Catalog(ctx, c.registration("", false))
	if err != nil {
		return err
	}
	if reg.New {
		return fmt.Errorf("%w: the store has not seen this declaration; open it for writing first", ErrNotReady)
	}
	c.schema.Store(c.assign(reg))
	return nil
}

func (c *Collection[T]) assign(reg lua.Registration) *schema {
	s := &schema{generation: reg.Generation, indexes: map[string]int{}, seen: new(atomic.Int64)}
	for i, d := range c.entity.Definitions() {
		s.indexes[d.Name] = reg.Indexes[i]
	}
	return s
}

// errFound ends a scan at its first hit.
var errFound = errors.New("found")

// anyRecord reports whether a record of the entity type exists anywhere, on any primary.
func (c *Collection[T]) anyRecord(ctx context.Context) (bool, error) {
	prefix := c.entity.space.Prefix()
	scan := func(ctx context.Context, node redis.Cmdable) error {
		var cursor uint64
		for {
			var page *redis.ScanCmd
			err := lua.Await(ctx, func() error {
				page = node.Scan(ctx, cursor, prefix+"*", scanCount)
				return page.Err()
			})
			if err != nil {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			keys, next := page.Val()
			for _, k := range keys {
				p, err := key.Parse(k)
				if err == nil && p.Kind == key.KindRecord && p.Version == c.entity.Version() && !p.Tag.IsZero() {
					return errFound
				}
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	err := primaries.Each(ctx, c.rdb, scan)
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// scanCount is the COUNT of a SCAN: enough keys that round trips do not dominate, few enough to hold up nobody.
const scanCount = 1000
