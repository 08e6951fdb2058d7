package opaque

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/index"
)

// States of an index.
const (
	stateReady    = "ready"
	stateBuilding = "building" // declared over records that it has not seen
	stateSuspect  = "suspect"  // whole until the store lost data
	stateDropped  = "dropped"  // not declared any more; its generation is not used again
)

// descriptor is what all clients of an entity type agree on, at one key: the declaration in force, the state of each index,
// and how the server was when it was last known to have lost nothing. Its absence tells that the store lost everything.
type descriptor struct {
	Format      int                   `json:"format"`
	Nonce       string                `json:"nonce"` // fresh in every write
	Generation  uint64                `json:"generation"`
	Fingerprint string                `json:"fingerprint"`
	Changed     int64                 `json:"changed"` // when the declaration came into force, in milliseconds
	Lost        string                `json:"lost,omitempty"`
	Partly      bool                  `json:"partly,omitempty"` // lost, and what is left may be incomplete
	Life        *Life                 `json:"life,omitempty"`
	Indexes     map[string]indexState `json:"indexes"`
}

type indexState struct {
	Definition string `json:"definition"`
	Generation int    `json:"generation"`
	State      string `json:"state"`
}

// schema is what a client knows of the descriptor.
type schema struct {
	generation  uint64
	generations map[string]int
	states      map[string]string
	lost        string
	partly      bool
	changed     time.Time
}

func (s *schema) ready(name string) bool      { return s.states[name] == stateReady }
func (s *schema) suspicious(name string) bool { return s.states[name] == stateSuspect }

