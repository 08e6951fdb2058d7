package index

import (
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
)

// Index is one index of an entity type over T. Package membership makes them. The interface is there to be passed around;
// its implementations live in this module.
type Index[T any] interface {
	// Name is the name of the index: part of its keys, unique within the entity type.
	Name() string
	// Definition is what decides the keys of the index, and what is wrong with its declaration.
	Definition() plan.Definition
	// Entries are the memberships that a record asks for. It is a pure function of the record.
	Entries(rec T) ([]plan.Entry, error)
	// Readings are the values that a text typed by a person can stand for, normalised as the index does.
	Readings(text string) ([]key.Value, error)
}

// RankedIndex is an index that holds its records in order. Package ranked makes them.
type RankedIndex[T any] interface {
	Index[T]
	// DecodeScore gives the score that stands in a ranked key: its text, or for a lexical key what its members begin with.
	DecodeScore(raw string) Score
	// ReadOrder is the order from one end of the index that a person asks for by name: within is a text for the group.
	ReadOrder(descending bool, limit int, within *string) (Order[T], error)
}

// Definition describes an index, for programs that handle declarations without their types.
type Definition = plan.Definition
