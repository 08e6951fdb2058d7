package rediskv

import (
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/opaque"
)

// judge says what an error of a write means: whatever the server answered, it did not do it; whatever was not sent has not
// happened; everything else is unknown.
func judge(err error) error {
	var reply redis.Error
	var op *net.OpError
	switch {
	case redis.IsOOMError(err):
		return fmt.Errorf("%w: %w", opaque.ErrOutOfMemory, err)
	case errors.As(err, &reply) && !errors.Is(err, redis.Nil):
		return fmt.Errorf("%w: %w", opaque.ErrUnavailable, err)
	case errors.As(err, &op) && op.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%w: %w", opaque.ErrUnavailable, err)
	default:
		return fmt.Errorf("%w: %w", opaque.ErrUnknown, err)
	}
}

// judgeRead says what an error of a read means.
func judgeRead(err error) error {
	switch {
	case errors.Is(err, redis.Nil):
		return opaque.ErrNotFound
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("%w: %w", opaque.ErrKeyType, err)
	}
	return fmt.Errorf("%w: %w", opaque.ErrUnavailable, err)
}
