package membership

// Pair is a composite value: an index over pairs answers for both parts together in one look-up. Pairs may hold pairs.
type Pair[A, B any] struct {
	First  A
	Second B
}

// Of makes a pair. Its parts stay apart in the key whatever they hold.
//
// A composite index costs a key for each combination in use, and answers for nothing but whole combinations; with three
// or four parts this approach stops paying and the question belongs in a database that has a query planner.
func Of[A, B any](a A, b B) Pair[A, B] { return Pair[A, B]{a, b} }

// paired marks the instances of Pair for the encoder.
type paired interface{ pair() }

func (Pair[A, B]) pair() {}
