package typed_test

import (
	"errors"
	"math"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/typed"
	"github.com/lockstep-go/lockstep/key"
)

func encode[V any](t *testing.T, v V) (string, key.Value, error) {
	t.Helper()
	e, err := typed.Of(reflect.TypeFor[V]())
	require.NoError(t, err)
	value, err := e.Encode(reflect.ValueOf(&v).Elem())
	return e.Name, value, err
}

type level int8

type celsius float32

type label string

type odd struct{}

var errOdd = errors.New("odd")

func (odd) MarshalText() ([]byte, error) { return nil, errOdd }

// stamp embeds what is a time without being one.
type stamp struct{ time.Time }

func TestAValueMeansTheSameUnderEveryNameOfItsType(t *testing.T) {
	same := func(name string, want key.Value, gotName string, got key.Value, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, name, gotName)
		require.Equal(t, want, got)
	}
	check := func(name string, want key.Value) func(string, key.Value, error) {
		return func(gotName string, got key.Value, err error) { t.Helper(); same(name, want, gotName, got, err) }
	}
	check("text", key.Text("a"))(encode(t, "a"))
	check("text", key.Text("a"))(encode(t, label("a")))
	check("bool", key.Bool(true))(encode(t, true))
	check("number", key.Int(-7))(encode(t, level(-7)))
	check("number", key.Uint(math.MaxUint64))(encode(t, uint64(math.MaxUint64)))
	half, err := key.Float(float64(float32(0.1)), 32)
	require.NoError(t, err)
	check("number", half)(encode(t, celsius(0.1)))
	check("any", key.Int(3))(encode(t, key.Int(3)))
	check("text", key.Text("10.0.0.1"))(encode(t, netip.MustParseAddr("10.0.0.1")))
	when := time.Date(2026, 1, 1, 12, 0, 0, 5, time.FixedZone("", 3600))
	instant, err := key.Time(when.UTC())
	require.NoError(t, err)
	check("time", instant)(encode(t, when))
	check("text", key.Text("2026-01-01T12:00:00.000000005+01:00"))(encode(t, stamp{when}))
	check("pair(text,number)", key.Pair(key.Text("a"), key.Int(1)))(encode(t, typed.Pair[string, int]{First: "a", Second: 1}))
}

func TestAValueThatHasNoMeaningIsRefused(t *testing.T) {
	_, _, err := encode(t, math.NaN())
	require.ErrorIs(t, err, key.ErrNaN)
	_, _, err = encode(t, odd{})
	require.ErrorIs(t, err, errOdd)
	_, _, err = encode(t, typed.Pair[odd, int]{})
	require.ErrorIs(t, err, errOdd)
	_, _, err = encode(t, typed.Pair[int, float64]{Second: math.NaN()})
	require.ErrorIs(t, err, key.ErrNaN)
}

func TestATypeWithoutAMeaningIsRefused(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[*int](), reflect.TypeFor[any](), reflect.TypeFor[func()](), reflect.TypeFor[map[string]int](), reflect.TypeFor[chan int](),
		reflect.TypeFor[[]byte](), reflect.TypeFor[[2]int](), reflect.TypeFor[struct{}](), reflect.TypeFor[complex128](),
		reflect.TypeFor[typed.Pair[*int, int]](), reflect.TypeFor[typed.Pair[int, []int]](), reflect.TypeFor[struct{ typed.Pair[int, int] }](),
	} {
		_, err := typed.Of(typ)
		require.Error(t, err, "%v", typ)
	}
}

func TestATextIsReadAsTheValueThatItWouldBe(t *testing.T) {
	read := func(typ reflect.Type, text string) []any {
		t.Helper()
		e, err := typed.Of(typ)
		require.NoError(t, err)
		values, err := e.Read(text)
		if err != nil {
			return nil
		}
		out := []any{}
		for _, v := range values {
			out = append(out, v.Interface())
		}
		return out
	}
	require.Equal(t, []any{label("x y")}, read(reflect.TypeFor[label](), "x y"))
	require.Equal(t, []any{level(-7)}, read(reflect.TypeFor[level](), "-7"))
	require.Nil(t, read(reflect.TypeFor[level](), "128"), "over the type")
	require.Nil(t, read(reflect.TypeFor[uint8](), "-1"))
	require.Equal(t, []any{celsius(0.5)}, read(reflect.TypeFor[celsius](), "0.5"))
	require.Equal(t, []any{true}, read(reflect.TypeFor[bool](), "true"))
	require.Nil(t, read(reflect.TypeFor[bool](), "1"), "a number is no bool")
	require.Equal(t, []any{netip.MustParseAddr("10.0.0.1")}, read(reflect.TypeFor[netip.Addr](), "10.0.0.1"))
	require.Nil(t, read(reflect.TypeFor[netip.Addr](), "x"))
	require.Nil(t, read(reflect.TypeFor[odd](), "x"), "nothing reads it")
	require.Nil(t, read(reflect.TypeFor[time.Time](), "yesterday"))
	require.Equal(t, []any{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, read(reflect.TypeFor[time.Time](), "2026-01-01T00:00:00Z"))
	require.Equal(t, []any{key.Text("true"), key.Bool(true)}, read(reflect.TypeFor[key.Value](), "true"))
	require.Equal(t, []any{key.Text("10"), key.Int(10)}, read(reflect.TypeFor[key.Value](), "10"))
	require.Nil(t, read(reflect.TypeFor[typed.Pair[int, int]](), "1,2"))
}
