package key

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Value is a typed index value in its canonical form. Values are comparable:
// two are the same index value, and give the same key, if and only if they are
// ==. Values of different kinds are never the same: true, "true" and 1 are
// three values. The zero Value is Text("").
type Value struct {
	kind kind
	// What stands in a key behind the mark of the kind, as Redis gets it and
	// without a limit; for a text the text itself, not yet escaped.
	text string
}

type kind uint8

const (
	kindText kind = iota
	kindBool
	kindNumber
	kindTime
	kindPair
	kindDigest
)

var (
	kindNames = [...]string{"text", "bool", "number", "time", "pair", "digest"}
	kindMarks = [...]string{"", "~b", "~n", "~t", "~p", digestMark}
)

// Text returns the value of a text, which may hold any bytes.
func Text(s string) Value { return Value{kindText, s} }

// Bool returns the value of a truth value.
func Bool(b bool) Value { return Value{kindBool, strconv.FormatBool(b)} }

// Int returns the value of an integer, exact over the whole range. All numbers
// share one kind: Int(2), Uint(2), the float 2 and the decimal "2.0" are ==.
func Int(n int64) Value { return Value{kindNumber, strconv.FormatInt(n, 10)} }

// Uint returns the value of an integer, exact over the whole range, as Int.
func Uint(n uint64) Value { return Value{kindNumber, strconv.FormatUint(n, 10)} }

// Float returns the value of a float of 32 or 64 bits as the shortest decimal
// that reads back as that float, which is what JSON writes for it: the float32
// 0.1 is == Decimal("0.1"). From 2^53 up this decimal need not be the float's
// exact binary value. -0 is 0; the infinities are values. ErrNaN for NaN;
// ErrRange for other sizes and for f that is no float32 when bits is 32, since
// it would be rounded.
func Float(f float64, bits int) (Value, error) {
	switch {
	case bits != 32 && bits != 64:
		return Value{}, fmt.Errorf("%w: a float of %d bits", ErrRange, bits)
	case math.IsNaN(f):
		return Value{}, ErrNaN
	case math.IsInf(f, 1):
		return Value{kindNumber, "inf"}, nil
	case math.IsInf(f, -1):
		return Value{kindNumber, "-inf"}, nil
	case bits == 32 && float64(float32(f)) != f:
		return Value{}, fmt.Errorf("%w: not a float of 32 bits", ErrRange)
	}
	return Decimal(strconv.FormatFloat(f, 'e', -1, bits))
}

// Decimal returns the value of a number in the text form of JSON, exact at any
// precision: "1.10" is "1.1", "1e3" is "1000", "-0" is "0", and 10^20 or 1e400
// lose nothing. ErrMalformed for any other text (signs, blanks, leading zeros,
// hex, "inf"); ErrRange for a number whose first digit stands beyond 10^100000
// or below 10^-100000, see MaxExponent. Time and memory grow with the length of
// s, never with its exponent.
func Decimal(s string) (Value, error) {
	d, err := canonicalDecimal(s)
	if err != nil {
		return Value{}, err
	}
	return Value{kindNumber, d}, nil
}

const timeLayout = "20060102T150405.999999999Z"

// Time returns the value of an instant: the same for the same instant in
// whatever zone, with all its nanoseconds. ErrRange if its year in UTC is
// outside 0 to 9999.
func Time(t time.Time) (Value, error) {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return Value{}, fmt.Errorf("%w: year %d, allowed are 0 to 9999", ErrRange, y)
	}
	return Value{kindTime, t.Format(timeLayout)}, nil
}

// Pair returns the value composed of two, which may be pairs again. Different
// pairs are never equal, nor is Pair(Pair(a, b), c) the same as Pair(a, Pair(b,
// c)). No text has to be joined by hand, and none can be confused with a joint.
func Pair(a, b Value) Value {
	// A comma parts the two and ends each; it is escaped inside of texts. Since a
	// pair announces itself ahead of exactly two parts, as in Polish notation, pairs
	// within pairs need no brackets and no second escaping.
	t := appendValue(nil, a, 0)
	t = append(t, ',')
	return Value{kindPair, string(appendValue(t, b, 0))}
}

// Digest returns the value by which v stands in a key when it is private or
// untrusted: the SHA-256 of its canonical form, which is how v would be written
// in a key on Redis if there were no limit. For a text without special bytes
// that is the text itself. The kind of v is hashed with it and not known
// afterwards. A digest is its own digest.
func (v Value) Digest() Value {
	if v.kind == kindDigest {
		return v
	}
	sum := sha256.Sum256(appendValue(nil, v, 0))
	return Value{kindDigest, hex.EncodeToString(sum[:])}
}

