package ranked

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
)

// encoder is how the scores of one Go type stand in a ranked key.
type encoder struct {
	name   string // for the definition
	kind   plan.Kind
	size   int // bytes before the id in a lexical member, -1 where they are terminated
	times  bool
	encode func(reflect.Value) (score string, ok bool, err error) // ok is false where a value has no place: the zero time
	decode func(raw string) index.Score
}

// Limits of whole numbers in a float64, and of the years whose microseconds are such numbers.
const (
	maxWhole           = 1 << 53
	firstYear, endYear = 1684, 2256
)

// The first and the last instant whose microseconds are such numbers, within those years.
var firstMicro, lastMicro = time.UnixMicro(-maxWhole).UTC(), time.UnixMicro(maxWhole).UTC()

var errNaN = errors.New("NaN has no place in an order")

var timeType = reflect.TypeFor[time.Time]()

// scoredBy gives the encoder of New and Sparse: the score is a float64.
func scoredBy(t reflect.Type, unit time.Duration) (encoder, error) {
	e := encoder{kind: plan.Ranked, decode: decodeFloat}
	switch {
	case t == timeType:
		e.name, e.times = "time", true
		e.encode = func(v reflect.Value) (string, bool, error) { return encodeTime(v.Interface().(time.Time), unit) }
		e.decode = func(raw string) index.Score {
			f, _ := strconv.ParseFloat(raw, 64)
			return index.ScoreOfTime(time.UnixMicro(int64(f) * unit.Microseconds()))
		}
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		e.name = "number"
		e.encode = func(v reflect.Value) (string, bool, error) { return encodeWhole(v.Int()) }
	case t.Kind() >= reflect.Uint8 && t.Kind() <= reflect.Uint32:
		e.name = "number"
		e.encode = func(v reflect.Value) (string, bool, error) { return encodeWhole(int64(v.Uint())) }
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		e.name = "number"
		e.encode = func(v reflect.Value) (string, bool, error) { return encodeFloat(v.Float()) }
	default:
		return refusing(plan.Ranked, fmt.Errorf("scores of type %v do not fit a float64: use ranked.Exact, or index a number or a time", t))
	}
	return e, nil
}

// refusing is the encoder of a declaration that Open reports: queries made of it meanwhile answer with the same error.
func refusing(kind plan.Kind, err error) (encoder, error) {
	return encoder{
		kind:   kind,
		encode: func(reflect.Value) (string, bool, error) { return "", false, err },
		decode: index.ScoreOfText,
	}, err
}

func encodeTime(at time.Time, unit time.Duration) (string, bool, error) {
	if at.IsZero() {
		return "", false, nil
	}
	if y := at.UTC().Year(); y < firstYear || y >= endYear {
		return "", false, fmt.Errorf("year %d: an order of times holds %d to %d", y, firstYear, endYear-1)
	}
	micro, per := at.UnixMicro(), unit.Microseconds()
	n := micro / per
	if micro%per < 0 {
		n-- // the unit that holds the instant, before 1970 too
	}
	if n > maxWhole || n < -maxWhole {
		return "", false, fmt.Errorf("%s: by the microsecond an order of times holds %s to %s: use a coarser unit",
			at.UTC().Format(time.DateOnly), firstMicro.Format(time.DateOnly), lastMicro.Format(time.DateOnly))
	}
	return strconv.FormatInt(n, 10), true, nil
}

func encodeWhole(n int64) (string, bool, error) {
	if n > maxWhole || n < -maxWhole {
		return "", false, fmt.Errorf("%d is beyond 2^53: use ranked.Exact", n)
	}
	return strconv.FormatInt(n, 10), true, nil
}

func encodeFloat(f float64) (string, bool, error) {
	switch {
	case math.IsNaN(f):
		return "", false, errNaN
	case math.IsInf(f, 1):
		return "+inf", true, nil
	case math.IsInf(f, -1):
		return "-inf", true, nil
	case f == 0:
		return "0", true, nil // -0 too
	}
	return strconv.FormatFloat(f, 'g', -1, 64), true, nil
}

