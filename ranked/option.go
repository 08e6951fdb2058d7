package ranked

import (
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/plan"
)

// Option sets one index.
type Option struct {
	apply func(*settings)
}

type settings struct {
	bound    plan.Bound
	slack    bool // Slack was given
	revision int
	wrong    []error
}

// Keep bounds an index, or each group of it, to the best n: the highest, or with LowestFirst the lowest. Without it an
// index grows with its records.
func Keep(n int) Option {
	return Option{func(s *settings) {
		if n < 1 {
			s.wrong = append(s.wrong, fmt.Errorf("Keep(%d): at least 1", n))
		}
		s.bound.Keep = n
	}}
}

// Slack is how many members above Keep may gather before a write trims back to Keep: trimming many at once costs less.
// A tenth of Keep by default.
func Slack(n int) Option {
	return Option{func(s *settings) {
		if n < 0 {
			s.wrong = append(s.wrong, fmt.Errorf("Slack(%d): not negative", n))
		}
		s.bound.Slack, s.slack = n, true
	}}
}

// MaxAge makes an index of times a window: what is older, by the server's clock, is no member. Queries hide it, and writes
// remove it; it raises no floor. With a coarser Unit the window moves by whole units, so that nothing younger leaves it. Not
// for Exact.
func MaxAge(d time.Duration) Option {
	return Option{func(s *settings) {
		if d < time.Microsecond {
			s.wrong = append(s.wrong, fmt.Errorf("MaxAge(%v): at least a microsecond", d))
		}
		s.bound.MaxAge = d
	}}
}

// Unit is the precision of an order of times, a microsecond by default and a multiple of it. Times within one unit are
// equal in the order. The record keeps its own precision. Not for Exact, whose unit is the nanosecond.
func Unit(d time.Duration) Option {
	return Option{func(s *settings) {
		if d < time.Microsecond || d%time.Microsecond != 0 {
			s.wrong = append(s.wrong, fmt.Errorf("Unit(%v): a multiple of a microsecond", d))
		}
		s.bound.Unit = d
	}}
}

// LowestFirst keeps the lowest scores instead of the highest: for deadlines, and queues that take the oldest.
func LowestFirst() Option { return Option{func(s *settings) { s.bound.Low = true }} }

// Revision counts changes of an extractor that code cannot see. A new revision is a new generation of the index.
func Revision(n int) Option { return Option{func(s *settings) { s.revision = n }} }
