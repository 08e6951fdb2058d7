package lua

import (
	"context"
	"errors"
)

// What Touch can find.
var (
	ErrNoRecord = errors.New("lockstep: there is no record")
	ErrPast     = errors.New("lockstep: the instant is past")
)

// Touch gives a record another lifetime. Errors: ErrNoRecord, ErrPast, ErrNotEntered, *KeyTypeError.
func (r *Runner) Touch(ctx context.Context, meta, expiry, record, id, lifetime string) error {
	keys := []string{meta, expiry, record}
	list, err := r.run(ctx, touchScript, keys, fixed([]any{id, lifetime}))
	if err != nil {
		return err
	}
	rep := reply{touchScript.name, list, keys}
	switch rep.text(0) {
	case "missing":
		return ErrNoRecord
	case "past":
		return ErrPast
	}
	return rep.refusal(0)
}

// Due gives records that are due, at most limit after the first skip of them, and how many there are in all.
func (r *Runner) Due(ctx context.Context, meta, manifest, expiry string, limit, skip int) ([]DueRecord, int64, error) {
	keys := []string{meta, manifest, expiry}
	list, err := r.run(ctx, dueScript, keys, fixed([]any{limit, skip}))
	if err != nil {
		return nil, 0, err
	}
	rep := reply{dueScript.name, list, keys}
	if err := rep.refusal(0); err != nil {
		return nil, 0, err
	}
	out := make([]DueRecord, 0, (len(list)-2)/2)
	for i := 2; i < len(list); i += 2 {
		out = append(out, DueRecord{rep.text(i), rep.text(i + 1)})
	}
	return out, rep.number(1), nil
}

// Retirable reports whether a partition holds nothing and can be retired. An index that is not ready keeps it from being
// forgotten.
func (r *Runner) Retirable(ctx context.Context, meta, manifest, expiry, floor, epoch string) (bool, error) {
	return r.retire(ctx, []string{meta, manifest, expiry, floor}, epoch, "look")
}

// Retire removes the bookkeeping of a partition that Retirable has found to hold nothing, if it still does, and reports whether
// it is gone: by this call, by an attempt whose reply was lost, or by somebody else.
func (r *Runner) Retire(ctx context.Context, meta, manifest, expiry, floor, epoch string) (bool, error) {
	return r.retire(ctx, []string{meta, manifest, expiry, floor}, epoch, "remove")
}

func (r *Runner) retire(ctx context.Context, keys []string, epoch, what string) (bool, error) {
	list, err := r.run(ctx, retireScript, keys, fixed([]any{epoch, what}))
	if err != nil {
		return false, err
	}
	rep := reply{retireScript.name, list, keys}
	return rep.text(1) == "1", rep.refusal(0)
}

// Unplant notes in the catalog that the partitions of a fixed placement are to be planted again when they are next entered:
// before one of them is retired, and after it, when they are known to hold nothing and can start ready.
func (r *Runner) Unplant(ctx context.Context, catalog string, empty bool) error {
	if empty {
		if err := r.note(ctx, catalog, "hset", "start", string(Ready)); err != nil {
			return err
		}
	}
	return r.note(ctx, catalog, "hdel", "planted")
}
