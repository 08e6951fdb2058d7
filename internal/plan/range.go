package plan

import (
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/key"
)

// Edge is one end of a range of scores: the score of a Ranked entry as text, or the prefix of a Lexical one.
type Edge struct {
	Score string
	Open  bool // the score itself is outside
}

// Range is a stretch of an order. An edge that is nil leaves its end open to infinity.
type Range struct{ Min, Max *Edge }

// Intersect is the range that lies in both.
func (r Range) Intersect(k Kind, o Range) Range {
	if o.Min != nil && (r.Min == nil || tighter(k, *o.Min, *r.Min, 1)) {
		r.Min = o.Min
	}
	if o.Max != nil && (r.Max == nil || tighter(k, *o.Max, *r.Max, -1)) {
		r.Max = o.Max
	}
	return r
}

// tighter reports whether edge a cuts off more than b, seen from below (sign 1) or above (-1).
func tighter(k Kind, a, b Edge, sign int) bool {
	c := CompareScores(k, a.Score, b.Score) * sign
	return c > 0 || c == 0 && a.Open && !b.Open
}

// Contains reports whether a score lies in the range.
func (r Range) Contains(k Kind, score string) bool {
	if r.Min != nil {
		if c := CompareScores(k, score, r.Min.Score); c < 0 || c == 0 && r.Min.Open {
			return false
		}
	}
	if r.Max != nil {
		if c := CompareScores(k, score, r.Max.Score); c > 0 || c == 0 && r.Max.Open {
			return false
		}
	}
	return true
}

// Bounds are the edges as ZCOUNT takes them for Ranked entries, and ZLEXCOUNT for Lexical ones. Members of a lexical key
// begin with the prefix and go on with an id, so an edge after a prefix is one before the next. A lower bound "+" is above
// everything.
func (r Range) Bounds(k Kind) (lower, upper string) {
	if k == Lexical {
		lower, upper = "-", "+"
		if r.Min != nil {
			lower = "[" + r.Min.Score
			if r.Min.Open {
				lower = after(r.Min.Score, "[")
			}
		}
		if r.Max != nil {
			upper = after(r.Max.Score, "(")
			if r.Max.Open {
				upper = "(" + r.Max.Score
			}
		}
		return lower, upper
	}
	lower, upper = "-inf", "+inf"
	if r.Min != nil {
		lower = scored(*r.Min)
	}
	if r.Max != nil {
		upper = scored(*r.Max)
	}
	return lower, upper
}

func scored(e Edge) string {
	if e.Open {
		return "(" + e.Score
	}
	return e.Score
}

// after is the bound at the first text after every text that begins with prefix: "+" after a prefix of nothing but 0xff,
// because nothing follows its members, whatever their ids.
func after(prefix, mark string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return mark + string(b[:i+1])
		}
	}
	return "+"
}

// CompareScores compares two scores of one kind: as numbers, or as bytes.
func CompareScores(k Kind, a, b string) int {
	if k == Lexical {
		return strings.Compare(a, b)
	}
	x, y := parseScore(a), parseScore(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// Compare compares two (score, member) pairs of a ranked key: positive if the first lies nearer to the end that is kept, 0
// only for one pair. Scores count for Ranked keys; the members of Lexical ones begin with theirs.
func (b Bound) Compare(k Kind, score, member, otherScore, otherMember string) int {
	cmp := 0
	if k == Ranked {
		cmp = CompareScores(Ranked, score, otherScore)
	}
	if cmp == 0 {
		cmp = strings.Compare(member, otherMember)
	}
	if b.Low {
		return -cmp
	}
	return cmp
}

// parseScore reads a score as the server or an encoder writes it; neither writes anything else.
func parseScore(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// Order is a question to a ranked index.
type Order struct {
	Kind       Kind // Ranked or Lexical
	Group      key.Value
	Grouped    bool
	Descending bool
	Limit      int
	PrefixSize int // of Lexical members, -1 where they are terminated
	Range      Range
	Bound      Bound
}

// Terminator ends a lexical prefix of no fixed size; inside the prefix a zero byte is followed by 0xff.
const Terminator = "\x00\x01"

// SplitMember takes the member of a ranked key apart into what stands before the id, "" for Ranked, and the id.
func (o Order) SplitMember(member string) (prefix, id string) {
	if o.Kind != Lexical {
		return "", member
	}
	size := o.PrefixSize
	if size < 0 {
		size = strings.Index(member, Terminator) + len(Terminator)
	}
	if size > len(member) {
		return member, ""
	}
	return member[:size], member[size:]
}

// Kept reports whether the order begins at the end that the index keeps.
func (o Order) Kept() bool { return o.Descending != o.Bound.Low }
