package opaque

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

// writeIDSize is a write id in bytes: six of time in milliseconds, ten at random.
const writeIDSize = 16

// WriteID names one attempt to write a record. A record remembers the attempt that committed it, and for each of its index
// entries the attempt that wrote the entry.
type WriteID [writeIDSize]byte

// newWriteID makes an id that was never used. The time in it serves to guess an age and nothing else.
func newWriteID(now time.Time) WriteID {
	var w WriteID
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		w[i] = byte(ms >> (8 * (5 - i)))
	}
	_, _ = rand.Read(w[6:]) // never fails
	return w
}

// String is the id in hex, as ParseWriteID reads it.
func (w WriteID) String() string { return hex.EncodeToString(w[:]) }

// ParseWriteID reads the text of a write id. ErrInvalid of package index for any other text.
func ParseWriteID(s string) (w WriteID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != writeIDSize {
		return w, fmt.Errorf("%w: not a write id", errInvalid)
	}
	copy(w[:], b)
	return w, nil
}

// started is when the attempt began, by the clock of its client.
func (w WriteID) started() time.Time {
	var ms uint64
	for _, b := range w[:6] {
		ms = ms<<8 | uint64(b)
	}
	return time.UnixMilli(int64(ms))
}
