package typed

// Pair is a composite value of two.
type Pair[A, B any] struct {
	First  A
	Second B
}

// paired marks the instances of Pair.
type paired interface{ pair() }

func (Pair[A, B]) pair() {}
