package index

import (
	"strconv"
	"time"
)

// Score is the place of a record in an order, as its index holds it. It converts to what the index was made of.
type Score struct {
	kind    scoreKind
	number  float64
	integer int64 // the bits of an unsigned one
	whole   bool
	at      time.Time
	text    string
}

// scoreKind says how a score is written: that is done where it is asked for, for most of a page never.
type scoreKind byte

const (
	scoreText scoreKind = iota
	scoreFloat
	scoreInt
	scoreUint
	scoreTime
)

// ScoreOfFloat is the score of a number.
func ScoreOfFloat(f float64) Score {
	s := Score{kind: scoreFloat, number: f}
	if n := int64(f); float64(n) == f && f >= -(1<<53) && f <= 1<<53 {
		s.kind, s.integer, s.whole = scoreInt, n, true
	}
	return s
}

// ScoreOfInt is the score of an integer.
func ScoreOfInt(n int64) Score {
	return Score{kind: scoreInt, number: float64(n), integer: n, whole: true}
}

// ScoreOfUint is the score of an unsigned integer.
func ScoreOfUint(n uint64) Score {
	return Score{kind: scoreUint, number: float64(n), integer: int64(n), whole: n <= 1<<63-1}
}

// ScoreOfTime is the score of an instant.
func ScoreOfTime(at time.Time) Score {
	micro := at.UnixMicro()
	return Score{kind: scoreTime, number: float64(micro), integer: micro, whole: true, at: at.UTC()}
}

// ScoreOfText is the score of a text.
func ScoreOfText(s string) Score { return Score{text: s} }

// Float64 is the score as a number: microseconds since 1970 for a time, 0 for a text.
func (s Score) Float64() float64 { return s.number }

// Int64 is the score as an integer, microseconds since 1970 for a time, and whether it is one without rounding.
func (s Score) Int64() (int64, bool) { return s.integer, s.whole }

// Time is the score as an instant in UTC, the zero time if the index is not one of times. It is as exact as the order.
func (s Score) Time() time.Time { return s.at }

// String is the score as text: decimal for numbers, RFC 3339 for times.
func (s Score) String() string {
	switch s.kind {
	case scoreFloat:
		return strconv.FormatFloat(s.number, 'g', -1, 64)
	case scoreInt:
		return strconv.FormatInt(s.integer, 10)
	case scoreUint:
		return strconv.FormatUint(uint64(s.integer), 10)
	case scoreTime:
		return s.at.Format(time.RFC3339Nano)
	default:
		return s.text
	}
}

// MarshalText gives String.
func (s Score) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
