package ranked

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
)

// View is one order to ask: a whole index, or one group of it.
type View[T, S any] struct {
	ranked  index.RankedIndex[T]
	core    *Index[T, S]
	group   key.Value
	grouped bool
	err     error
}

// Top asks for the n highest scores, highest first. n is at least 1 and, where the index is bounded, at most Keep.
func (v View[T, S]) Top(n int) index.Order[T] { return v.order(true, n) }

// Bottom asks for the n lowest scores, lowest first.
func (v View[T, S]) Bottom(n int) index.Order[T] { return v.order(false, n) }

// Newest is Top under its name for times.
func (v View[T, S]) Newest(n int) index.Order[T] { return v.Top(n) }

// Oldest is Bottom under its name for times.
func (v View[T, S]) Oldest(n int) index.Order[T] { return v.Bottom(n) }

// AtLeast is the condition that a score is s or higher.
func (v View[T, S]) AtLeast(s S) index.Cond[T] { return v.span(&s, false, nil, false) }

// Above is the condition that a score is higher than s.
func (v View[T, S]) Above(s S) index.Cond[T] { return v.span(&s, true, nil, false) }

// AtMost is the condition that a score is s or lower.
func (v View[T, S]) AtMost(s S) index.Cond[T] { return v.span(nil, false, &s, false) }

// Below is the condition that a score is lower than s.
func (v View[T, S]) Below(s S) index.Cond[T] { return v.span(nil, false, &s, true) }

// Between is the condition that a score is at least low and at most high, both ends included.
func (v View[T, S]) Between(low, high S) index.Cond[T] { return v.span(&low, false, &high, false) }

func (v View[T, S]) spec() plan.Order {
	return plan.Order{
		Kind: v.core.encoder.kind, Group: v.group, Grouped: v.grouped,
		PrefixSize: v.core.encoder.size, Bound: v.core.definition.Bound,
	}
}

func (v View[T, S]) order(descending bool, n int) index.Order[T] {
	spec, err := v.spec(), v.err
	spec.Descending, spec.Limit = descending, n
	switch keep := spec.Bound.Keep; {
	case n < 1:
		err = errors.Join(err, fmt.Errorf("a page of %d: at least 1", n))
	case keep > 0 && n > keep:
		err = errors.Join(err, fmt.Errorf("a page of %d: the index keeps %d", n, keep))
	}
	return index.OrderBy(v.ranked, spec, err)
}

func (v View[T, S]) span(low *S, lowOpen bool, high *S, highOpen bool) index.Cond[T] {
	spec, err := v.spec(), v.err
	edge := func(s *S, open bool) *plan.Edge {
		if s == nil {
			return nil
		}
		score, ok, encodeErr := v.core.encode(*s)
		if encodeErr == nil && !ok {
			encodeErr = errors.New("the zero time bounds no range")
		}
		err = errors.Join(err, encodeErr)
		return &plan.Edge{Score: score, Open: open}
	}
	spec.Range = plan.Range{Min: edge(low, lowOpen), Max: edge(high, highOpen)}
	return index.WhereIn(v.ranked, spec, err)
}
