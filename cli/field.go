package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/key"
)

// kindWords are the types that a schema may declare, in words.
var kindWords = map[string]string{"string": "a text", "number": "a number", "bool": "true or false"}

// values gives the index values of a field.
func (f *field) values(text json.RawMessage) ([]key.Value, error) {
	v, err := decodeValue(text)
	if err != nil {
		return nil, f.about(err)
	}
	list, isArray := v.([]any)
	if !isArray {
		return f.append(nil, v)
	}
	if f.unique {
		return nil, f.wrong("an array", "one value, because the index is unique")
	}
	out := make([]key.Value, 0, len(list))
	for _, element := range list {
		if out, err = f.append(out, element); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// append adds the index values of one JSON value.
func (f *field) append(out []key.Value, v any) ([]key.Value, error) {
	if v == nil {
		return out, nil
	}
	want := f.kind
	if f.split != "" {
		want = "string"
	}
	switch v := v.(type) {
	case string:
		if want == "" || want == "string" {
			return f.appendText(out, v), nil
		}
	case json.Number:
		if want == "" || want == "number" {
			n, err := key.Decimal(v.String())
			if err != nil {
				return nil, f.about(err)
			}
			return append(out, n), nil
		}
	case bool:
		if want == "" || want == "bool" {
			return append(out, key.Bool(v)), nil
		}
	default:
		return nil, f.wrong(kindOf(v), "a text, a number, a truth value or an array of these")
	}
	because := ", the declared type"
	if f.kind == "" {
		because = ", because the index splits it"
	}
	return nil, f.wrong(kindOf(v), kindWords[want]+because)
}

// appendText adds a text, or its parts. Parts that are empty are dropped, as is an empty text of a unique index; with
// trim, white space is empty too.
func (f *field) appendText(out []key.Value, text string) []key.Value {
	empty := func(s string) bool { return s == "" || f.trim && strings.TrimSpace(s) == "" }
	if f.split == "" {
		if f.unique && empty(text) {
			return out
		}
		return append(out, key.Text(text))
	}
	for part := range strings.SplitSeq(text, f.split) {
		if !empty(part) {
			out = append(out, key.Text(part))
		}
	}
	return out
}

// reading is what a text on the command line means where the schema declares a type.
func (f *field) reading(text string) ([]key.Value, error) {
	switch f.kind {
	case "number":
		n, err := key.Decimal(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number as JSON writes it", text)
		}
		return []key.Value{n}, nil
	case "bool":
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return []key.Value{key.Bool(text == "true")}, nil
	default:
		return []key.Value{key.Text(text)}, nil
	}
}

// kindOf says in words what a JSON value is.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case json.Number:
		return "a number"
	case bool:
		return "a truth value"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}
