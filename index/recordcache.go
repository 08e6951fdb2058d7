package index

import (
	"crypto/sha1" //nolint:gosec // the digest that a script can make, not a safeguard against an attacker
	"encoding/hex"
	"sync"

	"github.com/lockstep-go/lockstep/lua"
)

// DefaultRecordCacheBytes is the memory of OpenOptions.RecordCacheBytes: about a hundred thousand records of 200 bytes.
const DefaultRecordCacheBytes = 32 << 20

// recordCache remembers the records that a collection has written last, so that an Update begins with the state that it
// most likely finds. The script holds the write against the stored bytes; what was remembered wrongly comes back corrected
// with the refusal, in the round trip that reading it would have cost.
//
// Once it is full, any record goes for a new one.
type recordCache struct {
	most int // bytes

	mu   sync.Mutex
	held map[string]remembered
	used int
}

// remembered is a record as it was written.
type remembered struct {
	value   []byte // never changed
	writeID string
	entries string // as in a row
	shared  bool   // others have written it too: what is remembered is most likely old
}

// cachedRecordBytes is what a record takes beside its id and its value: equal entries are kept once, by the row cache.
const cachedRecordBytes = 100

// maxCachedRecord is how large a record may be: of a larger one the digest would cost the server more than the reading.
const maxCachedRecord = 4 << 10

// newRecordCache gives a cache for so many bytes, nil if that is none.
func newRecordCache(bytes int) *recordCache {
	if bytes <= 0 {
		return nil
	}
	return &recordCache{most: bytes, held: map[string]remembered{}}
}

// take gives a record and forgets it: whoever writes it next is remembered then.
func (r *recordCache) take(id string) (remembered, bool) {
	if r == nil {
		return remembered{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.held[id]
	if ok {
		r.drop(id, m)
	}
	return m, ok
}

// learn remembers what the writes of a call have left.
func (r *recordCache) learn(call *batchPlan) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, w := range call.writes {
		if w == nil {
			continue
		}
		m, known := r.held[w.id]
		if known {
			r.drop(w.id, m)
		}
		size := cachedRecordBytes + len(w.id) + len(w.value)
		if !w.applied || w.mode == lua.Delete || w.bulk && !known || size > min(r.most, maxCachedRecord) {
			continue
		}
		for id, m := range r.held {
			if r.used+size <= r.most {
				break
			}
			r.drop(id, m)
		}
		r.held[w.id] = remembered{w.value, w.writeID, call.Records[i].Entries, w.shared}
		r.used += size
	}
}

// drop forgets a record. The caller holds mu.
func (r *recordCache) drop(id string, m remembered) {
	delete(r.held, id)
	r.used -= cachedRecordBytes + len(id) + len(m.value)
}

// condition is that the record is still as it was written: by its bytes, because somebody may have changed them behind the
// library's back, and by its row, because an attempt that arrives late must not find bytes that have come back.
func (m remembered) condition() string {
	sum := sha1.Sum(m.value) //nolint:gosec // as above
	return lua.IfBytes(hex.EncodeToString(sum[:]), m.writeID)
}
