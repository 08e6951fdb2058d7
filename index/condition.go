package index

import (
	"slices"

	"github.com/lockstep-go/lockstep/key"
)

// Clause is a part of a query: a condition.
type Clause[T any] interface {
	clause() Cond[T]
}

// Condition narrows a query to records: Cond or Key.
type Condition[T any] interface {
	Clause[T]
	condition()
}

// Cond is a condition on the values of one index: the record has one of them. Indexes make conditions.
type Cond[T any] struct {
	index  Index[T]
	values []key.Value
	err    error
}

// Key is equality on a unique index: at most one record matches. It is a Condition as well.
type Key[T any] struct{ cond Cond[T] }

// Where is the condition that a record has one of values in ix. No values match no record. err, if not nil, is what every
// query with the condition answers: a value that the index cannot hold.
func Where[T any](ix Index[T], values []key.Value, err error) Cond[T] {
	distinct := make([]key.Value, 0, len(values))
	for _, v := range values {
		if !slices.Contains(distinct, v) {
			distinct = append(distinct, v)
		}
	}
	return Cond[T]{index: ix, values: distinct, err: err}
}

// WhereKey is the condition that a record has value in the unique index ix.
func WhereKey[T any](ix Index[T], value key.Value, err error) Key[T] {
	return Key[T]{Cond[T]{index: ix, values: []key.Value{value}, err: err}}
}

func (c Cond[T]) clause() Cond[T] { return c }
func (c Cond[T]) condition()      {}
func (k Key[T]) clause() Cond[T]  { return k.cond }
func (k Key[T]) condition()       {}

// holds reports whether a record has one of the values of the condition.
func (c Cond[T]) holds(rec T) (bool, error) {
	entries, err := c.index.Entries(rec)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if slices.Contains(c.values, e.Value) {
			return true, nil
		}
	}
	return false, nil
}
