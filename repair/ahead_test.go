package repair

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPagesAreUsedInOrderWhileTheNextAreFetched(t *testing.T) {
	const pages = 10
	fetched, inUse := 0, make(chan struct{})
	var used []int
	err := ahead(t.Context(), func(context.Context) (int, bool, error) {
		if fetched == 2 {
			<-inUse // the first page is in use by the time the third is fetched
		}
		fetched++
		return fetched, fetched < pages, nil
	}, func(page int) error {
		if page == 1 {
			close(inUse)
		}
		used = append(used, page)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, used)
}

func TestAnErrorOnEitherSideEndsBoth(t *testing.T) {
	broken := errors.New("broken")
	err := ahead(t.Context(), func(context.Context) (int, bool, error) { return 0, false, broken }, func(int) error {
		t.Error("nothing was fetched")
		return nil
	})
	require.ErrorIs(t, err, broken)

	err = ahead(t.Context(), func(context.Context) (int, bool, error) { return 0, true, nil }, func(int) error { return broken })
	require.ErrorIs(t, err, broken)

	ctx, cancel := context.WithCancel(t.Context())
	err = ahead(ctx, func(ctx context.Context) (int, bool, error) { return 0, true, ctx.Err() }, func(int) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
}