// definitions are the digests of what decides the keys of each index, the index of all ids included.
func (c *core) definitions() map[string]string {
	out := map[string]string{}
	for _, d := range c.entity.Definitions() {
		out[d.Name] = digest(d.Canonical() + " buckets=" + strconv.Itoa(max(1, c.o.Buckets[d.Name])))
	}
	if !c.o.NoIDs {
		out[idsIndex] = digest("all ids buckets=" + strconv.Itoa(c.o.IDBuckets))
	}
	return out
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// fingerprint is a text that is the same for the same definitions. Maps are encoded in the order of their keys.
func fingerprint(definitions map[string]string) string {
	text, _ := json.Marshal(definitions) // of texts: never fails
	return digest(string(text))
}

// current gives what is known of the descriptor, and reads it again once the lease has run out.
func (c *core) current(ctx context.Context) (*schema, error) {
	if s := c.schema.Load(); s != nil && c.o.now().UnixMilli() < c.lease.Load() {
		return s, nil
	}
	return c.renew(ctx, false)
}

// distrust ends the lease: something happened that may mean a loss.
func (c *core) distrust() { c.lease.Store(0) }

// renew reads the descriptor, plants or changes it where needed, and looks for losses. open says that this client brings a
// declaration; a client at work whose declaration is not in force any more gets ErrSchema instead.
func (c *core) renew(ctx context.Context, open bool) (*schema, error) {
	k := c.space.Catalog()
	for n := range c.o.Attempts {
		if n > 0 {
			if err := c.pause(ctx, n); err != nil {
				return nil, err
			}
		}
		started := c.o.now()
		life, err := c.life(ctx)
		if err != nil {
			return nil, err
		}
		item, err := c.get(ctx, k)
		absent := errors.Is(err, ErrNotFound)
		if err != nil && !absent {
			return nil, err
		}
		var d descriptor
		if !absent {
			if err := json.Unmarshal(item.Value, &d); err != nil || d.Format != 1 {
				return nil, foreign("a descriptor")
			}
		}
		next, err := c.advance(d, absent, life, open)
		if err != nil {
			return nil, err
		}
		if next != nil && !c.o.ReadOnly {
			if err := c.plant(ctx, k, item.Token, next); err != nil {
				if moved(err) || !settled(err) {
					continue
				}
				return nil, err
			}
			if next.Lost != "" {
				c.o.Events.suspect(next.Lost)
			}
		}
		if next != nil {
			d = *next
		}
		s := schemaOf(&d)
		c.schema.Store(s)
		c.lease.Store(started.Add(c.o.Lease).UnixMilli())
		return s, nil
	}
	return nil, tooMany(c.o.Attempts)
}

func (c *core) plant(ctx context.Context, k string, t Token, d *descriptor) error {
	d.Nonce = c.newWriteID().String()
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if t == "" {
		_, err = c.add(ctx, k, raw, time.Time{})
	} else {
		_, err = c.swap(ctx, k, raw, time.Time{}, t)
	}
	return err
}

// life asks the store how it is; nil if it cannot tell.
func (c *core) life(ctx context.Context) (*Life, error) {
	w, ok := c.kv.(Witness)
	if !ok || !c.keeps(noticeLoss) {
		return nil, nil
	}
	life, err := w.Life(ctx)
	if err != nil {
		return nil, err
	}
	return &life, nil
}

// advance gives the descriptor that should follow d, nil if d is right.
func (c *core) advance(d descriptor, absent bool, life *Life, open bool) (*descriptor, error) {
	defs := c.definitions()
	print := fingerprint(defs)
	known := c.schema.Load()
	switch {
	case absent && c.o.ReadOnly:
		return nil, fmt.Errorf("%w: the store knows no declaration of %s", index.ErrNotReady, c.entity)
	case absent:
		next := &descriptor{Format: 1, Generation: 1, Fingerprint: print, Life: life, Indexes: map[string]indexState{}}
		for name, def := range defs {
			next.Indexes[name] = indexState{def, 1, stateReady}
		}
		switch {
		case known != nil:
			// It was there. After a restart or a flush everything else is gone too, and the indexes agree with the records
			// again; without a witness that cannot be told from an eviction.
			next.Generation = known.generation
			for name, gen := range known.generations {
				next.Indexes[name] = indexState{defs[name], gen, stateReady}
			}
			if c.keeps(noticeLoss) {
				next.lose("the descriptor is gone", life == nil || life.Evictions > 0)
			}
		case life != nil && life.Evictions > 0:
			next.lose("the server evicts, and what it held before cannot be known", true)
		}
		return next, nil
	}
	next := d
	next.Indexes = maps.Clone(d.Indexes)
	changed := false
	if d.Fingerprint != print {
		switch {
		case open && c.o.ReadOnly:
			return nil, fmt.Errorf("%w: another declaration of %s is in force", index.ErrNotReady, c.entity)
		case !open:
			return nil, fmt.Errorf("%w: generation %d of %s is in force", index.ErrSchema, d.Generation, c.entity)
		}
		next.declare(defs, print, c.o.now())
		changed = true
	}
	if reason, partly := lossBetween(d.Life, life); reason != "" {
		next.lose(reason, partly)
		changed = true
	}
	if life != nil && (d.Life == nil || *d.Life != *life) {
		next.Life = life
		changed = true
	}
	if !changed {
		return nil, nil
	}
	return &next, nil
}

// declare brings other definitions into force.
func (d *descriptor) declare(defs map[string]string, print string, now time.Time) {
	d.Generation++
	d.Fingerprint = print
	d.Changed = now.UnixMilli()
	for name, st := range d.Indexes {
		if _, ok := defs[name]; !ok {
			st.State = stateDropped
			d.Indexes[name] = st
		}
	}
	for name, def := range defs {
		st, ok := d.Indexes[name]
		if ok && st.Definition == def && st.State != stateDropped {
			continue
		}
		d.Indexes[name] = indexState{def, st.Generation + 1, stateBuilding}
	}
}

// lose makes every ready index suspect.
func (d *descriptor) lose(reason string, partly bool) {
	d.Lost, d.Partly = reason, d.Partly || partly
	for name, st := range d.Indexes {
		if st.State == stateReady {
			st.State = stateSuspect
			d.Indexes[name] = st
		}
	}
}

// lossBetween says what a server has lost between two looks at it, and whether it may have kept a part.
func lossBetween(before, now *Life) (reason string, partly bool) {
	switch {
	case before == nil || now == nil:
		return "", false
	case before.Run != now.Run:
		return "the server was restarted", true
	case now.Flushes != before.Flushes:
		return "the server was flushed", false
	case now.Evictions != before.Evictions:
		return "the server evicted data", true
	}
	return "", false
}

func schemaOf(d *descriptor) *schema {
	s := &schema{
		generation: d.Generation, generations: map[string]int{}, states: map[string]string{},
		lost: d.Lost, partly: d.Partly, changed: time.UnixMilli(d.Changed),
	}
	for name, st := range d.Indexes {
		if st.State != stateDropped {
			s.generations[name], s.states[name] = st.Generation, st.State
		}
	}
	return s
}
