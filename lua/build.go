package lua

import (
	"context"
	"errors"
	"strconv"
)

// ErrLost reports a build some of whose writes the server has not kept. It has to start over.
var ErrLost = errors.New("lockstep: the store has lost writes of the build")

// ErrMoved reports a floor that is another one than was read.
var ErrMoved = errors.New("lockstep: something was trimmed meanwhile")

// Fence begins a build under a nonce: writers of declarations older than generation are refused from now on, and so is
// every other builder. Errors: *SchemaError if a newer declaration has entered, ErrNotEntered, *KeyTypeError.
func (r *Runner) Fence(ctx context.Context, meta string, generation int64, nonce string) error {
	keys := []string{meta}
	list, err := r.run(ctx, fenceScript, keys, fixed([]any{generation, nonce}))
	if err != nil {
		return err
	}
	return reply{fenceScript.name, list, keys}.refusal(generation)
}

// Ready ends a build that has written so many records: it marks the indexes with the state fields ready and takes the
// fence away. Errors: ErrLost, ErrFenced if another builder has taken over, *SchemaError, ErrNotEntered, *KeyTypeError.
func (r *Runner) Ready(ctx context.Context, meta string, generation int64, nonce string, built int64, states []string) error {
	args := []any{generation, nonce, strconv.FormatInt(built, 10)}
	for _, s := range states {
		args = append(args, s)
	}
	keys := []string{meta}
	list, err := r.run(ctx, readyScript, keys, fixed(args))
	if err != nil {
		return err
	}
	rep := reply{readyScript.name, list, keys}
	if rep.text(0) == "lost" {
		return ErrLost
	}
	return rep.refusal(generation)
}

// Refloor replaces the floor of a ranked key by one from Floor.Lowered, or removes it where that is "", if nothing has been
// trimmed since the counter was read. ErrMoved if something has.
func (r *Runner) Refloor(ctx context.Context, floor, body, counter, to string) error {
	keys := []string{floor}
	list, err := r.run(ctx, refloorScript, keys, fixed([]any{body, counter, to}))
	if err != nil {
		return err
	}
	rep := reply{refloorScript.name, list, keys}
	if rep.text(0) == "moved" {
		return ErrMoved
	}
	return rep.refusal(0)
}
