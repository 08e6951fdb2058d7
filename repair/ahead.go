package repair

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// pagesAhead is how many pages may wait for their use.
const pagesAhead = 2

// ahead uses pages in order while the next ones are fetched, so that client and server work at the same time. fetch gives a
// page and whether more follow.
func ahead[P any](ctx context.Context, fetch func(context.Context) (P, bool, error), use func(P) error) error {
	pages := make(chan P, pagesAhead)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(pages)
		for more := true; more; {
			var page P
			var err error
			if page, more, err = fetch(ctx); err != nil {
				return err
			}
			select {
			case pages <- page:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	g.Go(func() error {
		for page := range pages {
			if err := use(page); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}
