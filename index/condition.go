package index

import (
	"slices"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
)

// Clause is a part of a query: a Condition or an Order.
type Clause[T any] interface {
	clause() part[T]
}

// Condition narrows a query to records: Cond or Key.
type Condition[T any] interface {
	Clause[T]
	condition()
}

// part is what a clause says: a condition, or an order.
type part[T any] struct {
	cond  Cond[T]
	order *Order[T]
}

// Cond is a condition on one index: the record has one of some values, or its score lies in a range. Indexes make
// conditions.
type Cond[T any] struct {
	index  Index[T]
	values []key.Value
	span   *plan.Order // a range of a ranked index; values is empty then
	err    error
}

// Key is equality on a unique index: at most one record matches. It is a Condition as well.
type Key[T any] struct{ cond Cond[T] }

// Order asks for records in the order of a ranked index. Ranked indexes make orders.
type Order[T any] struct {
	index RankedIndex[T]
	spec  plan.Order
	after Cursor
	err   error
}

// After continues an order after the page that gave the cursor.
func (o Order[T]) After(c Cursor) Order[T] {
	o.after = c
	return o
}

// OrderBy is the order that a ranked index gives.
func OrderBy[T any](ix RankedIndex[T], spec plan.Order, err error) Order[T] {
	return Order[T]{index: ix, spec: spec, err: err}
}

// WhereIn is the condition that a record's score in ix lies in the range of spec.
func WhereIn[T any](ix RankedIndex[T], spec plan.Order, err error) Cond[T] {
	return Cond[T]{index: ix, span: &spec, err: err}
}

// Where is the condition that a record has one of values in ix. No values match no record. err, if not nil, is what every
// query with the condition answers: a value that the index cannot hold.
func Where[T any](ix Index[T], values []key.Value, err error) Cond[T] {
	met := make(map[key.Value]bool, len(values))
	distinct := make([]key.Value, 0, len(values))
	for _, v := range values {
		if !met[v] {
			met[v] = true
			distinct = append(distinct, v)
		}
	}
	return Cond[T]{index: ix, values: distinct, err: err}
}

// WhereKey is the condition that a record has value in the unique index ix.
func WhereKey[T any](ix Index[T], value key.Value, err error) Key[T] {
	return Key[T]{Cond[T]{index: ix, values: []key.Value{value}, err: err}}
}

func (c Cond[T]) clause() part[T]  { return part[T]{cond: c} }
func (c Cond[T]) condition()       {}
func (k Key[T]) clause() part[T]   { return part[T]{cond: k.cond} }
func (k Key[T]) condition()        {}
func (o Order[T]) clause() part[T] { return part[T]{order: &o} }

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