func decodeFloat(raw string) index.Score {
	f, _ := strconv.ParseFloat(raw, 64)
	return index.ScoreOfFloat(f)
}

// exactly gives the encoder of Exact: members begin with bytes in the order of the values.
func exactly(t reflect.Type) (encoder, error) {
	e := encoder{kind: plan.Lexical, size: 8}
	switch {
	case t == timeType:
		e.name, e.times = "exact time", true
		e.encode = func(v reflect.Value) (string, bool, error) { return encodeNano(v.Interface().(time.Time)) }
		e.decode = func(raw string) index.Score { return index.ScoreOfTime(time.Unix(0, signed(raw))) }
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		e.name = "exact int"
		e.encode = func(v reflect.Value) (string, bool, error) { return encodeSigned(v.Int()), true, nil }
		e.decode = func(raw string) index.Score { return index.ScoreOfInt(signed(raw)) }
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr:
		e.name = "exact uint"
		e.encode = func(v reflect.Value) (string, bool, error) { return eight(v.Uint()), true, nil }
		e.decode = func(raw string) index.Score { return index.ScoreOfUint(unsigned(raw)) }
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		e.name = "exact float"
		e.encode = func(v reflect.Value) (string, bool, error) { return encodeOrdered(v.Float()) }
		e.decode = func(raw string) index.Score { return index.ScoreOfFloat(ordered(raw)) }
	case t.Kind() == reflect.String:
		e.name, e.size = "exact text", -1
		e.encode = func(v reflect.Value) (string, bool, error) { return encodeText(v.String()), true, nil }
		e.decode = func(raw string) index.Score { return index.ScoreOfText(decodeText(raw)) }
	default:
		return refusing(plan.Lexical, fmt.Errorf("scores of type %v have no order here: use a number, a time or a string", t))
	}
	return e, nil
}

// The instants that nanoseconds in an int64 hold.
var firstNano, lastNano = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

func encodeNano(at time.Time) (string, bool, error) {
	if at.IsZero() {
		return "", false, nil
	}
	if at.Before(firstNano) || at.After(lastNano) {
		return "", false, fmt.Errorf("year %d: nanoseconds hold 1677-09-21 to 2262-04-11", at.UTC().Year())
	}
	return encodeSigned(at.UnixNano()), true, nil
}

// eight is n in eight bytes, whose order is that of the numbers.
func eight(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

func unsigned(raw string) uint64 {
	if len(raw) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64([]byte(raw))
}

const signBit = 1 << 63

func encodeSigned(n int64) string { return eight(uint64(n) ^ signBit) }

func signed(raw string) int64 { return int64(unsigned(raw) ^ signBit) }

// encodeOrdered turns the bits of a float into a number with the order of the floats.
func encodeOrdered(f float64) (string, bool, error) {
	if math.IsNaN(f) {
		return "", false, errNaN
	}
	bits := math.Float64bits(f + 0) // -0 + 0 is 0
	if bits&signBit != 0 {
		bits = ^bits
	} else {
		bits |= signBit
	}
	return eight(bits), true, nil
}

func ordered(raw string) float64 {
	bits := unsigned(raw)
	if bits&signBit != 0 {
		bits &^= signBit
	} else {
		bits = ^bits
	}
	return math.Float64frombits(bits)
}

// encodeText keeps the order of texts of any length before any id: a zero byte becomes 0 ff, and 0 1 ends the text.
func encodeText(s string) string {
	return strings.ReplaceAll(s, "\x00", "\x00\xff") + plan.Terminator
}

func decodeText(raw string) string {
	return strings.ReplaceAll(strings.TrimSuffix(raw, plan.Terminator), "\x00\xff", "\x00")
}
