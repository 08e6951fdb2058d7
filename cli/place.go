package cli

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/key"
)

// place is where a document stands in one ranked index: one of the scores counts, by the declaration of the index.
type place struct {
	ok     bool // it has a place
	number float64
	whole  int64
	text   string
	at     time.Time
	group  string
}

// Limits of the numbers that a float64 orders without loss.
const (
	maxWhole  = 1 << 53
	maxDigits = 17
)

// The instants that a ranked index holds: by the microsecond, and with exact by the nanosecond.
var (
	firstMicro, endMicro = time.Date(1684, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2256, 1, 1, 0, 0, 0, 0, time.UTC)
	firstNano, lastNano  = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
)

// place reads the fields of one ranked index from a record.
func (r *rank) place(object map[string]json.RawMessage) (place, error) {
	score, err := r.read(&r.mention, object)
	if err != nil {
		return place{}, err
	}
	p := place{ok: score != nil}
	if p.ok {
		if err := r.score(&p, score); err != nil {
			return place{}, err
		}
	}
	if r.group == nil {
		return p, nil
	}
	group, err := r.read(r.group, object)
	if err != nil {
		return place{}, err
	}
	switch g := group.(type) {
	case nil:
		p.ok = false
	case string:
		p.group = g
	case bool:
		p.group = strconv.FormatBool(g)
	case json.Number:
		n, err := key.Decimal(g.String())
		if err != nil {
			return place{}, r.group.wrong("a number out of range", "a group")
		}
		p.group = n.String()
	default:
		return place{}, r.group.wrong(kindOf(g), "a text, a number or a truth value, which names a group")
	}
	return p, nil
}

// read gives the value of a field, nil for null and for an absent one.
func (r *rank) read(m *mention, object map[string]json.RawMessage) (any, error) {
	text, ok := object[m.name]
	if !ok {
		return nil, nil
	}
	m.seen.Store(true)
	v, err := decodeValue(text)
	if err != nil {
		return nil, m.about(err)
	}
	return v, nil
}

// score sets the score that a JSON value stands for.
func (r *rank) score(p *place, v any) error {
	switch v := v.(type) {
	case string:
		switch {
		case r.text:
			p.text = v
			return nil
		case r.instants == "rfc3339":
			return r.instant(p, v)
		}
	case json.Number:
		switch {
		case r.text, r.instants == "rfc3339":
		case r.instants != "":
			return r.sinceEpoch(p, v.String())
		case r.exact:
			return r.integer(p, v.String())
		default:
			return r.float(p, v.String())
		}
	}
	return r.wrong(kindOf(v), r.wants())
}

// wants says in words what the field must be.
func (r *rank) wants() string {
	switch {
	case r.text:
		return "a text, the declared type"
	case r.instants == "rfc3339":
		return "a text such as 2006-01-02T15:04:05Z, because the index has time: rfc3339"
	case r.instants != "":
		return "a number since 1970, because the index has time: " + r.instants
	default:
		return "one number, by which the index orders"
	}
}

func (r *rank) instant(p *place, text string) error {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return r.wrong("a text that is no time", r.wants())
	}
	return r.setInstant(p, at)
}

// setInstant checks the range. The zero time, which Go programs write for "none", has no place.
func (r *rank) setInstant(p *place, at time.Time) error {
	switch {
	case at.IsZero():
		p.ok = false
	case r.exact && (at.Before(firstNano) || at.After(lastNano)):
		return r.wrong("a time in the year "+strconv.Itoa(at.UTC().Year()), "from 1677-09-21 to 2262-04-11, which nanoseconds can hold")
	case !r.exact && (at.Before(firstMicro) || !at.Before(endMicro)):
		return r.wrong("a time in the year "+strconv.Itoa(at.UTC().Year()), "from 1684 to 2255")
	}
	p.at = at
	return nil
}

// sinceEpoch reads a number of units since 1970. What is finer than the order, a microsecond or with exact a nanosecond,
// does not count.
func (r *rank) sinceEpoch(p *place, text string) error {
	outside := r.wrong("a number out of range", "a time in the years 1684 to 2255; the index has time: "+r.instants)
	n, err := key.Decimal(text)
	canonical := n.String()
	if err != nil || strings.Contains(canonical, "e") {
		return outside
	}
	fine := 6
	if r.exact {
		fine = 9
	}
	places := fine - timeUnits[r.instants]
	whole, fraction, _ := strings.Cut(canonical, ".")
	rest := ""
	if len(fraction) > places {
		fraction, rest = fraction[:places], fraction[places:]
	}
	units, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", places-len(fraction)), 10, 64)
	if err != nil {
		return outside
	}
	if rest != "" && strings.HasPrefix(canonical, "-") {
		units-- // the unit that holds the instant, before 1970 too
	}
	if r.exact {
		return r.setInstant(p, time.Unix(0, units))
	}
	return r.setInstant(p, time.UnixMicro(units))
}

// integer reads a whole number for an exact order.
func (r *rank) integer(p *place, text string) error {
	n, err := key.Decimal(text)
	if err == nil {
		p.whole, err = strconv.ParseInt(n.String(), 10, 64)
	}
	if err != nil {
		return r.wrong("the number "+shortened(text), "a whole number from -2^63 to 2^63-1, because the index is exact")
	}
	return nil
}

// float reads a number for an order by float64: a whole number without loss, others up to the digits that tell one
// float64 from the next.
func (r *rank) float(p *place, text string) error {
	f, err := strconv.ParseFloat(text, 64)
	n, nerr := key.Decimal(text)
	if err != nil || nerr != nil {
		return r.wrong("the number "+shortened(text), "a number that a float64 holds")
	}
	p.number = f
	if !strings.ContainsAny(text, ".eE") || math.Abs(f) >= maxWhole {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil && i >= -maxWhole && i <= maxWhole {
			return nil
		}
		back, _ := key.Decimal(strconv.FormatFloat(f, 'g', -1, 64)) // a float64 is no other number
		if strings.ContainsAny(text, ".eE") && back == n {
			return nil
		}
		return r.wrong("the number "+shortened(text), "a number within 2^53, which a float64 orders exactly: write exact: true for more")
	}
	if significant(n.String()) > maxDigits {
		return r.wrong("the number "+shortened(text), "a number of at most 17 digits, which a float64 tells apart")
	}
	return nil
}

// significant counts the digits of a canonical number that are not zeros at its begin.
func significant(canonical string) int {
	mantissa, _, _ := strings.Cut(canonical, "e")
	return len(strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0"))
}

// shortened is a number for an error.
func shortened(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}
