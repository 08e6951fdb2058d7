package lua

import (
	"strconv"
	"strings"
)

// MaxListed is how many pairs a floor names, as in floor.lua.
const MaxListed = 4

// Floor is what a ranked key has trimmed.
type Floor struct {
	Raw  string // as stored
	Best Pair   // that may still be outside; without a score nothing is
}

// ParseFloor reads a floor as floor.lua writes it. Of a text that somebody else has damaged nothing is believed.
func ParseFloor(raw string) Floor {
	f := Floor{Raw: raw}
	_, rest, _ := strings.Cut(raw, " ")
	score, rest, _ := strings.Cut(rest, " ")
	digits, rest, _ := strings.Cut(rest, " ")
	if size, err := strconv.Atoi(digits); err == nil && size >= 0 && size <= len(rest) {
		f.Best = Pair{Member: rest[:size], Score: score}
	}
	return f
}

// None reports that nothing which was trimmed can still be outside.
func (f Floor) None() bool { return f.Best.Score == "" }

// Counter is the write counter of the last trim, for a compare-and-swap.
func (f Floor) Counter() string {
	head, _, _ := strings.Cut(f.Raw, " ")
	return strings.TrimSuffix(head, "+")
}

// Lowered is the text of a floor that names what is still outside instead, best first: "" if that is nothing. What stands
// beyond MaxListed is stood for by the last one that fits, and so is what a caller knows of but does not name: more.
func (f Floor) Lowered(outside []Pair, more bool) string {
	if len(outside) == 0 {
		return ""
	}
	if len(outside) > MaxListed {
		outside, more = outside[:MaxListed], true
	}
	var b strings.Builder
	b.WriteString(f.Counter())
	if more {
		b.WriteByte('+')
	}
	for _, p := range outside {
		b.WriteString(" " + p.Score + " " + strconv.Itoa(len(p.Member)) + " " + p.Member)
	}
	return b.String()
}
