package index

import (
	"hash/maphash"
	"sync"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// DefaultRowCacheBytes is the memory of OpenOptions.RowCacheBytes: the entries of some hundred thousand records with few
// different values, of some ten thousand with values of their own.
const DefaultRowCacheBytes = 8 << 20

// rowCache remembers which entries the last writes of a collection have left, so that the next write of the same record
// names what it replaces at once. It is a hint and nothing else: the script holds every plan against the row itself, and
// a plan that is wrong is made again.
//
// What is remembered sits in two generations. Once the young one is full it becomes the old one, and what is not used
// until that happens again is forgotten. Ids are known by their hash: two of one hash only make a plan that is wrong.
type rowCache struct {
	most int // bytes of a generation
	seed maphash.Seed

	mu         sync.Mutex
	young, old map[uint64]string // entries as in a row
	used       int               // bytes of the young generation
	shared     [256]string       // many records have the same entries: each text is kept once
}

// cachedRowBytes is what an entry takes beside its text.
const cachedRowBytes = 40

// newRowCache gives a cache for so many bytes, nil if that is none.
func newRowCache(bytes int) *rowCache {
	if bytes < 2*cachedRowBytes {
		return nil
	}
	return &rowCache{most: bytes / 2, seed: maphash.MakeSeed(), young: map[uint64]string{}}
}

// hint gives the plans of writes that know nothing about their records yet what was remembered.
func (r *rowCache) hint(batch []*write) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range batch {
		if w.rounds > 1 || w.token {
			continue
		}
		id := maphash.String(r.seed, w.id)
		entries, ok := r.young[id]
		if !ok {
			if entries, ok = r.old[id]; !ok {
				continue
			}
			r.keep(id, entries)
		}
		if tokens, err := plan.Split(entries); err == nil {
			w.assumed, w.hinted = tokens, true
		}
	}
}

// learn remembers what the writes of a call have left.
func (r *rowCache) learn(call *batchPlan) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, w := range call.writes {
		if w == nil {
			continue
		}
		id := maphash.String(r.seed, w.id)
		_, young := r.young[id]
		_, old := r.old[id]
		switch known := young || old; {
		case w.applied && w.mode != lua.Delete && (known || !w.bulk):
			r.keep(id, call.Records[i].Entries)
		case known:
			delete(r.young, id)
			delete(r.old, id)
		}
	}
}

// keep remembers the entries of one record. The caller holds mu.
func (r *rowCache) keep(id uint64, entries string) {
	size := 0
	if _, ok := r.young[id]; !ok {
		size = cachedRowBytes
	}
	place := &r.shared[maphash.String(r.seed, entries)%uint64(len(r.shared))]
	if *place == entries {
		entries = *place
	} else {
		*place = entries
		size += len(entries)
	}
	if r.used+size > r.most {
		if size > r.most {
			return
		}
		r.old, r.young, r.used = r.young, map[uint64]string{}, 0
	}
	r.young[id] = entries
	r.used += size
}
