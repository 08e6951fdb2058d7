package index

import (
	"context"
	"maps"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/internal/primaries"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

// Maintenance is what a pass over a whole entity type needs of a collection, without its record type: package repair is
// its user. It works under the generations that were in force when it was made, or last entered, so that one pass never
// mixes two declarations. It is for one goroutine at a time where Enter is called, else safe for concurrent use.
type Maintenance interface {
	// Client is the client that the collection was opened on.
	Client() redis.UniversalClient
	// Runner sends scripts.
	Runner() *lua.Runner
	// ReadOnly reports that the collection was opened for queries only.
	ReadOnly() bool
	// Partition makes the keys.
	Partition() key.Partition
	// Generation is the schema generation, and Indexes the generation of each index's definition.
	Generation() int64
	Indexes() map[string]int
	// Bounds are the bounds of the ranked indexes, by name; a membership index has the zero Bound.
	Bounds() map[string]plan.Bound
	// Enter makes the partition know the declaration, where it does not: its meta was lost, or is older. Its indexes are
	// building then.
	Enter(ctx context.Context) error
	// Expected decodes a stored record and gives the id that it says it has, and the entries it asks for. The id of its key
	// is given to the codec, "" where the key does not tell. ErrUndecodable; ErrInvalid for values no index can hold.
	Expected(id string, value []byte) (own string, entries []plan.Placed, err error)
	// Repair carries changes out, each atomically or not at all, in one round trip: at most lua.MaxBatch of them, of
	// different ids. fence is that of the build that the changes belong to, "" without. The statuses are aligned.
	Repair(ctx context.Context, fence string, changes []Change) ([]lua.Status, error)
	// Retire removes the bookkeeping of the partition if it holds nothing any more and every index of it is ready, and
	// reports whether it did. The next write begins it anew.
	Retire(ctx context.Context) (bool, error)
	// EachPrimary calls fn for every primary of a cluster, or once for a single server, one after another.
	EachPrimary(ctx context.Context, fn func(context.Context, redis.Cmdable) error) error
}

// Change puts the entries of one record right. The record itself is never written.
type Change struct {
	ID, Key string
	// Gone says that the record is: what Remove names goes, and its row. The script holds that against the record's key.
	Gone bool
	// Condition is what must not have moved, from lua.IfUnmoved; not for Gone.
	Condition string
	// Assumed are the entries as the row has them, and what Remove names beyond.
	Assumed string
	// Row are the entries of the row afterwards.
	Row    []plan.Token
	Remove []plan.Token
	Add    []plan.Placed
}

// maintenance implements Maintenance.
type maintenance[T any] struct {
	c *Collection[T]
	s *schema
}

// Maintenance implements Opened.
func (c *Collection[T]) Maintenance() Maintenance { return &maintenance[T]{c, c.schema.Load()} }

func (m *maintenance[T]) Client() redis.UniversalClient { return m.c.rdb }
func (m *maintenance[T]) Runner() *lua.Runner           { return m.c.run }
func (m *maintenance[T]) ReadOnly() bool                { return m.c.readOnly }
func (m *maintenance[T]) Partition() key.Partition      { return m.c.part }
func (m *maintenance[T]) Generation() int64             { return m.s.generation }
func (m *maintenance[T]) Indexes() map[string]int       { return maps.Clone(m.s.indexes) }
func (m *maintenance[T]) Bounds() map[string]plan.Bound { return maps.Clone(m.c.entity.bounds) }

func (m *maintenance[T]) Enter(ctx context.Context) error {
	if m.c.readOnly {
		return m.c.fail("repair", "", "", ErrReadOnly)
	}
	if err := m.c.register(ctx, false); err != nil {
		return m.c.fail("repair", "", "", err)
	}
	m.s = m.c.schema.Load()
	return nil
}

func (m *maintenance[T]) Expected(id string, value []byte) (own string, entries []plan.Placed, err error) {
	rec, err := m.c.decode(id, value)
	if err != nil {
		return "", nil, err
	}
	own = m.c.entity.options.ID(rec)
	asked, err := m.c.entriesOf(rec)
	if err != nil {
		return own, nil, err
	}
	entries, err = plan.Place(m.c.entity.space, m.s.indexes, asked)
	return own, entries, err
}

func (m *maintenance[T]) Repair(ctx context.Context, fence string, changes []Change) ([]lua.Status, error) {
	p := m.c.newBatch(m.s, len(changes))
	p.Fence = fence
	for _, ch := range changes {
		ops, err := p.removals(ch.Remove, len(ch.Add))
		if err != nil {
			return nil, m.c.fail("repair", ch.ID, "", err)
		}
		rec := lua.ApplyRecord{
			Key: ch.Key, ID: ch.ID, WriteID: newWriteID(), Mode: lua.Fix, Condition: ch.Condition,
			Assumed: ch.Assumed, Entries: plan.Join(ch.Row), Lifetime: lua.Keep,
		}
		if ch.Gone {
			rec.Mode = lua.Collect
		}
		for _, e := range ch.Add {
			n, err := p.place(e.Token)
			if err != nil {
				return nil, m.c.fail("repair", ch.ID, e.Index, err)
			}
			ops = append(ops, addOp(e, n))
			p.trim(p.bounds[e.Index], e.Token, n)
		}
		rec.Ops = ops
		p.Records = append(p.Records, rec)
	}
	reply, err := m.c.run.Apply(ctx, p.ApplyCall)
	if err != nil {
		return nil, m.c.fail("repair", "", "", err)
	}
	m.s.see(reply.Seq)
	return reply.Statuses, nil
}

func (m *maintenance[T]) EachPrimary(ctx context.Context, fn func(context.Context, redis.Cmdable) error) error {
	return primaries.Each(ctx, m.c.rdb, fn)
}

func (m *maintenance[T]) Retire(ctx context.Context) (bool, error) {
	c := m.c
	if c.readOnly {
		return false, c.fail("retire", "", "", ErrReadOnly)
	}
	meta, manifest, expiry, floor := c.part.Meta(), c.part.Manifest(), c.part.Expiry(), c.part.Floor()
	// A partition whose meta is not there is none that can go: it was lost, or somebody else has removed it just now, and
	// the catalog says which.
	empty, err := c.run.Retirable(ctx, meta, manifest, expiry, floor, m.s.epoch)
	if err != nil || !empty {
		return false, c.fail("retire", "", "", err)
	}
	// A partition without meta counts as lost where the catalog says that it was planted, so the catalog forgets that
	// first; and again afterwards, because somebody may have entered in between and noted it.
	catalog := c.entity.space.Catalog()
	if err := c.run.Unplant(ctx, catalog, false); err != nil {
		return false, c.fail("retire", "", "", err)
	}
	gone, err := c.run.Retire(ctx, meta, manifest, expiry, floor, m.s.epoch)
	if err != nil {
		return false, c.fail("retire", "", "", err)
	}
	if gone {
		return true, c.fail("retire", "", "", c.run.Unplant(ctx, catalog, true))
	}
	return false, c.fail("retire", "", "", c.run.Planted(ctx, catalog))
}
