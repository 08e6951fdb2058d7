// Package membership makes indexes that answer "which records have this value": one unordered set of ids per distinct
// value.
//
// New indexes one value of every record, Sparse of some, Multi any number, and Unique one that at most one record may
// have. The index is typed by its values and makes the queries: ByStatus.Is("active") compiles only with a value of the
// type that the extractor gives.
//
// Values are time.Time (as an instant, whatever its zone), a type with MarshalText, or a string, bool, integer or float
// kind, a Pair of these, or key.Value where the kind is known only at run time. Kinds never mix: true, "true" and 1 are
// three values, while all numbers are one kind: 1, 1.0 and uint8(1) are the same. -0 is 0, NaN is refused before anything is
// written. Pointers, interfaces and functions are refused by Open.
package membership
