package key_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/key"
)

func TestOneNumberHasOneSpellingElseEqualNumbersAreNotFound(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "-0.000e7": "0", "0e999999999999999999999": "0",
		"1.10": "1.1", "1.1": "1.1", "1e3": "1000", "1E+3": "1000", "2.0": "2", "10": "10", "100e-2": "1", "-1": "-1", "-12.50": "-12.5",
		"0.001": "0.001", "1e-3": "0.001", "12e-1": "1.2", "120": "120", "1000000": "1000000",
		"1e20": "100000000000000000000", "100000000000000000000": "100000000000000000000",
		"1e21": "1e21", "1000000000000000000000": "1e21", "12e21": "12e21", "1.2e22": "12e21", "1e400": "1e400", "-1e-400": "-1e-400",
		"1e-21": "0.000000000000000000001", "1e-22": "1e-22",
		"9007199254740993": "9007199254740993", "18446744073709551616": "18446744073709551616",
		"1e100000": "1e100000", "10e99999": "1e100000", "1e-100000": "1e-100000",
	} {
		require.Equal(t, want, decimal(t, in).String(), "%q", in)
		require.Equal(t, decimal(t, in), decimal(t, want))
	}
	long := strings.Repeat("1234567890", 100)
	require.Equal(t, "123456789."+long+"1", decimal(t, "123456789."+long+"100").String())
}

func TestNoNumberWhereTheTextIsNoneElseGarbageIsIndexed(t *testing.T) {
	for _, s := range []string{
		"", "-", "+1", "01", "-01", "00", ".5", "5.", "1.e3", "1e", "1e+", "1e-", "1e+-3", "1e--3", " 1", "1 ", "1_000", "0x10", "inf", "NaN", "1e3.5", "1.2.3",
		"--1", "1\x00", "١", "-e5", "1,5",
	} {
		_, err := key.Decimal(s)
		require.ErrorIs(t, err, key.ErrMalformed, "%q", s)
	}
}

func TestAbsurdExponentsAreRefusedElseOneValueTakesAllMemory(t *testing.T) {
	for _, s := range []string{
		"1e100001", "10e100000", "1e-100001", "0.1e-100000", "1e999999999999999999999999", "-1e-999999999999999999999999",
		"1e9223372036854775807", "1e18446744073709551617", "1e-18446744073709551617", "1e-9223372036854775808", "0.5e-9223372036854775808", strings.Repeat("9", 100_002),
	} {
		_, err := key.Decimal(s)
		require.ErrorIs(t, err, key.ErrRange)
	}
	// The bound is on the number, not on how it is spelled.
	require.Equal(t, decimal(t, "1"), decimal(t, "1"+strings.Repeat("0", 100_500)+"e-100500"))
	require.Equal(t, decimal(t, "1e100000"), decimal(t, "0."+strings.Repeat("0", 500)+"1e100501"))
}

func TestIntegersAreExactElseNeighboursShareAnEntry(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 1_000_000, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		require.Equal(t, key.Int(n), decimal(t, strconv.FormatInt(n, 10)))
		require.NotEqual(t, key.Int(n), key.Int(n-1))
		if n >= 0 {
			require.Equal(t, key.Int(n), key.Uint(uint64(n)))
		}
	}
	require.Equal(t, key.Uint(math.MaxUint64), decimal(t, "18446744073709551615"))
	require.NotEqual(t, key.Uint(math.MaxUint64), key.Uint(math.MaxUint64-1))
	require.NotEqual(t, key.Uint(math.MaxUint64), key.Int(-1))
}

func TestFloatsAgreeWithTheirDecimalsElseJSONAndGoDisagree(t *testing.T) {
	float := func(f float64, bits int) key.Value {
		v, err := key.Float(f, bits)
		require.NoError(t, err)
		return v
	}
	require.Equal(t, key.Int(2), float(2, 64))
	require.Equal(t, key.Int(0), float(math.Copysign(0, -1), 64))
	require.Equal(t, decimal(t, "0.1"), float(0.1, 64))
	require.Equal(t, decimal(t, "0.1"), float(float64(float32(0.1)), 32))
	require.NotEqual(t, decimal(t, "0.1"), float(float64(float32(0.1)), 64))
	require.Equal(t, decimal(t, "1e20"), float(1e20, 64))
	require.Equal(t, decimal(t, "1e21"), float(1e21, 64))
	require.Equal(t, key.Int(1<<53), float(1<<53, 64))
	require.Equal(t, decimal(t, "5e-324"), float(math.SmallestNonzeroFloat64, 64))
	require.Equal(t, "inf", float(math.Inf(1), 64).String())
	require.Equal(t, "-inf", float(math.Inf(-1), 32).String())

	_, err := key.Float(math.NaN(), 64)
	require.ErrorIs(t, err, key.ErrNaN)
	for _, bits := range []int{0, 16, 80} {
		_, err = key.Float(1, bits)
		require.ErrorIs(t, err, key.ErrRange)
	}
	for _, f := range []float64{0.1, 1e300, 1<<24 + 1} {
		_, err = key.Float(f, 32)
		require.ErrorIs(t, err, key.ErrRange, "rounded in silence")
	}

	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }).Draw(t, "f")
		text, err := json.Marshal(f)
		require.NoError(t, err)
		v, err := key.Float(f, 64)
		require.NoError(t, err)
		require.Equal(t, decimal(t, string(text)), v)
		back, err := strconv.ParseFloat(v.String(), 64)
		require.NoError(t, err)
		require.Equal(t, f, back)
	})
}

// ratOf reads a number with math/big, or not if it is so large that this would
// take long.
func ratOf(s string, limit int) (*big.Rat, bool) {
	if len(s) > limit {
		return nil, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if n, err := strconv.Atoi(s[i+1:]); err != nil || n > limit || n < -limit {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.10", "1.1", "1e3", "1000", "1e20", "1e21", "1e400", "-12.5e-3", "0.0001", "1e-22", "18446744073709551615", "1e999999999999"} {
		for _, u := range []string{"0", "1.1", "1000", "1e-7"} {
			f.Add(s, u)
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		va, err := key.Decimal(a)
		// JSON allows blanks around a number, and other things than numbers.
		valid := json.Valid([]byte(a)) && strings.ContainsRune("-0123456789", rune(a[0])) && strings.ContainsRune("0123456789", rune(a[len(a)-1]))
		if err != nil {
			require.True(t, !valid || errors.Is(err, key.ErrRange), "a JSON number was refused")
			return
		}
		require.True(t, valid, "what is no JSON number was taken for one")
		again, err := key.Decimal(va.String())
		require.NoError(t, err)
		require.Equal(t, va, again, "the canonical form has to be its own")

		ra, ok := ratOf(a, 1000)
		if !ok {
			return
		}
		rc, ok := ratOf(va.String(), 3000)
		require.True(t, ok)
		require.Zero(t, ra.Cmp(rc), "the number changed")
		vb, err := key.Decimal(b)
		if err != nil {
			return
		}
		if rb, ok := ratOf(b, 1000); ok {
			require.Equal(t, ra.Cmp(rb) == 0, va == vb)
		}
	})
}
