package typed

import (
	"encoding"
	"fmt"
	"reflect"
	"time"

	"github.com/lockstep-go/lockstep/key"
)

// Encoder is how the values of one Go type become index values, and what a text can mean as one.
type Encoder struct {
	Name   string // for the definition: text, bool, number, time, any, pair(...)
	Encode func(reflect.Value) (key.Value, error)
	Read   func(text string) ([]reflect.Value, error) // values of the Go type
}

var (
	valueType     = reflect.TypeFor[key.Value]()
	timeType      = reflect.TypeFor[time.Time]()
	marshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	pairType      = reflect.TypeFor[paired]()
)

// Of gives the encoder of a type: time first, then MarshalText, then the kind.
func Of(t reflect.Type) (Encoder, error) {
	switch {
	case t == valueType:
		return Encoder{"any", func(v reflect.Value) (key.Value, error) { return v.Interface().(key.Value), nil }, readAny}, nil
	case t == timeType:
		return Encoder{"time", func(v reflect.Value) (key.Value, error) { return key.Time(v.Interface().(time.Time)) }, readTime}, nil
	case isPair(t):
		return pairEncoder(t)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.Map, reflect.UnsafePointer:
		return Encoder{}, fmt.Errorf("values of type %v cannot be indexed: use a value type", t)
	}
	if t.Implements(marshalerType) {
		return Encoder{"text", encodeMarshaler, readMarshaled(t)}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return Encoder{"text", func(v reflect.Value) (key.Value, error) { return key.Text(v.String()), nil }, readKind(t)}, nil
	case reflect.Bool:
		return Encoder{"bool", func(v reflect.Value) (key.Value, error) { return key.Bool(v.Bool()), nil }, readKind(t)}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Encoder{"number", func(v reflect.Value) (key.Value, error) { return key.Int(v.Int()), nil }, readKind(t)}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return Encoder{"number", func(v reflect.Value) (key.Value, error) { return key.Uint(v.Uint()), nil }, readKind(t)}, nil
	case reflect.Float32, reflect.Float64:
		bits := t.Bits()
		return Encoder{"number", func(v reflect.Value) (key.Value, error) { return key.Float(v.Float(), bits) }, readKind(t)}, nil
	}
	return Encoder{}, fmt.Errorf("values of type %v cannot be indexed: give the type a MarshalText method", t)
}

func encodeMarshaler(v reflect.Value) (key.Value, error) {
	b, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return key.Value{}, err
	}
	return key.Text(string(b)), nil
}

// isPair reports an instance of Pair itself: a struct that embeds one has its mark too, but an anonymous field.
func isPair(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.Implements(pairType) &&
		t.NumField() == 2 && !t.Field(0).Anonymous && !t.Field(1).Anonymous
}

func pairEncoder(t reflect.Type) (Encoder, error) {
	a, err := Of(t.Field(0).Type)
	if err != nil {
		return Encoder{}, err
	}
	b, err := Of(t.Field(1).Type)
	if err != nil {
		return Encoder{}, err
	}
	return Encoder{
		Name: "pair(" + a.Name + "," + b.Name + ")",
		Encode: func(v reflect.Value) (key.Value, error) {
			x, err := a.Encode(v.Field(0))
			if err != nil {
				return key.Value{}, err
			}
			y, err := b.Encode(v.Field(1))
			if err != nil {
				return key.Value{}, err
			}
			return key.Pair(x, y), nil
		},
		Read: func(string) ([]reflect.Value, error) {
			return nil, fmt.Errorf("a composite value cannot be given as one text")
		},
	}, nil
}
