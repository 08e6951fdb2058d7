package membership

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/internal/typed"
	"github.com/lockstep-go/lockstep/key"
)

// Index is a membership index over the values V of records T: one set of ids per distinct value.
type Index[T, V any] struct {
	definition plan.Definition
	extract    func(T) ([]V, bool)
	settings   settings
	normalise  []func(V) V
	reading    func(string) ([]V, error)
	encoder    typed.Encoder
}

// UniqueIndex is an index of which at most one record holds each value.
type UniqueIndex[T, V any] struct{ core Index[T, V] }

// New indexes one value of every record.
func New[T, V any](name string, value func(T) V, o ...Option) *Index[T, V] {
	ix := build[T, V](plan.Definition{Name: name}, value == nil, o)
	ix.extract = func(rec T) ([]V, bool) { return []V{value(rec)}, true }
	return ix
}

// Sparse indexes one value of the records for which value says true. The others have no entry: deleting them, or
// changing them, never touches what another record holds.
func Sparse[T, V any](name string, value func(T) (V, bool), o ...Option) *Index[T, V] {
	ix := build[T, V](plan.Definition{Name: name, Sparse: true}, value == nil, o)
	ix.extract = single(value)
	return ix
}

// Multi indexes every value of a record, each distinct one once: a record with the values a, a and b is found under a and
// under b. No values, no entry. At most MaxValues distinct values a record.
func Multi[T, V any](name string, values func(T) []V, o ...Option) *Index[T, V] {
	ix := build[T, V](plan.Definition{Name: name, Multi: true}, values == nil, o)
	ix.extract = func(rec T) ([]V, bool) {
		vs := values(rec)
		return vs, len(vs) > 0
	}
	return ix
}

// Unique indexes one value of the records for which value says true, and lets no two records have the same: the second
// write is a *index.ConflictError, and nothing of it is written. The comma-ok result makes the decision about "" or nil
// explicit. A value is free again when its holder gives it up, is deleted, or expires.
func Unique[T, V any](name string, value func(T) (V, bool), o ...Option) *UniqueIndex[T, V] {
	ix := build[T, V](plan.Definition{Name: name, Sparse: true, Unique: true}, value == nil, o)
	ix.extract = single(value)
	return &UniqueIndex[T, V]{*ix}
}

func single[T, V any](value func(T) (V, bool)) func(T) ([]V, bool) {
	return func(rec T) ([]V, bool) {
		v, ok := value(rec)
		if !ok {
			return nil, false
		}
		return []V{v}, true
	}
}

// build checks the options against the value type. What is wrong stands in the definition, for Open to report.
func build[T, V any](d plan.Definition, noFunction bool, o []Option) *Index[T, V] {
	ix := &Index[T, V]{settings: settings{maxValues: DefaultMaxValues}}
	s := &ix.settings
	for _, option := range o {
		if option.apply != nil {
			option.apply(s)
		}
	}
	if noFunction {
		s.wrong = append(s.wrong, errors.New("no function that gives its values"))
	}
	t := reflect.TypeFor[V]()
	var err error
	if ix.encoder, err = typed.Of(t); err != nil {
		s.wrong = append(s.wrong, err)
	}
	for _, fn := range s.normalise {
		f, ok := fn.(func(V) V)
		if !ok {
			s.wrong = append(s.wrong, fmt.Errorf("Normalize is %T, the values are %v", fn, t))
			continue
		}
		ix.normalise = append(ix.normalise, f)
	}
	if s.reading != nil {
		f, ok := s.reading.(func(string) ([]V, error))
		if !ok {
			s.wrong = append(s.wrong, fmt.Errorf("Reading is %T, the values are %v", s.reading, t))
		}
		ix.reading = f
	}
	if len(s.texts) > 0 && ix.encoder.Name != "text" && ix.encoder.Name != "any" {
		s.wrong = append(s.wrong, fmt.Errorf("the options Fold and Trim are for texts, the values are %v", t))
	}
	d.Kind, d.Encoding = "membership", ix.encoder.Name
	d.Normalisers, d.Digest, d.Revision = s.names(), s.digest, s.revision
	d.Err = errors.Join(s.wrong...)
	ix.definition = d
	return ix
}

// Name is the name of the index.
func (x *Index[T, V]) Name() string { return x.definition.Name }

