package opaque

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/index"
)

var errInvalid = index.ErrInvalid

// The first byte of every value says what it is.
const (
	formatPending byte = 'P'
	formatLive    byte = 'R'
	formatList    byte = 'L'
	formatClaim   byte = 'C'
)

// mark is one index entry as its record remembers it: the body of the index key and the write that put the entry there.
type mark struct {
	body   string
	unique bool
	wid    WriteID
}

// envelope is the value at a record's key: the record and what the protocol needs to know about it.
type envelope struct {
	live bool
	// rev is fresh in every write of the key, a fence too, so that two readings tell whether anything was written between.
	rev WriteID
	// last is the attempt that committed this state; of a pending record, the attempt that is under way.
	last       WriteID
	generation uint64
	expires    time.Time // to the millisecond; zero for never
	marks      []mark
	id         string // the key may hold only a digest of it
	body       []byte
}

// carries reports whether the record has the entry under exactly this write.
func (e *envelope) carries(body string, w WriteID) bool {
	return e.live && slices.ContainsFunc(e.marks, func(m mark) bool { return m.body == body && m.wid == w })
}

// has reports whether the record has the entry under whatever write.
func (e *envelope) has(body string) bool {
	return e.live && slices.ContainsFunc(e.marks, func(m mark) bool { return m.body == body })
}

// committed reports whether the state shows that attempt w has committed.
func (e *envelope) committed(w WriteID) bool {
	return e.live && (e.last == w || slices.ContainsFunc(e.marks, func(m mark) bool { return m.wid == w }))
}

// mark is the record's entry with the body.
func (e *envelope) mark(body string) (mark, bool) {
	for _, m := range e.marks {
		if m.body == body {
			return m, true
		}
	}
	return mark{}, false
}

func (e *envelope) encode() []byte {
	size := 2*writeIDSize + 32 + len(e.id) + len(e.body)
	for _, m := range e.marks {
		size += len(m.body) + writeIDSize + 4
	}
	b := make([]byte, 0, size)
	format := formatPending
	if e.live {
		format = formatLive
	}
	b = append(b, format)
	b = append(b, e.rev[:]...)
	b = append(b, e.last[:]...)
	b = binary.AppendUvarint(b, e.generation)
	var ms int64
	if !e.expires.IsZero() {
		ms = e.expires.UnixMilli()
	}
	b = binary.AppendVarint(b, ms)
	b = binary.AppendUvarint(b, uint64(len(e.marks)))
	for _, m := range e.marks {
		b = appendText(b, m.body)
		unique := byte(0)
		if m.unique {
			unique = 1
		}
		b = append(b, unique)
		b = append(b, m.wid[:]...)
	}
	b = appendText(b, e.id)
	return append(b, e.body...)
}

func decodeEnvelope(raw []byte) (*envelope, error) {
	r := reader{b: raw}
	e := &envelope{}
	switch r.byte() {
	case formatLive:
		e.live = true
	case formatPending:
	default:
		return nil, foreign("a record")
	}
	e.rev, e.last = r.writeID(), r.writeID()
	e.generation = r.uvarint()
	if ms := r.varint(); ms != 0 {
		e.expires = time.UnixMilli(ms)
	}
	n := r.uvarint()
	if n > uint64(len(raw)) {
		return nil, foreign("a record")
	}
	e.marks = make([]mark, 0, n)
	for range n {
		e.marks = append(e.marks, mark{body: r.text(), unique: r.byte() == 1, wid: r.writeID()})
	}
	e.id = r.text()
	if r.short {
		return nil, foreign("a record")
	}
	e.body = r.b
	return e, nil
}

// foreign reports a value that this package did not write.
func foreign(what string) error {
	return fmt.Errorf("%w: the value is not %s of this format", index.ErrUndecodable, what)
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// reader takes a value apart. Behind its end it gives zeros and remembers that it was short.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.short = nil, true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) writeID() (w WriteID) {
	copy(w[:], r.take(writeIDSize))
	return w
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.b, r.short = nil, true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.b, r.short = nil, true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) text() string { return string(r.take(r.uvarint())) }
