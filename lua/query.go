package lua

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// StateError reports an index that a partition does not hold whole. State is building, dropping, or "" where the
// partition does not know the index.
type StateError struct{ State string }

func (e *StateError) Error() string {
	return fmt.Sprintf("lockstep: index state is %q, not ready", e.State)
}

// Loaded is one record as stored, with the row of what was written for it.
type Loaded struct {
	Row      string // "" if HasRow is false
	HasRow   bool
	Value    string // "" if HasValue is false
	HasValue bool
	Foreign  string        // the type of what is stored, if it is no string
	TTL      time.Duration // -1 without an expiry, or where it was not asked for
}

// Read loads records with their rows in one round trip, and with their time to live where ttls asks for it. records and ids
// are aligned; so is the result. The number is the partition's write counter.
func (r *Runner) Read(ctx context.Context, meta, manifest string, records, ids []string, ttls bool) ([]Loaded, int64, error) {
	keys := append([]string{meta, manifest}, records...)
	args := make([]any, 0, 1+len(ids))
	args = append(args, "")
	if ttls {
		args[0] = "1"
	}
	for i := range ids {
		args = append(args, &ids[i])
	}
	list, err := r.run(ctx, readScript, keys, fixed(args))
	if err != nil {
		return nil, 0, err
	}
	rep := reply{readScript.name, list, keys}
	if err := rep.refusal(0); err != nil {
		return nil, 0, err
	}
	if len(list) != 2+3*len(ids) {
		return nil, 0, rep.unexpected()
	}
	out := make([]Loaded, len(ids))
	for i := range ids {
		l := &out[i]
		l.Row, l.HasRow = rep.optional(2 + 3*i)
		l.Value, l.HasValue = rep.optional(3 + 3*i)
		if found, ok := list[3+3*i].([]any); ok {
			l.Foreign = reply{readScript.name, found, keys}.text(0)
		}
		l.TTL = -1
		if ttl := rep.number(4 + 3*i); ttl >= 0 {
			l.TTL = time.Duration(ttl) * time.Millisecond
		}
	}
	return out, rep.number(1), nil
}

// Values reads the values at keys: a string each, nil where there is none and, for several keys, where there is no string.
// The keys must not change any more: a call that its context ends may still be on its way.
func (r *Runner) Values(ctx context.Context, keys []string) ([]any, error) {
	if len(keys) == 1 {
		value, err := r.plain(ctx, "get", keys[0])
		if err != nil {
			return nil, err
		}
		return []any{value}, nil
	}
	args := make([]any, 0, 1+len(keys))
	args = append(args, "mget")
	for i := range keys {
		args = append(args, &keys[i])
	}
	return r.list(ctx, args)
}

// list is the array that a plain command gives.
func (r *Runner) list(ctx context.Context, args []any) ([]any, error) {
	reply, err := r.plain(ctx, args...)
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("lockstep: %v: unexpected reply %T", args[0], reply)
	}
	return list, nil
}

// FindCall asks for one page of the ids that hold a value.
type FindCall struct {
	Meta, Expiry, Entries string
	State                 string // state field of the index
	Cursor                string // "0" to begin
	Page                  int
}

// FindReply is one page. Cursor is "0" after the last; a page may be empty before it, and an id may come twice.
type FindReply struct {
	Cursor string
	Hidden int64 // ids left out because their records are due
	IDs    []string
}

// Find reads one page. Errors: *StateError if the index is not ready, ErrNotEntered, *KeyTypeError.
func (r *Runner) Find(ctx context.Context, c FindCall) (FindReply, error) {
	keys := []string{c.Meta, c.Expiry, c.Entries}
	list, err := r.run(ctx, findScript, keys, fixed([]any{c.State, c.Cursor, c.Page}))
	if err != nil {
		return FindReply{}, err
	}
	rep := reply{findScript.name, list, keys}
	if err := rep.refusal(0); err != nil {
		return FindReply{}, err
	}
	if len(list) < 3 {
		return FindReply{}, rep.unexpected()
	}
	out := FindReply{Cursor: rep.text(1), Hidden: rep.number(2), IDs: make([]string, 0, len(list)-3)}
	for i := 3; i < len(list); i++ {
		out.IDs = append(out.IDs, rep.text(i))
	}
	return out, nil
}

// Count adds up the members of index keys that share no id, without those whose records are due. Errors as Find.
func (r *Runner) Count(ctx context.Context, meta, expiry, state string, entries []string) (int64, error) {
	keys := append([]string{meta, expiry}, entries...)
	list, err := r.run(ctx, countScript, keys, fixed([]any{state}))
	if err != nil {
		return 0, err
	}
	rep := reply{countScript.name, list, keys}
	if err := rep.refusal(0); err != nil {
		return 0, err
	}
	return rep.number(1), nil
}

// StateField is the field of meta that holds the state of an index in one generation of its definition.
func StateField(index string, generation int) string {
	return "index:" + index + "." + strconv.Itoa(generation)
}

// fixed are arguments that do not depend on the attempt.
func fixed(args []any) func(bool) []any { return func(bool) []any { return args } }
