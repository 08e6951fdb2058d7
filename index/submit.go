package index

import (
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/gather"
)

// Defaults of OpenOptions.
const (
	// DefaultDirectWrites is how many single writes of a collection are on their way at once before others are gathered.
	DefaultDirectWrites = 3
	// DefaultDirectReads is the same for reads.
	DefaultDirectReads = 2
)

// submit brings a single write to its end, alone or together with those of other callers. Each record keeps its own
// conditions, outcome and atomicity; only the trip is shared.
func (c *Collection[T]) submit(ctx context.Context, w *write) error {
	if w.err != nil {
		return w.err
	}
	op, id := w.op, w.id
	outcome := c.writes.Submit(ctx, w, func(end func()) {
		w.ended = end
	})
	switch outcome {
	case gather.NotSent:
		return c.fail(op, id, "", fmt.Errorf("not sent: %w", context.Cause(ctx)))
	case gather.OnItsWay:
		return c.fail(op, id, "", fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx)))
	}
	return w.err
}
