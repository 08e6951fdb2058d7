package membership_test

import (
	"errors"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/membership"
)

type (
	word   string
	flag   bool
	level  int8
	mask   uint16
	ratio  float32
	moment time.Time // no longer a time.Time, and a struct
)

// code is a struct that says its own text.
type code struct{ n int }

var errCode = errors.New("no such code")

func (c code) MarshalText() ([]byte, error) {
	if c.n < 0 {
		return nil, errCode
	}
	return []byte{'c', byte('0' + c.n)}, nil
}

// shout is a number whose text decides, not its kind.
type shout int

func (s shout) MarshalText() ([]byte, error) { return []byte("level-" + string(rune('a'+s))), nil }

// late has MarshalText on its pointer only, so its kind decides.
type late string

func (*late) MarshalText() ([]byte, error) { return []byte("never"), nil }

// valueOf is the index value that an index over V writes for v.
func valueOf[V any](t *testing.T, v V, o ...membership.Option) key.Value {
	t.Helper()
	ix := membership.New("x", func(v V) V { return v }, o...)
	require.NoError(t, ix.Definition().Err)
	entries, err := ix.Entries(v)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "x", entries[0].Index)
	return entries[0].Value
}

func mustValue(t *testing.T) func(key.Value, error) key.Value {
	return func(v key.Value, err error) key.Value {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func TestEveryKindOfValueIsIndexedAsItself(t *testing.T) {
	must := mustValue(t)
	for _, s := range []string{"", "a", "a:b", "{x}", "\x00\r\n", "\xff\xfe", "é", "%41", "~n1"} {
		require.Equal(t, key.Text(s), valueOf(t, s))
		require.Equal(t, key.Text(s), valueOf(t, word(s)))
		require.Equal(t, key.Text(s), valueOf(t, late(s)))
	}
	for _, b := range []bool{true, false} {
		require.Equal(t, key.Bool(b), valueOf(t, b))
		require.Equal(t, key.Bool(b), valueOf(t, flag(b)))
	}
	require.Equal(t, key.Int(math.MinInt64), valueOf(t, int64(math.MinInt64)))
	require.Equal(t, key.Int(-5), valueOf(t, -5))
	require.Equal(t, key.Int(-5), valueOf(t, int8(-5)))
	require.Equal(t, key.Int(-5), valueOf(t, int16(-5)))
	require.Equal(t, key.Int(-5), valueOf(t, int32(-5)))
	require.Equal(t, key.Int(-5), valueOf(t, level(-5)))
	require.Equal(t, key.Int(1_500_000_000), valueOf(t, 1500*time.Millisecond), "a duration is its nanoseconds")
	require.Equal(t, key.Uint(math.MaxUint64), valueOf(t, uint64(math.MaxUint64)))
	require.Equal(t, key.Uint(5), valueOf(t, uint(5)))
	require.Equal(t, key.Uint(5), valueOf(t, uint8(5)))
	require.Equal(t, key.Uint(5), valueOf(t, uint16(5)))
	require.Equal(t, key.Uint(5), valueOf(t, uint32(5)))
	require.Equal(t, key.Uint(5), valueOf(t, uintptr(5)))
	require.Equal(t, key.Uint(5), valueOf(t, mask(5)))
	require.Equal(t, must(key.Decimal("0.1")), valueOf(t, 0.1))
	require.Equal(t, must(key.Decimal("0.1")), valueOf(t, float32(0.1)), "as the shortest text that reads back")
	require.Equal(t, must(key.Decimal("0.1")), valueOf(t, ratio(0.1)))
	require.Equal(t, must(key.Float(math.Inf(-1), 64)), valueOf(t, math.Inf(-1)))
	require.Equal(t, key.Text("c7"), valueOf(t, code{7}))
	require.Equal(t, key.Text("level-c"), valueOf(t, shout(2)), "MarshalText goes before the kind")
	require.Equal(t, key.Text("10.0.0.1"), valueOf(t, netip.MustParseAddr("10.0.0.1")))
	for _, v := range []key.Value{key.Text("1"), key.Int(1), key.Bool(true), key.Pair(key.Text("a"), key.Int(1)), {}} {
		require.Equal(t, v, valueOf(t, v), "a value that is known only at run time")
	}
}

func TestAllNumbersAreOneKindAndNoOtherKindsMix(t *testing.T) {
	one := valueOf(t, 1)
	require.Equal(t, one, valueOf(t, 1.0))
	require.Equal(t, one, valueOf(t, float32(1)))
	require.Equal(t, one, valueOf(t, uint8(1)))
	require.Equal(t, one, valueOf(t, level(1)))
	require.Equal(t, valueOf(t, 0.0), valueOf(t, math.Copysign(0, -1)), "-0 is 0")
	require.Equal(t, valueOf(t, 1e21), valueOf(t, mustValue(t)(key.Decimal("1000000000000000000000"))))
	require.NotEqual(t, one, valueOf(t, "1"))
	require.NotEqual(t, one, valueOf(t, true))
	require.NotEqual(t, valueOf(t, true), valueOf(t, "true"))
	require.NotEqual(t, valueOf(t, "~n1"), one, "a text that looks like the mark of a number")
	require.NotEqual(t, valueOf(t, int64(1<<53)), valueOf(t, int64(1<<53+1)), "integers are exact")
}

func TestTheSameInstantIsTheSameValueInEveryZone(t *testing.T) {
	karachi := time.FixedZone("Asia/Karachi", 5*60*60)
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)
	require.Equal(t, valueOf(t, at), valueOf(t, at.In(karachi)))
	require.Equal(t, valueOf(t, at), valueOf(t, at.Round(0)))
	require.NotEqual(t, valueOf(t, at), valueOf(t, at.Add(time.Nanosecond)), "to the nanosecond")
	now := time.Now()
	require.Equal(t, valueOf(t, now), valueOf(t, now.Round(0)), "a monotonic reading is no part of the instant")
	require.Equal(t, "time", valueOf(t, time.Time{}).Kind(), "the zero time is a value like any other")
}

func TestThePartsOfAPairStayApart(t *testing.T) {
	require.Equal(t, key.Pair(key.Text("a"), key.Int(1)), valueOf(t, membership.Of("a", 1)))
	require.NotEqual(t, valueOf(t, membership.Of("a", "b:c")), valueOf(t, membership.Of("a:b", "c")))
	require.NotEqual(t, valueOf(t, membership.Of("a,b", "")), valueOf(t, membership.Of("a", "b,")))
	require.NotEqual(t, valueOf(t, membership.Of("", "a")), valueOf(t, membership.Of("a", "")))
	require.NotEqual(t, valueOf(t, membership.Of("1", "")), valueOf(t, membership.Of(1, "")))

	left := membership.Of(membership.Of("a", "b"), "c")
	right := membership.Of("a", membership.Of("b", "c"))
	require.NotEqual(t, valueOf(t, left), valueOf(t, right), "pairs of pairs")
	require.Equal(t, key.Pair(key.Pair(key.Text("a"), key.Text("b")), key.Text("c")), valueOf(t, left))
	deep := membership.Of(time.Unix(1, 0), membership.Of(true, code{3}))
	require.Equal(t, "pair(time,pair(bool,text))", membership.New("x", func(v membership.Pair[time.Time, membership.Pair[bool, code]]) membership.Pair[time.Time, membership.Pair[bool, code]] {
		return v
	}).Definition().Encoding)
	require.Equal(t, "pair", valueOf(t, deep).Kind())
}

// embedded only looks like a pair.
type embedded struct {
	Extra int
	membership.Pair[string, string]
}

type alone struct {
	membership.Pair[string, string]
}

func refused[V any](t *testing.T, says string) {
	t.Helper()
	ix := membership.New("colour", func(v V) V { return v })
	err := ix.Definition().Err
	require.ErrorContains(t, err, says)

	entity := index.Define("acme:billing", "account", index.Options[V]{
		ID: func(V) string { return "1" }, Version: 1, Lifetime: index.Forever, Indexes: []index.Index[V]{ix},
	})
	require.ErrorIs(t, entity.Err(), index.ErrInvalid)
	require.ErrorContains(t, entity.Err(), says)
	require.ErrorContains(t, entity.Err(), "colour", "the error names the index")
	var about *index.Error
	require.ErrorAs(t, entity.Err(), &about)
	require.Equal(t, "colour", about.Index)
	require.Equal(t, "acme:billing:account", about.Entity)
}

func TestATypeThatIsNoValueIsRefusedByItsDeclaration(t *testing.T) {
	const kind, method = "use a value type", "MarshalText"
	refused[*string](t, kind)
	refused[*time.Time](t, kind)
	refused[*code](t, kind)
	refused[any](t, kind)
	refused[error](t, kind)
	refused[func()](t, kind)
	refused[chan int](t, kind)
	refused[map[string]int](t, kind)
	refused[[]string](t, method)
	refused[[]byte](t, method)
	refused[[2]string](t, method)
	refused[complex128](t, method)
	refused[struct{ A string }](t, method)
	refused[moment](t, method)
	refused[embedded](t, method)
	refused[alone](t, method)
	refused[membership.Pair[string, *int]](t, kind)
	refused[membership.Pair[membership.Pair[[]int, string], string]](t, method)
	refused[*membership.Pair[string, string]](t, kind)
}

func TestAValueThatCannotBeEncodedIsAnError(t *testing.T) {
	for _, nan := range []func() error{
		func() error { return entriesErr(math.NaN()) },
		func() error { return entriesErr(float32(math.NaN())) },
		func() error { return entriesErr(membership.Of("a", math.NaN())) },
		func() error { return entriesErr(membership.Of(math.NaN(), "a")) },
	} {
		require.ErrorIs(t, nan(), key.ErrNaN)
	}
	require.ErrorIs(t, entriesErr(code{-1}), errCode)
	require.ErrorIs(t, entriesErr(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), key.ErrRange)
}

func entriesErr[V any](v V) error {
	_, err := membership.New("x", func(v V) V { return v }).Entries(v)
	return err
}
