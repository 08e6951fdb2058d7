package index

import "encoding/json"

// Codec turns records into the bytes that are stored, and back. The bytes are stored as they are. Decode is given the id
// too, for types whose bytes do not hold it. Both must be pure.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func(id string, b []byte) (T, error)
}

// JSON is the codec of encoding/json, the default.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Encode: func(rec T) ([]byte, error) { return json.Marshal(rec) },
		Decode: func(_ string, b []byte) (rec T, err error) {
			err = json.Unmarshal(b, &rec)
			return rec, err
		},
	}
}
