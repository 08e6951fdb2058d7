package ranked

import (
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// readTime reads a text as an instant.
func readTime(text string) (reflect.Value, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return reflect.Value{}, fmt.Errorf("%q is not a time such as 2006-01-02T15:04:05Z", text)
	}
	return reflect.ValueOf(at), nil
}

// readKind reads a text as a number or text of a type.
func readKind(t reflect.Type) func(string) (reflect.Value, error) {
	return func(text string) (reflect.Value, error) {
		v := reflect.New(t).Elem()
		var err error
		switch {
		case v.Kind() == reflect.String:
			v.SetString(text)
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
			return v, fmt.Errorf("%q is not a score of type %v: %w", text, t, err)
		}
		return v, nil
	}
}
