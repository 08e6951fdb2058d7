package opaque

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/key"
)

// What tests of this package see of its inside: the clock, the pauses, the safeguards, and the stored formats.

// Safeguard is a part of the protocol that a test takes away.
type Safeguard = safeguard

// Safeguards by name.
var Safeguards = map[string]Safeguard{
	"record first":           recordFirst,
	"add before":             addBefore,
	"commit by token":        commitByToken,
	"remove after":           removeAfter,
	"remove exactly":         removeExactly,
	"append, never replace":  appendOnly,
	"fence before cleaning":  fenceBeforeCleaning,
	"fence before stealing":  fenceBeforeStealing,
	"fence the own record":   fenceOwnRecord,
	"delete the pending one": fencePending,
	"fence what is unknown":  fenceUnknown,
	"claim before record":    claimFirst,
	"release by token":       releaseByToken,
	"delete by token":        deleteByToken,
	"fresh write ids":        freshWriteID,
	"check on read":          checkOnRead,
	"keep the expiry":        keepExpiry,
	"confirm appends":        confirmAppend,
	"confirm twice":          confirmDouble,
	"notice losses":          noticeLoss,
	"repeat only the undone": onceOnly,
}

// Testing gives options a clock, pauses and missing safeguards.
func Testing(o Options, now func() time.Time, wait func(context.Context, time.Duration) error, without Safeguard) Options {
	o.now, o.wait, o.without = now, wait, without
	return o
}

// Mark is an entry that a stored record remembers.
type Mark struct {
	Body, Key string
	Unique    bool
	WriteID   WriteID
}

// Record is a stored record.
type Record struct {
	ID       string
	Live     bool
	Last     WriteID
	Expires  time.Time
	Revision WriteID
	Marks    []Mark
	Body     []byte
}

// Entry is a stored entry.
type Entry struct {
	ID      string
	WriteID WriteID
}

// ReadRecord takes a stored record apart.
func (s *Store) ReadRecord(raw []byte) (Record, error) {
	env, err := decodeEnvelope(raw)
	if err != nil {
		return Record{}, err
	}
	r := Record{ID: env.id, Live: env.live, Last: env.last, Expires: env.expires, Revision: env.rev, Body: env.body}
	for _, m := range env.marks {
		p, err := s.core.placeOfMark(m)
		if err != nil {
			return r, err
		}
		r.Marks = append(r.Marks, Mark{m.body, p.key, m.unique, m.wid})
	}
	return r, nil
}

// ReadEntries takes a list or a claim apart.
func ReadEntries(raw []byte) ([]Entry, error) {
	if len(raw) > 0 && raw[0] == formatClaim {
		e, err := decodeClaim(raw)
		return []Entry{{e.id, e.wid}}, err
	}
	list, err := decodeList(raw)
	out := make([]Entry, len(list))
	for i, e := range list {
		out[i] = Entry{e.id, e.wid}
	}
	return out, err
}

// ListKey is the key of the list or claim of a text value in its first bucket.
func (s *Store) ListKey(index, value string) string {
	p, err := s.core.place(s.core.schema.Load(), index, false, key.Text(value))
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return p.key
}

// Distrust ends the lease.
func (s *Store) Distrust() { s.core.distrust() }
