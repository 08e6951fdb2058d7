package key

import "errors"

// The errors of this package. Every error it returns matches one of them with
// errors.Is. Their texts say what was wrong and how long it was, never the id
// or the value itself, so that they may be logged.
var (
	// ErrName says that an owner, an entity or an index has a name outside the
	// allowed letters or lengths, or that a Space or a Partition was used that
	// no constructor made.
	ErrName = errors.New("key: invalid name")
	// ErrTooLong says that a key would be longer than the store allows.
	ErrTooLong = errors.New("key: too long for the store")
	// ErrMalformed says that a text is not what this package writes: a key, the
	// body of an index key, or a number.
	ErrMalformed = errors.New("key: malformed")
	// ErrNaN says that a float is not a number and so has no place in an index.
	ErrNaN = errors.New("key: NaN has no index value")
	// ErrRange says that a number, a year, an exponent, a version, a generation
	// or a bucket is outside its stated bounds.
	ErrRange = errors.New("key: out of range")
)
