package membership_test

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/membership"
)

func same[V any](v V) V { return v }

func some[V any](v V) (V, bool) { return v, true }

// The text is a promise: another one is another generation, and every index is built anew.
func TestTheDefinitionOfAnIndexKeepsItsText(t *testing.T) {
	for want, ix := range map[string]interface{ Definition() index.Definition }{
		"a membership text":                      membership.New("a", same[string]),
		"a membership bool":                      membership.New("a", same[bool]),
		"a membership number":                    membership.New("a", same[uint8]),
		"b membership number":                    membership.New("b", same[float64]),
		"a membership time":                      membership.New("a", same[time.Time]),
		"a membership any":                       membership.New("a", same[key.Value]),
		"c membership text":                      membership.New("c", same[code]),
		"a membership pair(text,number)":         membership.New("a", same[membership.Pair[string, int]]),
		"a membership text sparse":               membership.Sparse("a", some[string]),
		"a membership text multi":                membership.Multi("a", same[[]string]),
		"a membership text unique sparse":        membership.Unique("a", some[string]),
		"a membership text sparse digest":        membership.Sparse("a", some[string], membership.Digest),
		"a membership text fold trim":            membership.New("a", same[string], membership.Fold, membership.Trim),
		"a membership text trim fold":            membership.New("a", same[string], membership.Trim, membership.Fold),
		"a membership text normalize fold":       membership.New("a", same[string], membership.Fold, membership.Normalize(same[string])),
		"a membership text multi revision=3":     membership.Multi("a", same[[]string], membership.Revision(3), membership.MaxValues(7)),
		"d membership text":                      membership.New("d", same[string], membership.Revision(0), membership.Reading(func(s string) ([]string, error) { return nil, nil })),
		"e membership pair(pair(any,time),bool)": membership.New("e", same[membership.Pair[membership.Pair[key.Value, time.Time], bool]]),
	} {
		d := ix.Definition()
		require.NoError(t, d.Err)
		require.Equal(t, want, d.Canonical())
	}
}

func TestTheNumberOfValuesOfARecordIsBounded(t *testing.T) {
	values := func(n int) []int {
		out := make([]int, 0, 2*n)
		for i := range n {
			out = append(out, i, i) // each twice: only distinct ones count
		}
		return out
	}
	ix := membership.Multi("tag", same[[]int])
	entries, err := ix.Entries(values(membership.DefaultMaxValues))
	require.NoError(t, err)
	require.Len(t, entries, membership.DefaultMaxValues)
	_, err = ix.Entries(values(membership.DefaultMaxValues + 1))
	require.ErrorIs(t, err, index.ErrTooLarge)
	var large *index.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, index.TooLargeError{What: "values", Size: membership.DefaultMaxValues + 1, Limit: membership.DefaultMaxValues}, *large)

	ix = membership.Multi("tag", same[[]int], membership.MaxValues(20_000))
	entries, err = ix.Entries(values(20_000))
	require.NoError(t, err)
	require.Len(t, entries, 20_000)
}

func TestADigestedValueIsFoundByItsValueAndReadNowhere(t *testing.T) {
	mail := valueOf(t, "Ann@x.org", membership.Digest, membership.Fold)
	require.Equal(t, key.Text("ann@x.org").Digest(), mail, "what is digested is the normalised value")
	require.NotContains(t, mail.String(), "ann")
	require.NotEqual(t, valueOf(t, 1, membership.Digest), valueOf(t, "1", membership.Digest), "kinds do not mix")

	read, err := membership.New("x", same[string], membership.Digest, membership.Fold).Readings("ANN@x.org")
	require.NoError(t, err)
	require.Equal(t, []key.Value{mail}, read)
}

func readings[V any](t *testing.T, text string, o ...membership.Option) []key.Value {
	t.Helper()
	read, err := membership.New("x", same[V], o...).Readings(text)
	require.NoError(t, err, "%q", text)
	return read
}

func unreadable[V any](t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		_, err := membership.New("x", same[V]).Readings(text)
		require.Error(t, err, "%q", text)
	}
}

func TestATypedTextIsReadAsTheIndexDemands(t *testing.T) {
	must := mustValue(t)
	for _, s := range []string{"", "1", "true", "a:b", "\xff", " x "} {
		require.Equal(t, []key.Value{key.Text(s)}, readings[string](t, s))
		require.Equal(t, []key.Value{key.Text(s)}, readings[word](t, s))
	}
	require.Equal(t, []key.Value{key.Text("ann")}, readings[string](t, " ANN ", membership.Fold, membership.Trim))
	require.Equal(t, []key.Value{key.Bool(true)}, readings[bool](t, "true"))
	require.Equal(t, []key.Value{key.Bool(false)}, readings[flag](t, "false"))
	require.Equal(t, []key.Value{key.Int(math.MinInt64)}, readings[int64](t, "-9223372036854775808"))
	require.Equal(t, []key.Value{key.Uint(math.MaxUint64)}, readings[uint64](t, "18446744073709551615"))
	require.Equal(t, []key.Value{key.Int(-5)}, readings[level](t, "-5"))
	require.Equal(t, []key.Value{must(key.Decimal("1.1"))}, readings[float64](t, "1.10"))
	require.Equal(t, []key.Value{must(key.Decimal("0.1"))}, readings[float32](t, "0.1"))
	at := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	require.Equal(t, []key.Value{must(key.Time(at))}, readings[time.Time](t, "2024-01-02T08:04:05.000000006+05:00"))
	require.Equal(t, []key.Value{key.Text("10.0.0.1")}, readings[netip.Addr](t, "10.0.0.1"))

	unreadable[bool](t, "", "1", "TRUE", "yes")
	unreadable[int](t, "", "1.0", "1e3", "x", "9223372036854775808")
	unreadable[level](t, "128", "-129")
	unreadable[mask](t, "-1", "65536")
	unreadable[float64](t, "", "x", "NaN")
	unreadable[time.Time](t, "", "2024-01-02", "now")
	unreadable[netip.Addr](t, "10.0.0")
	unreadable[code](t, "c7") // has no UnmarshalText
	unreadable[membership.Pair[string, string]](t, "a,b")
}

func TestATextIsReadAsEveryKindWhereTheKindIsKnownOnlyAtRunTime(t *testing.T) {
	must := mustValue(t)
	require.Equal(t, []key.Value{key.Text("1.10"), must(key.Decimal("1.1"))}, readings[key.Value](t, "1.10"))
	require.Equal(t, []key.Value{key.Text("true"), key.Bool(true)}, readings[key.Value](t, "true"))
	require.Equal(t, []key.Value{key.Text("")}, readings[key.Value](t, ""))
	require.Equal(t, []key.Value{key.Text("abc")}, readings[key.Value](t, "ABC", membership.Fold))
}

func TestAReadingOfItsOwnIsNormalisedLikeEveryValue(t *testing.T) {
	both := membership.Reading(func(text string) ([]string, error) {
		if text == "" {
			return nil, fmt.Errorf("nothing to look for")
		}
		return []string{text, "~" + text}, nil
	})
	require.Equal(t, []key.Value{key.Text("a"), key.Text("~a")}, readings[string](t, "A", both, membership.Fold))
	_, err := membership.New("x", same[string], both).Readings("")
	require.ErrorContains(t, err, "nothing to look for")
	read, err := membership.Unique("x", some[string], both).Readings("a")
	require.NoError(t, err)
	require.Len(t, read, 2)
}
