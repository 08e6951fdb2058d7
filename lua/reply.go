package lua

import (
	"fmt"
	"strconv"
)

// reply is the array that a script returned, with the keys that its positions refer to.
type reply struct {
	script string
	list   []any
	keys   []string
}

// text is element i as a string, "" where there is none.
func (r reply) text(i int) string {
	if i >= len(r.list) {
		return ""
	}
	switch v := r.list[i].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// optional is element i as a string, and whether there is one.
func (r reply) optional(i int) (string, bool) {
	if i >= len(r.list) {
		return "", false
	}
	s, ok := r.list[i].(string)
	return s, ok
}

// number is element i as an integer, 0 where it is none.
func (r reply) number(i int) int64 {
	n, _ := strconv.ParseInt(r.text(i), 10, 64)
	return n
}

// key is the key whose KEYS position stands in element i.
func (r reply) key(i int) string {
	n := r.number(i)
	if n < 1 || int(n) > len(r.keys) {
		return ""
	}
	return r.keys[n-1]
}

// refusal is the error of a script that did nothing, nil where the reply is {'ok', ...}.
func (r reply) refusal(generation int64) error {
	switch r.text(0) {
	case "ok":
		return nil
	case "meta":
		return ErrNotEntered
	case "fence":
		return ErrFenced
	case "schema":
		return &SchemaError{Generation: generation, Min: r.number(1)}
	case "type":
		return &KeyTypeError{Key: r.key(1), Found: r.text(2)}
	case "state":
		return &StateError{State: r.text(1)}
	}
	return r.unexpected()
}

func (r reply) unexpected() error {
	return fmt.Errorf("lockstep: script %s: unexpected reply %.200q", r.script, fmt.Sprint(r.list...))
}
