package ranked

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/internal/typed"
	"github.com/lockstep-go/lockstep/key"
)

// Grouped is a ranked index with one order for each group G of the records T. Keep and MaxAge hold for each group.
type Grouped[T, G, S any] struct {
	core       *Index[T, S]
	definition plan.Definition
	group      func(T) G
	encoder    typed.Encoder
}

// Within ranks by an index inside groups: the latest orders of one customer, the strongest within one network. Groups are
// typed values, as those of a membership index. Only Of asks it; by itself by is not declared.
func Within[T, G, S any](group func(T) G, by *Index[T, S]) *Grouped[T, G, S] {
	if by == nil {
		e, err := refusing(plan.Ranked, errors.New("Within has no index"))
		by = &Index[T, S]{
			definition: plan.Definition{Kind: "ranked", Err: err},
			extract:    func(T) (none S, ok bool) { return none, false }, encoder: e,
		}
	}
	x := &Grouped[T, G, S]{core: by, group: group, definition: by.definition}
	wrong := []error{by.definition.Err}
	if group == nil {
		wrong = append(wrong, errors.New("Within has no function that gives the group"))
	}
	var err error
	if x.encoder, err = typed.Of(reflect.TypeFor[G]()); err != nil {
		wrong = append(wrong, err)
		refused := err
		x.encoder.Encode = func(reflect.Value) (key.Value, error) { return key.Value{}, refused }
	}
	x.definition.Group = x.encoder.Name
	x.definition.Err = errors.Join(wrong...)
	return x
}

// Name is the name of the index.
func (x *Grouped[T, G, S]) Name() string { return x.definition.Name }

// Definition is what decides the keys of the index, and what is wrong with its declaration.
func (x *Grouped[T, G, S]) Definition() plan.Definition { return x.definition }

// Entries are the memberships that a record asks for.
func (x *Grouped[T, G, S]) Entries(rec T) ([]plan.Entry, error) {
	entries, err := x.core.Entries(rec)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	group, err := x.value(x.group(rec))
	if err != nil {
		return nil, err
	}
	entries[0].Value, entries[0].Grouped = group, true
	return entries, nil
}

func (x *Grouped[T, G, S]) value(g G) (key.Value, error) {
	return x.encoder.Encode(reflect.ValueOf(&g).Elem())
}

// Readings refuses: a ranked index has no exact values.
func (x *Grouped[T, G, S]) Readings(string) ([]key.Value, error) { return nil, errNoValues }

// DecodeScore gives the score that stands in a ranked key.
func (x *Grouped[T, G, S]) DecodeScore(raw string) index.Score { return x.core.DecodeScore(raw) }

// ReadOrder is the order from one end of a group, for programs that know the index by name.
func (x *Grouped[T, G, S]) ReadOrder(descending bool, limit int, within *string) (index.Order[T], error) {
	if within == nil {
		return index.Order[T]{}, errors.New("the index ranks within groups: name one")
	}
	values, err := x.encoder.Read(*within)
	if err != nil {
		return index.Order[T]{}, err
	}
	if len(values) != 1 {
		return index.Order[T]{}, fmt.Errorf("%q can stand for several groups", *within)
	}
	return x.Of(values[0].Interface().(G)).order(descending, limit), nil
}

// Of is the order of one group.
func (x *Grouped[T, G, S]) Of(g G) View[T, S] {
	group, err := x.value(g)
	return View[T, S]{ranked: x, core: x.core, group: group, grouped: true, err: err}
}
