package plan

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// WriteIDSize is the length of a write id in bytes. It names one write of one record; 64 random bits are enough because
// only the writes of one record are ever told apart by it.
const WriteIDSize = 8

// ErrRow reports a manifest row that Lockstep did not write.
var ErrRow = errors.New("lockstep: damaged manifest row")

// Row is what the manifest knows of one record: which write was the last, and which entries it left.
type Row struct {
	WriteID string
	Seq     int64 // the partition's write counter at that write
	Entries []Token
}

// ParseRow takes a row apart.
func ParseRow(s string) (Row, error) {
	if len(s) < WriteIDSize+1 {
		return Row{}, fmt.Errorf("%w: %d bytes", ErrRow, len(s))
	}
	stamp, entries, _ := strings.Cut(s[WriteIDSize:], "\n")
	seq, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || seq < 0 {
		return Row{}, fmt.Errorf("%w: its write counter is not a number", ErrRow)
	}
	tokens, err := Split(entries)
	if err != nil {
		return Row{}, err
	}
	return Row{WriteID: s[:WriteIDSize], Seq: seq, Entries: tokens}, nil
}

// String is the row as the manifest keeps it.
func (r Row) String() string {
	s := r.WriteID + strconv.FormatInt(r.Seq, 10)
	if len(r.Entries) > 0 {
		s += "\n" + Join(r.Entries)
	}
	return s
}

// Join writes tokens as a row does, one a line. Control bytes are escaped in every token, so no token holds a newline.
func Join(tokens []Token) string {
	size := 0
	for _, t := range tokens {
		size += len(t) + 1
	}
	var b strings.Builder
	b.Grow(size)
	for i, t := range tokens {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(string(t))
	}
	return b.String()
}

// Split takes apart what Join wrote.
func Split(s string) ([]Token, error) {
	if s == "" {
		return nil, nil
	}
	parts := strings.Split(s, "\n")
	out := make([]Token, len(parts))
	for i, p := range parts {
		if len(p) < 2 {
			return nil, fmt.Errorf("%w: entry %d is empty", ErrRow, i)
		}
		body, prefix, lexical := strings.Cut(p[1:], "\t")
		switch Kind(p[0]) {
		case Set, Ranked:
			if lexical {
				return nil, fmt.Errorf("%w: entry %d has a prefix", ErrRow, i)
			}
		case Lexical:
			if _, err := hex.DecodeString(prefix); err != nil || !lexical || body == "" {
				return nil, fmt.Errorf("%w: entry %d has no prefix", ErrRow, i)
			}
		default:
			return nil, fmt.Errorf("%w: entry %d is of an unknown kind %q", ErrRow, i, p[0])
		}
		out[i] = Token(p)
	}
	return out, nil
}
