package ranked

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
)

// Index is a ranked index of records T by scores S.
type Index[T, S any] struct {
	definition plan.Definition
	extract    func(T) (S, bool)
	encoder    encoder
}

// New orders every record by a score: an integer of up to 32 bits or an int64 checked to be within 2^53, a float, or a
// time, ordered by the microsecond or a coarser Unit. The zero time has no entry. NaN, integers beyond 2^53 and years
// outside 1684 to 2255 are refused before anything is written, and by the microsecond instants before 1684-07-28 or after
// 2255-06-05; -0 is 0, and infinities are the ends.
func New[T, S any](name string, score func(T) S, o ...Option) *Index[T, S] {
	return build(name, always(score), score == nil, false, scoredBy, o)
}

// Sparse orders the records for which score says true, otherwise as New.
func Sparse[T, S any](name string, score func(T) (S, bool), o ...Option) *Index[T, S] {
	return build(name, score, score == nil, true, scoredBy, o)
}

// Exact orders every record by a score that a float64 cannot hold: any integer, a time by the nanosecond, a text by its
// bytes, or a float. A changed score costs a write two round trips where New needs one, unless it goes through Update.
func Exact[T, S any](name string, score func(T) S, o ...Option) *Index[T, S] {
	return build(name, always(score), score == nil, false, exact, o)
}

// SparseExact orders the records for which score says true, otherwise as Exact.
func SparseExact[T, S any](name string, score func(T) (S, bool), o ...Option) *Index[T, S] {
	return build(name, score, score == nil, true, exact, o)
}

func exact(t reflect.Type, _ time.Duration) (encoder, error) { return exactly(t) }

func always[T, S any](score func(T) S) func(T) (S, bool) {
	return func(rec T) (S, bool) { return score(rec), true }
}

// build checks the options against the score type. What is wrong stands in the definition, for Open to report.
func build[T, S any](
	name string, extract func(T) (S, bool), noFunction, sparse bool,
	encoderOf func(reflect.Type, time.Duration) (encoder, error), o []Option,
) *Index[T, S] {
	var s settings
	for _, option := range o {
		if option.apply != nil {
			option.apply(&s)
		}
	}
	if noFunction {
		s.wrong = append(s.wrong, errors.New("no function that gives its scores"))
		extract = func(T) (none S, ok bool) { return none, false } // Open reports it; until then nothing panics
	}
	if s.bound.Keep > 0 && !s.slack {
		s.bound.Slack = s.bound.Keep / 10
	}
	unit := s.bound.Unit > 0
	e, err := encoderOf(reflect.TypeFor[S](), max(s.bound.Unit, time.Microsecond))
	if err != nil {
		s.wrong = append(s.wrong, err)
	}
	s.bound.Lexical, s.bound.Prefix = e.kind == plan.Lexical, e.size
	if s.bound.Unit == time.Microsecond {
		s.bound.Unit = 0 // the default, said aloud
	}
	if (s.bound.MaxAge > 0 || unit) && (!e.times || s.bound.Lexical) {
		s.wrong = append(s.wrong, fmt.Errorf("the options MaxAge and Unit are for times in ranked.New and ranked.Sparse"))
	}
	if s.bound.MaxAge > 0 && s.bound.Low {
		s.wrong = append(s.wrong, errors.New("MaxAge keeps the newest, LowestFirst the oldest"))
	}
	return &Index[T, S]{
		definition: plan.Definition{
			Name: name, Kind: "ranked", Encoding: e.name, Sparse: sparse, Bound: s.bound, Revision: s.revision,
			Err: errors.Join(s.wrong...),
		},
		extract: extract, encoder: e,
	}
}

// Name is the name of the index.
func (x *Index[T, S]) Name() string { return x.definition.Name }

// Definition is what decides the keys of the index, and what is wrong with its declaration.
func (x *Index[T, S]) Definition() plan.Definition { return x.definition }

// Score is the score of a record as the application gives it, and whether it has one.
func (x *Index[T, S]) Score(rec T) (S, bool) { return x.extract(rec) }

// Entries are the memberships that a record asks for.
func (x *Index[T, S]) Entries(rec T) ([]plan.Entry, error) {
	s, ok := x.extract(rec)
	if !ok {
		return nil, nil
	}
	score, ok, err := x.encode(s)
	if err != nil || !ok {
		return nil, err
	}
	return []plan.Entry{{Index: x.definition.Name, Kind: x.encoder.kind, Score: score}}, nil
}

func (x *Index[T, S]) encode(s S) (string, bool, error) {
	return x.encoder.encode(reflect.ValueOf(&s).Elem())
}

// Readings refuses: a ranked index has no exact values.
func (x *Index[T, S]) Readings(string) ([]key.Value, error) { return nil, errNoValues }

var errNoValues = errors.New("a ranked index answers for an order, not for a value")

// DecodeScore gives the score that stands in a ranked key.
func (x *Index[T, S]) DecodeScore(raw string) index.Score { return x.encoder.decode(raw) }

// ReadOrder is the order from one end of the index, for programs that know it by name.
func (x *Index[T, S]) ReadOrder(descending bool, limit int, within *string) (index.Order[T], error) {
	if within != nil {
		return index.Order[T]{}, fmt.Errorf("the index has no groups")
	}
	return x.view().order(descending, limit), nil
}

func (x *Index[T, S]) view() View[T, S] { return View[T, S]{ranked: x, core: x} }

// Top asks for the n highest scores, highest first.
func (x *Index[T, S]) Top(n int) index.Order[T] { return x.view().Top(n) }

// Bottom asks for the n lowest scores, lowest first.
func (x *Index[T, S]) Bottom(n int) index.Order[T] { return x.view().Bottom(n) }

// Newest is Top under its name for times.
func (x *Index[T, S]) Newest(n int) index.Order[T] { return x.view().Top(n) }

// Oldest is Bottom under its name for times.
func (x *Index[T, S]) Oldest(n int) index.Order[T] { return x.view().Bottom(n) }

// AtLeast is the condition that a score is s or higher.
func (x *Index[T, S]) AtLeast(s S) index.Cond[T] { return x.view().AtLeast(s) }

// Above is the condition that a score is higher than s.
func (x *Index[T, S]) Above(s S) index.Cond[T] { return x.view().Above(s) }

// AtMost is the condition that a score is s or lower.
func (x *Index[T, S]) AtMost(s S) index.Cond[T] { return x.view().AtMost(s) }

// Below is the condition that a score is lower than s.
func (x *Index[T, S]) Below(s S) index.Cond[T] { return x.view().Below(s) }

// Between is the condition that a score is at least low and at most high, both ends included.
func (x *Index[T, S]) Between(low, high S) index.Cond[T] { return x.view().Between(low, high) }
