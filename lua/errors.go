package lua

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/key"
)

// Causes for which a call ends without an answer. Package index gives them to its users under the same names.
var (
	ErrUnknown     = errors.New("lockstep: the outcome of the write is unknown")
	ErrReadOnly    = errors.New("lockstep: the server is read-only")
	ErrOutOfMemory = errors.New("lockstep: the server is out of memory")
	ErrDenied      = errors.New("lockstep: the user may not run a command or touch a key")
	ErrUnavailable = errors.New("lockstep: the server is not available")
	ErrKeyType     = errors.New("lockstep: a key holds another type")
	ErrFenced      = errors.New("lockstep: another builder has taken over")
	ErrSchema      = errors.New("lockstep: the declaration is older than the store allows")
)

// KeyTypeError reports a foreign value at a key that Lockstep names. Nothing was written. It matches ErrKeyType.
type KeyTypeError struct {
	Key   string // the key
	Found string // the type that TYPE gives
}

// Error names the key, but of an index key only the index: a value may be one that is nobody's business.
func (e *KeyTypeError) Error() string {
	if p, err := key.Parse(e.Key); err == nil && p.Kind == key.KindIndex {
		return fmt.Sprintf("%v: a key of index %s is a %s", ErrKeyType, p.Index, e.Found)
	}
	return fmt.Sprintf("%v: %q is a %s", ErrKeyType, e.Key, e.Found)
}

// Is makes errors.Is(err, ErrKeyType) hold.
func (e *KeyTypeError) Is(target error) bool { return target == ErrKeyType }

// SchemaError reports a caller whose schema generation may not write any more. It matches ErrSchema.
type SchemaError struct {
	Generation int64 // of the caller
	Min        int64 // the oldest that the partition allows
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("%v: generation %d, the store wants at least %d", ErrSchema, e.Generation, e.Min)
}

// Is makes errors.Is(err, ErrSchema) hold.
func (e *SchemaError) Is(target error) bool { return target == ErrSchema }

// fate is what an error says about the call that it ended.
type fate int

const (
	refused    fate = iota // not applied, and a repeat would end the same way
	notApplied             // not applied, and a repeat may succeed
	maybe                  // sent, and perhaps applied
)

// transient are the error codes of a server that did not run the call and may run it a moment later.
var transient = []struct {
	code  string
	cause error
}{
	{"MOVED", ErrUnavailable},
	{"ASK", ErrUnavailable},
	{"TRYAGAIN", ErrUnavailable},
	{"CLUSTERDOWN", ErrUnavailable},
	{"LOADING", ErrUnavailable},
	{"MASTERDOWN", ErrUnavailable},
	{"NOREPLICAS", ErrUnavailable},
	{"BUSY", ErrUnavailable},
	{"READONLY", ErrReadOnly},
	{"ERR max number of clients", ErrUnavailable},
}

// Judge wraps an error of a plain command with the cause that it stands for; nil stays nil.
func Judge(err error) error {
	if err == nil {
		return nil
	}
	_, cause := judge(err)
	return cause
}

// judge says what an error of a call means and names its cause.
func judge(err error) (fate, error) {
	var reply redis.Error
	if errors.As(err, &reply) && !errors.Is(err, redis.Nil) {
		return judgeReply(err, reply.Error())
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return notApplied, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.Is(err, redis.ErrClosed):
		return refused, fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return maybe, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}

func judgeReply(err error, text string) (fate, error) {
	// Before Redis 7 an error inside a script comes wrapped: "ERR Error running script (...): @user_script:1: -OOM ...".
	if i := strings.LastIndex(text, ": -"); i >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		text = text[i+3:]
	}
	for _, t := range transient {
		if strings.HasPrefix(text, t.code) && (len(text) == len(t.code) || text[len(t.code)] == ' ') {
			return notApplied, fmt.Errorf("%w: %w", t.cause, err)
		}
	}
	switch {
	case strings.HasPrefix(text, "OOM"):
		return refused, fmt.Errorf("%w: %w", ErrOutOfMemory, err)
	case denied(text):
		return refused, fmt.Errorf("%w: %w", ErrDenied, err)
	case strings.HasPrefix(text, "NOAUTH"), strings.HasPrefix(text, "WRONGPASS"):
		return refused, fmt.Errorf("%w: %w", ErrDenied, err)
	case strings.HasPrefix(text, "MISCONF"), strings.HasPrefix(text, "NOSCRIPT"):
		// NOSCRIPT in answer to the source itself: a server that cannot run scripts.
		return refused, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return refused, err
}

// denied recognises a missing permission, which each server version words in its own way inside a script.
func denied(text string) bool {
	return strings.HasPrefix(text, "NOPERM") ||
		strings.Contains(text, "ACL failure in script") ||
		strings.Contains(text, "can't run this command or subcommand") ||
		strings.Contains(text, "can't access at least one of the keys")
}

// ended wraps the context's error of a call that stopped waiting.
func ended(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	if last == nil || errors.Is(last, cause) {
		return cause
	}
	return fmt.Errorf("%w (last: %w)", cause, last)
}
