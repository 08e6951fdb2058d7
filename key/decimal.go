package key

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxExponent bounds the size of a number: the power of ten of its first digit
// is at most this, and at least minus this.
const MaxExponent = 100_000

// fillers is how many zeros a canonical number may hold beside its digits
// before it is written with an exponent: 10^20 is written out, 10^21 is 1e21.
const fillers = 20

// canonicalDecimal returns the one spelling of a JSON number: no exponent where
// at most twenty zeros fill the gap, else all digits as an integer and an
// exponent; no zeros at either end that say nothing; no -0. The spelling is a
// JSON number again and its own canonical form.
func canonicalDecimal(s string) (string, error) {
	whole, fraction, exponent, negative, ok := splitDecimal(s)
	if !ok {
		return "", fmt.Errorf("%w: not a JSON number, %d bytes", ErrMalformed, len(s))
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", nil // whatever its exponent
	}
	// The value is digits * 10^exp.
	exp := readExponent(exponent) - int64(len(fraction))
	n := len(digits)
	digits = strings.TrimRight(digits, "0")
	exp += int64(n - len(digits))
	if first := exp + int64(len(digits)) - 1; first > MaxExponent || first < -MaxExponent {
		return "", fmt.Errorf("%w: a number beyond 10^%d or below 10^-%d", ErrRange, MaxExponent, MaxExponent)
	}

	var b strings.Builder
	b.Grow(len(digits) + fillers + 4)
	if negative {
		b.WriteByte('-')
	}
	point := int64(len(digits)) + exp
	switch {
	case exp >= 0 && exp <= fillers:
		b.WriteString(digits)
		writeZeros(&b, exp)
	case exp < 0 && point > 0:
		b.WriteString(digits[:point])
		b.WriteByte('.')
		b.WriteString(digits[point:])
	case exp < 0 && -point <= fillers:
		b.WriteString("0.")
		writeZeros(&b, -point)
		b.WriteString(digits)
	default:
		b.WriteString(digits)
		b.WriteByte('e')
		b.WriteString(strconv.FormatInt(exp, 10))
	}
	return b.String(), nil
}

func writeZeros(b *strings.Builder, n int64) {
	for range n {
		b.WriteByte('0')
	}
}

// splitDecimal takes a JSON number apart (RFC 8259, section 6). The exponent
// keeps its sign.
func splitDecimal(s string) (whole, fraction, exponent string, negative, ok bool) {
	s, negative = strings.CutPrefix(s, "-")
	whole, s = cutDigits(s)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return "", "", "", false, false
	}
	if rest, found := strings.CutPrefix(s, "."); found {
		if fraction, s = cutDigits(rest); fraction == "" {
			return "", "", "", false, false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		exponent = s[1:]
		unsigned := exponent
		if unsigned != "" && (unsigned[0] == '+' || unsigned[0] == '-') {
			unsigned = unsigned[1:]
		}
		var d string
		if d, s = cutDigits(unsigned); d == "" {
			return "", "", "", false, false
		}
	}
	return whole, fraction, exponent, negative, s == ""
}

func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// readExponent stops counting where no length of a text could bring the number
// back into range.
func readExponent(s string) int64 {
	const enough = 1 << 60
	negative := strings.HasPrefix(s, "-")
	var n int64
	for _, c := range strings.TrimLeft(s, "+-") {
		if n = n*10 + int64(c-'0'); n > enough/10 {
			n = enough / 10
		}
	}
	if negative {
		return -n
	}
	return n
}

// checkNumber reports whether s is the canonical spelling of a number.
func checkNumber(s string) bool {
	// The common case, an integer of up to 19 digits, allocates nothing.
	if d, rest := cutDigits(strings.TrimPrefix(s, "-")); rest == "" && len(d) > 0 && len(d) < 20 {
		return d[0] != '0' || s == "0"
	}
	if s == "inf" || s == "-inf" {
		return true
	}
	c, err := canonicalDecimal(s)
	return err == nil && c == s
}

// readNumber reads a version, a generation or a bucket: 0 to 2147483647, no
// sign, no leading zero.
func readNumber(s string) (int, bool) {
	if len(s) == 0 || len(s) > 10 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, n <= maxNumber
}
