package lua

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errLeft says that a call was still on its way when its context ended.
var errLeft = errors.New("lockstep: left while the server had not answered")

// leaveGrace is how long a call that its context has ended may take to say that it was never sent: what waits for a
// connection comes back at once, what waits on a socket does not.
const leaveGrace = 10 * time.Millisecond

// Await runs fn, a call of the client, and leaves it when ctx ends: the client itself looks at a context before it uses a
// socket, and at most at its deadline while it waits there. fn goes on by itself until the client's read timeout; it must
// own what it touches. Without a ctx that can end it costs nothing, else a goroutine.
func Await(ctx context.Context, fn func() error) error {
	if ctx.Done() == nil {
		return fn()
	}
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(leaveGrace)
	defer grace.Stop()
	select {
	case err := <-done:
		return err
	case <-grace.C:
		return fmt.Errorf("%w: %w", errLeft, context.Cause(ctx))
	}
}

// Call is Await for a call of the client that gives something.
func Call[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	var got T
	err := Await(ctx, func() (err error) {
		got, err = fn()
		return err
	})
	if errors.Is(err, errLeft) {
		var none T
		return none, err // got still belongs to the call
	}
	return got, err
}
