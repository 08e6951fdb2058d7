// Package pace slows a pass over a store down to a rate.
package pace

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

// Wait waits until n more may be looked at, or until ctx is done or would be: a nil limiter never makes it wait.
func Wait(ctx context.Context, limiter *rate.Limiter, n int) error {
	if limiter == nil {
		return ctx.Err()
	}
	for ; n > 0; n -= limiter.Burst() {
		if err := limiter.WaitN(ctx, min(n, limiter.Burst())); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			// The deadline would pass while waiting.
			return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
		}
	}
	return nil
}
