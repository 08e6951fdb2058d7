package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/key"
)

// Document is a record of an entity type that a schema file declares: a JSON object, kept byte for byte.
//
// Its id is a text or an integer; 5 and "5" are the same id. What it is indexed under follows from its fields: a text, a
// number or a truth value is a value, null or an absent field is none, and an array gives each of its elements. Numbers
// are exact: 1, 1.0 and 1e0 are one value, 2^53 and 2^53+1 are two. "" is a value of a membership index and none of a
// unique one. An object inside an indexed field is a *FieldError, as is a type other than the declared one. Field names
// are taken literally, dots and spaces included; of a name that stands twice the last counts.
//
// A ranked index orders by one number, text or time of a record. Without exact a number is ordered by its nearest float64,
// and one that a float64 cannot keep apart from others is a *FieldError: a whole number beyond 2^53, more than 17 digits.
// With exact it is any int64, or with type: string a text in the order of its bytes. With time the field holds an instant:
// a number since 1970 in s, ms or us, or an RFC 3339 text; its order is by the microsecond, with exact by the nanosecond,
// and the zero time of Go has no place. The group of within is a text; the number 5 and the text "5" are one group. Null or
// an absent field, of the score or the group, gives no entry.
type Document struct {
	raw    []byte
	id     string
	values [][]key.Value // aligned with the fields of the schema
	places []place       // aligned with its ranked indexes
}

// ID is the id.
func (d Document) ID() string { return d.id }

// Bytes are the JSON text as it was given. Do not change them.
func (d Document) Bytes() []byte { return d.raw }

// at gives the index values of one field of the schema, none where the document comes from another one.
func (d Document) at(i int) []key.Value {
	if i >= len(d.values) {
		return nil
	}
	return d.values[i]
}

// place is where the document stands in one ranked index of the schema.
func (d Document) place(i int) place {
	if i >= len(d.places) {
		return place{}
	}
	return d.places[i]
}

// FieldError reports a field of a record that cannot be what the schema says.
type FieldError struct {
	ID    string // of the record; "" if it is about the id
	Index string // "" if it is about the id
	Field string
	Got   string // what the field holds: "a number", "an object", "nothing"
	Want  string
}

func (e *FieldError) Error() string {
	s := fmt.Sprintf("field %q", e.Field)
	if e.Index != "" {
		s = fmt.Sprintf("%q: field %q (index %s)", e.ID, e.Field, e.Index)
	}
	return s + " is " + e.Got + ", must be " + e.Want
}

// decode reads a JSON object.
func (s *schema) decode(raw []byte) (Document, error) {
	d := Document{raw: raw, values: make([][]key.Value, len(s.fields)), places: make([]place, len(s.ranks))}
	if !utf8.Valid(raw) {
		return d, errors.New("the record is not valid UTF-8")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return d, badJSON(raw, err)
	}
	if object == nil {
		return d, errors.New("the record is null, must be a JSON object")
	}
	var err error
	if d.id, err = s.idOf(object[s.id]); err != nil {
		return d, err
	}
	for i, f := range s.fields {
		text, ok := object[f.name]
		if !ok {
			continue
		}
		f.seen.Store(true) // a note for the warning about absent fields; the result does not depend on it
		if d.values[i], err = f.values(text); err != nil {
			return d, of(d.id, err)
		}
	}
	for i, r := range s.ranks {
		if d.places[i], err = r.place(object); err != nil {
			return d, of(d.id, err)
		}
	}
	return d, nil
}

// of adds the id to the error of a field.
func of(id string, err error) error {
	var fe *FieldError
	if errors.As(err, &fe) {
		fe.ID = id
	}
	return err
}

// badJSON says what is wrong with a text, and where.
func badJSON(raw []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON: %w (byte %d)", err, syntax.Offset)
	}
	first := bytes.TrimLeft(raw, " \t\r\n")
	if len(first) > 0 {
		for starts, got := range map[string]string{"[": "an array", `"`: "a text", "tf": "a truth value", "-0123456789": "a number"} {
			if strings.IndexByte(starts, first[0]) >= 0 {
				return fmt.Errorf("the record is %s, must be a JSON object", got)
			}
		}
	}
	return fmt.Errorf("not JSON: %w", err)
}

// idOf reads the id of a record from its field.
func (s *schema) idOf(text json.RawMessage) (string, error) {
	wrong := func(got string) error {
		return &FieldError{Field: s.id, Got: got, Want: "the id: a text that is not empty, or an integer"}
	}
	if text == nil {
		return "", wrong("absent")
	}
	v, err := decodeValue(text)
	if err != nil {
		return "", fmt.Errorf("field %q: %w", s.id, err)
	}
	switch v := v.(type) {
	case string:
		if v == "" {
			return "", wrong("empty")
		}
		return v, nil
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "", wrong("a number that is not written as an integer")
		}
		if v == "-0" {
			return "0", nil
		}
		return v.String(), nil
	default:
		return "", wrong(kindOf(v))
	}
}

// decodeValue reads a JSON value, which is known to be one, without white space around it. Numbers stay as their text.
func decodeValue(text json.RawMessage) (v any, err error) {
	if loneSurrogate(text) {
		return nil, errors.New("half of a surrogate pair (\\uD800 to \\uDFFF) stands alone, which is no character")
	}
	switch first := text[0]; {
	case first == '"':
		var s string
		err = json.Unmarshal(text, &s)
		return s, err
	case first == '-' || first >= '0' && first <= '9':
		return json.Number(text), nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// loneSurrogate reports an escape such as \ud800 without its other half. The decoder would make all of them the same
// character, and so different texts one value.
func loneSurrogate(text []byte) bool {
	if !bytes.Contains(text, []byte(`\u`)) {
		return false
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		switch half(text[i-1:]) {
		case 'h':
			if half(text[min(i+5, len(text)):]) != 'l' {
				return true
			}
			i += 6
		case 'l':
			return true
		}
	}
	return false
}

// half says whether a text begins with the escape of a high ('h') or low ('l') surrogate, else 0.
func half(text []byte) byte {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' || (text[2] != 'd' && text[2] != 'D') {
		return 0
	}
	switch text[3] {
	case '8', '9', 'a', 'b', 'A', 'B':
		return 'h'
	case 'c', 'd', 'e', 'f', 'C', 'D', 'E', 'F':
		return 'l'
	}
	return 0
}
