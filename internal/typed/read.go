package typed

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/key"
)

// readKind reads a text as a value of a string, bool, integer or float type.
func readKind(t reflect.Type) func(string) ([]reflect.Value, error) {
	return func(text string) ([]reflect.Value, error) {
		v := reflect.New(t).Elem()
		var err error
		switch {
		case v.Kind() == reflect.String:
			v.SetString(text)
		case v.Kind() == reflect.Bool:
			var b bool
			if b, err = parseBool(text); err == nil {
				v.SetBool(b)
			}
		case v.CanInt():
			var n int64
			if n, err = strconv.ParseInt(text, 10, t.Bits()); err == nil {
				v.SetInt(n)
			}
		case v.CanUint():
			var n uint64
			if n, err = strconv.ParseUint(text, 10, t.Bits()); err == nil {
				v.SetUint(n)
			}
		default:
			var f float64
			if f, err = strconv.ParseFloat(text, t.Bits()); err == nil {
				v.SetFloat(f)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not a value of type %v: %w", text, t, err)
		}
		return []reflect.Value{v}, nil
	}
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true", "false":
		return text == "true", nil
	}
	return false, fmt.Errorf("neither true nor false")
}

// readMarshaled reads a text by the UnmarshalText method that goes with MarshalText.
func readMarshaled(t reflect.Type) func(string) ([]reflect.Value, error) {
	return func(text string) ([]reflect.Value, error) {
		v := reflect.New(t)
		u, ok := v.Interface().(encoding.TextUnmarshaler)
		if !ok {
			return nil, fmt.Errorf("type %v has no UnmarshalText: give the index a Reading", t)
		}
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("%q is not a value of type %v: %w", text, t, err)
		}
		return []reflect.Value{v.Elem()}, nil
	}
}

func readTime(text string) ([]reflect.Value, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time such as 2006-01-02T15:04:05Z", text)
	}
	return []reflect.Value{reflect.ValueOf(at)}, nil
}

// readAny gives every kind that a text can stand for.
func readAny(text string) ([]reflect.Value, error) {
	values := []reflect.Value{reflect.ValueOf(key.Text(text))}
	if b, err := parseBool(text); err == nil {
		values = append(values, reflect.ValueOf(key.Bool(b)))
	}
	if n, err := key.Decimal(text); err == nil {
		values = append(values, reflect.ValueOf(n))
	}
	return values, nil
}
