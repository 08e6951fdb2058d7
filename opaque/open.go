package opaque

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/key"
)

// Open gives the collection that keeps an entity type on an opaque store. The declaration is the one that index.Open takes.
//
// NotExpressibleError for ranked indexes, grouped or not, one line for each: a store that only hands bytes back cannot keep
// an order. ErrInvalid for everything else that is wrong, all at once. An entity type that is new to the store starts with
// all indexes ready; an index that is added later answers index.ErrNotReady until Run has built it, and clients with the
// older declaration get index.ErrSchema once their lease has run out.
//
// With Options.ReadOnly nothing is declared: index.ErrNotReady where another declaration is in force, or none.
//
// Cost: two to four round trips.
func Open[T any](ctx context.Context, kv KV, e *index.Entity[T], o ...Options) (*Collection[T], error) {
	if e == nil {
		return nil, &index.Error{Op: "open", Err: fmt.Errorf("%w: no entity", errInvalid)}
	}
	store, err := OpenStore(ctx, kv, e, o...)
	if err != nil {
		return nil, err
	}
	return &Collection[T]{Store: store, entity: e}, nil
}

// OpenStore opens an entity type for programs that handle it without its type. The declaration must be an *index.Entity.
func OpenStore(ctx context.Context, kv KV, declared index.Declared, o ...Options) (*Store, error) {
	e, ok := declared.(index.Untyped)
	if !ok {
		return nil, &index.Error{Op: "open", Err: fmt.Errorf("%w: %T is no entity", errInvalid, declared)}
	}
	c := &core{kv: kv, entity: e}
	if len(o) > 1 {
		return nil, c.fail("open", "", "", fmt.Errorf("%w: more than one Options", errInvalid))
	}
	if len(o) == 1 {
		c.o = o[0]
	}
	if kv == nil {
		return nil, c.fail("open", "", "", fmt.Errorf("%w: no store", errInvalid))
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	var err error
	if c.limits, err = kv.Limits(ctx); err != nil {
		return nil, c.fail("open", "", "", err)
	}
	if err := c.prepare(); err != nil {
		return nil, c.fail("open", "", "", err)
	}
	if _, err := c.renew(ctx, true); err != nil {
		return nil, c.fail("open", "", "", err)
	}
	return &Store{c}, nil
}

// Check reports what Open would refuse of a declaration whatever the store is: ErrInvalid, and NotExpressibleError for
// ranked indexes. It asks no store.
func Check(declared index.Declared) error {
	e, ok := declared.(index.Untyped)
	if !ok {
		return &index.Error{Op: "open", Err: fmt.Errorf("%w: %T is no entity", errInvalid, declared)}
	}
	return (&core{entity: e}).check()
}

// check refuses a declaration that no opaque store can keep.
func (c *core) check() error {
	if err := c.entity.Err(); err != nil {
		return err
	}
	orders := &NotExpressibleError{Entity: c.entity.String()}
	var errs []error
	for _, d := range c.entity.Definitions() {
		if d.Kind != "membership" {
			orders.Indexes = append(orders.Indexes, d.Name)
		}
		if d.Name == idsIndex {
			errs = append(errs, c.fail("open", "", d.Name, fmt.Errorf("%w: the name is that of the index of all ids", errInvalid)))
		}
	}
	if len(orders.Indexes) > 0 {
		errs = append(errs, orders)
	}
	return errors.Join(errs...)
}

// prepare takes in what the store is like.
func (c *core) prepare() error {
	errs := []error{c.o.fill(c.limits)}
	if d := c.entity.Lifetime(); d != index.Forever && d < c.limits.MinLifetime {
		errs = append(errs, fmt.Errorf("%w: lifetime %v, the store keeps nothing shorter than %v", errInvalid, d, c.limits.MinLifetime))
	}
	known := map[string]bool{}
	for _, d := range c.entity.Definitions() {
		known[d.Name] = true
	}
	for name := range c.o.Buckets {
		if !known[name] {
			errs = append(errs, fmt.Errorf("%w: Buckets names %s, which is no index of %s", errInvalid, name, c.entity))
		}
	}
	// Each key is changed alone, so none needs to share a slot with another: no tag.
	space, err := key.NewSpace(c.entity.Owner(), c.entity.Name(), c.entity.Version(), c.limits.Keys)
	if err != nil {
		errs = append(errs, badKey(err))
	} else if c.part, err = space.Partition(key.Tag{}); err != nil {
		errs = append(errs, badKey(err))
	}
	c.space = space
	return errors.Join(errs...)
}
