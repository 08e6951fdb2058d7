package membership

import "github.com/lockstep-go/lockstep/internal/typed"

// Pair is a composite value, First and Second: an index over pairs answers for both parts together in one look-up. Pairs
// may hold pairs.
type Pair[A, B any] = typed.Pair[A, B]

// Of makes a pair. Its parts stay apart in the key whatever they hold.
//
// A composite index costs a key for each combination in use, and answers for nothing but whole combinations; with three
// or four parts this approach stops paying and the question belongs in a database that has a query planner.
func Of[A, B any](a A, b B) Pair[A, B] { return Pair[A, B]{First: a, Second: b} }