// Definition is what decides the keys of the index, and what is wrong with its declaration.
func (x *Index[T, V]) Definition() plan.Definition { return x.definition }

// Entries are the memberships that a record asks for.
func (x *Index[T, V]) Entries(rec T) ([]plan.Entry, error) {
	values, ok := x.extract(rec)
	if !ok {
		return nil, nil
	}
	out := make([]plan.Entry, 0, len(values))
	var met map[key.Value]struct{}
	if len(values) > 1 {
		met = make(map[key.Value]struct{}, len(values))
	}
	for _, v := range values {
		kv, err := x.value(v)
		if err != nil {
			return nil, err
		}
		if met != nil {
			if _, again := met[kv]; again {
				continue
			}
			met[kv] = struct{}{}
		}
		out = append(out, plan.Entry{Index: x.definition.Name, Kind: plan.Set, Value: kv, Unique: x.definition.Unique})
	}
	if len(out) > x.settings.maxValues {
		return nil, &index.TooLargeError{What: "values", Size: len(out), Limit: x.settings.maxValues}
	}
	return out, nil
}

// value normalises and encodes one value, for writes and queries alike.
func (x *Index[T, V]) value(v V) (key.Value, error) {
	for _, fn := range x.normalise {
		v = fn(v)
	}
	var kv key.Value
	if s, ok := any(v).(string); ok {
		kv = key.Text(s)
	} else {
		var err error
		if kv, err = x.encoder.Encode(reflect.ValueOf(v)); err != nil {
			return key.Value{}, err
		}
	}
	if len(x.settings.texts) > 0 {
		if s, ok := kv.IsText(); ok {
			for _, step := range x.settings.texts {
				s = step(s)
			}
			kv = key.Text(s)
		}
	}
	if x.settings.digest {
		kv = kv.Digest()
	}
	return kv, nil
}

// Readings are the values that a text typed by a person can stand for.
func (x *Index[T, V]) Readings(text string) ([]key.Value, error) {
	if x.reading != nil {
		values, err := x.reading(text)
		if err != nil {
			return nil, err
		}
		return x.values(values)
	}
	read, err := x.encoder.Read(text)
	if err != nil {
		return nil, err
	}
	values := make([]V, len(read))
	for i, v := range read {
		values[i] = v.Interface().(V)
	}
	return x.values(values)
}

// values normalises and encodes what is asked for, each distinct value once.
func (x *Index[T, V]) values(values []V) ([]key.Value, error) {
	out := make([]key.Value, 0, len(values))
	met := make(map[key.Value]struct{}, len(values))
	for _, v := range values {
		kv, err := x.value(v)
		if err != nil {
			return nil, err
		}
		if _, again := met[kv]; !again {
			met[kv] = struct{}{}
			out = append(out, kv)
		}
	}
	return out, nil
}

// Is is the condition that a record has the value.
func (x *Index[T, V]) Is(value V) index.Cond[T] { return x.In(value) }

// In is the condition that a record has one of the values. No values match no record.
func (x *Index[T, V]) In(values ...V) index.Cond[T] {
	encoded, err := x.values(values)
	return index.Where(x, encoded, err)
}

// Name is the name of the index.
func (x *UniqueIndex[T, V]) Name() string { return x.core.Name() }

// Definition is what decides the keys of the index, and what is wrong with its declaration.
func (x *UniqueIndex[T, V]) Definition() plan.Definition { return x.core.Definition() }

// Entries are the memberships that a record asks for.
func (x *UniqueIndex[T, V]) Entries(rec T) ([]plan.Entry, error) { return x.core.Entries(rec) }

// Readings are the values that a text typed by a person can stand for.
func (x *UniqueIndex[T, V]) Readings(text string) ([]key.Value, error) { return x.core.Readings(text) }

// Is is the condition that a record has the value: at most one does.
func (x *UniqueIndex[T, V]) Is(value V) index.Key[T] {
	encoded, err := x.core.value(value)
	return index.WhereKey(x, encoded, err)
}

// In is the condition that a record has one of the values.
func (x *UniqueIndex[T, V]) In(values ...V) index.Cond[T] {
	encoded, err := x.core.values(values)
	return index.Where(x, encoded, err)
}