// Kind returns "text", "bool", "number", "time", "pair" or "digest".
func (v Value) Kind() string { return kindNames[v.kind] }

// IsText returns the text of a text value, byte for byte, and false for every
// other kind.
func (v Value) IsText() (string, bool) {
	if v.kind != kindText {
		return "", false
	}
	return v.text, true
}

// String returns the value for people: texts as they are, with whatever bytes
// they hold, times as RFC 3339, pairs as (a, b), digests as sha256:<hex>. It
// does not tell kinds apart; compare values, not strings.
func (v Value) String() string {
	switch v.kind {
	case kindTime:
		t, err := time.Parse(timeLayout, v.text)
		if err != nil {
			return v.text
		}
		return t.Format(time.RFC3339Nano)
	case kindPair:
		var b strings.Builder
		writePair(&b, v.text)
		return b.String()
	case kindDigest:
		return "sha256:" + v.text
	default:
		return v.text
	}
}

// writePair writes the two parts that s begins with and returns what follows.
func writePair(b *strings.Builder, s string) string {
	b.WriteByte('(')
	for i := range 2 {
		if i > 0 {
			b.WriteString(", ")
		}
		if inner, ok := strings.CutPrefix(s, kindMarks[kindPair]); ok {
			s = strings.TrimPrefix(writePair(b, inner), ",")
			continue
		}
		var part string
		part, s, _ = strings.Cut(s, ",")
		b.WriteString(atom(part).String())
	}
	b.WriteByte(')')
	return s
}

// appendValue appends v as a segment of any length.
func appendValue(b []byte, v Value, m mode) []byte {
	if v.kind == kindText {
		return appendText(b, v.text, m)
	}
	b = append(b, kindMarks[v.kind]...)
	if m&modeASCII != 0 {
		return appendASCII(b, v.text) // only the texts of a pair hold wide bytes
	}
	return append(b, v.text...)
}

// appendValueSegment appends v as the rules want it: plain or as its digest.
func appendValueSegment(b []byte, v Value, r Rules) []byte {
	start := len(b)
	if !r.untrusted && len(v.text) <= r.maxSegment {
		if b = appendValue(b, v, r.mode); len(b)-start <= r.maxSegment {
			return b
		}
		b = b[:start]
	}
	return appendValue(b, v.Digest(), r.mode)
}

// checkValue reports whether appendValueSegment could have written seg under
// the rules or, for plain segments, under the same rules without Untrusted. It
// allocates nothing except for numbers that are no small integers.
func checkValue(seg string, r Rules) bool {
	if len(seg) > r.maxSegment {
		return false
	}
	for open := 1; ; open-- { // values still to read
		for strings.HasPrefix(seg, kindMarks[kindPair]) {
			seg = seg[len(kindMarks[kindPair]):]
			open++ // one value became two
		}
		part, rest, more := strings.Cut(seg, ",")
		if !checkAtom(part, r.mode) || more != (open > 1) {
			return false
		}
		if !more {
			return true
		}
		seg = rest
	}
}

func checkAtom(s string, m mode) bool {
	switch {
	case strings.HasPrefix(s, digestMark):
		return isDigest(s[len(digestMark):])
	case strings.HasPrefix(s, kindMarks[kindNumber]):
		return checkNumber(s[2:])
	case strings.HasPrefix(s, kindMarks[kindTime]):
		return checkTime(s[2:])
	case strings.HasPrefix(s, kindMarks[kindBool]):
		return s[2:] == "true" || s[2:] == "false"
	default:
		return checkText(s, m)
	}
}

// readValue decodes a segment that checkValue accepted.
func readValue(seg string, m mode) Value {
	if pair, ok := strings.CutPrefix(seg, kindMarks[kindPair]); ok {
		if m&modeASCII != 0 {
			pair = withoutASCII(pair)
		}
		return Value{kindPair, pair}
	}
	return atom(seg)
}

// atom decodes a segment that checkAtom accepted.
func atom(s string) Value {
	for k := kindBool; k <= kindDigest; k++ {
		if t, ok := strings.CutPrefix(s, kindMarks[k]); ok {
			return Value{k, t}
		}
	}
	return Text(plainText(s))
}

// checkTime reports whether s is the canonical spelling of an instant.
func checkTime(s string) bool {
	t, err := time.Parse("20060102T150405Z", s) // takes a fraction too
	if err != nil {
		return false
	}
	var buf [len(timeLayout)]byte
	return string(t.AppendFormat(buf[:0], timeLayout)) == s
}
