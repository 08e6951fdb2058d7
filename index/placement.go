package index

// Placement decides which keys of an entity type share a hash tag, and so what one write can change at once.
type Placement struct {
	name string
}

// Single keeps an entity type in one partition, under one hash tag: every write is atomic and every query asks one place.
// It is the default. On a cluster all of it sits in one slot; Open says so once.
var Single = Placement{"single"}

// String names the placement, as the fingerprint does.
func (p Placement) String() string {
	if p.name == "" {
		return Single.name
	}
	return p.name
}
