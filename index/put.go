package index

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/lua"
)

// Token names one state of a record, for IfToken. It is opaque, compares only for equality, and holds the record's index
// values: treat it like the record.
type Token string

// WriteOption changes one write.
type WriteOption func(*writeOptions)

type writeOptions struct {
	token    Token
	hasToken bool
	lifetime string // as the script takes it, "" for the default of the write
	wrong    error
}

// IfToken makes a write happen only if the record is still in the state that Read gave the token for; else ErrChanged, or
// ErrNotFound if it is gone. With it a write needs no second round trip for the entries it replaces.
func IfToken(t Token) WriteOption {
	return func(o *writeOptions) { o.token, o.hasToken = t, true }
}

// MaxLifetime is the longest lifetime that a record may be given.
const MaxLifetime = 10 * 365 * 24 * time.Hour

// Lives gives this write a lifetime of its own instead of the declared one: from now on by the server's clock, or Forever.
// Zero, other negative durations, less than a millisecond and more than MaxLifetime are ErrInvalid.
func Lives(d time.Duration) WriteOption {
	return func(o *writeOptions) { o.lifetime, o.wrong = lifetimeOf(d) }
}

// Until lets the record live until an instant, by the server's clock. An instant that is past there makes the write a
// delete, once its conditions hold. More than MaxLifetime away is ErrInvalid.
func Until(at time.Time) WriteOption {
	return func(o *writeOptions) {
		if at.After(time.Now().Add(MaxLifetime)) {
			o.wrong = fmt.Errorf("%w: the expiry %v is over ten years away", ErrInvalid, at)
			return
		}
		o.lifetime = lua.At(max(at.UnixMilli(), 0))
	}
}

// KeepLifetime leaves the record's expiry as it is, as Update does by itself.
func KeepLifetime() WriteOption { return func(o *writeOptions) { o.lifetime = lua.Keep } }

// lifetimeOf is a lifetime as the script takes it.
func lifetimeOf(d time.Duration) (string, error) {
	switch {
	case d == Forever:
		return lua.Forever, nil
	case d < time.Millisecond:
		return "", fmt.Errorf("%w: a lifetime of %v", ErrInvalid, d)
	case d > MaxLifetime:
		return "", fmt.Errorf("%w: a lifetime of %v is over ten years", ErrInvalid, d)
	}
	return strconv.FormatInt(d.Milliseconds(), 10), nil
}

// Put writes a record, new or not, and moves all of its index entries with it, in one atomic step. Its lifetime starts
// anew. Errors: ErrInvalid or ErrTooLarge for a record that cannot be stored or indexed, *ConflictError for a unique
// value, and those of the store.
//
// Cost: one round trip if the record is new, keeps its index values, or was written through this collection lately and by
// nobody else since (OpenOptions.RowCacheBytes); two if it changes index values that the collection does not know; one or
// two more for a unique value in other hands. Server work: O(entries).
func (c *Collection[T]) Put(ctx context.Context, rec T, o ...WriteOption) error {
	return c.write(ctx, "put", lua.Put, rec, o)
}

// Create writes a record that does not exist yet; else ErrExists. Otherwise as Put.
func (c *Collection[T]) Create(ctx context.Context, rec T, o ...WriteOption) error {
	return c.write(ctx, "create", lua.Create, rec, o)
}

// Replace writes a record that exists; else ErrNotFound. Otherwise as Put.
func (c *Collection[T]) Replace(ctx context.Context, rec T, o ...WriteOption) error {
	return c.write(ctx, "replace", lua.Replace, rec, o)
}

func (c *Collection[T]) write(ctx context.Context, op string, mode lua.Mode, rec T, o []WriteOption) error {
	w := c.prepare(op, mode, rec, o)
	return c.submit(ctx, &w)
}

// prepare turns a record into a write: everything that can be wrong with it is found here, before anything is sent.
func (c *Collection[T]) prepare(op string, mode lua.Mode, rec T, o []WriteOption) write {
	w := write{op: op, mode: mode, id: c.entity.options.ID(rec), writeID: newWriteID(), lifetime: c.lifetime()}
	w.err = c.fail(op, w.id, "", c.fill(&w, rec, o))
	return w
}

// fill gives a write what comes of its record.
func (c *Collection[T]) fill(w *write, rec T, o []WriteOption) (err error) {
	if w.key, err = c.keyOf(w.id); err != nil {
		return err
	}
	if w.entries, err = c.entriesOf(rec); err != nil {
		return err
	}
	if w.value, err = c.entity.options.Codec.Encode(rec); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if !c.entity.fresh {
		w.value = bytes.Clone(w.value) // a caller who leaves may use its bytes again while they are on their way
	}
	if limit := c.entity.options.MaxRecordBytes; len(w.value) > limit {
		return &TooLargeError{What: "record bytes", Size: len(w.value), Limit: limit}
	}
	return w.options(o)
}

// options takes the caller's options in.
func (w *write) options(o []WriteOption) error {
	if len(o) == 0 {
		return nil
	}
	var opts writeOptions
	for _, set := range o {
		set(&opts)
	}
	if opts.wrong != nil {
		return opts.wrong
	}
	if opts.lifetime != "" {
		w.lifetime = opts.lifetime
	}
	if !opts.hasToken {
		return nil
	}
	condition, tokens, err := opts.token.parse()
	if err != nil {
		return err
	}
	w.condition, w.assumed, w.token = condition, tokens, true
	return nil
}

// lifetime is the declared lifetime as the script takes it.
func (c *Collection[T]) lifetime() string {
	life, _ := lifetimeOf(c.entity.options.Lifetime) // checked by Define
	return life
}

// conditionSize is the length of a condition of each kind.
var conditionSize = map[byte]int{
	'w': len(lua.IfWriteID(strings.Repeat("x", 8))),
	'v': len(lua.IfValue(strings.Repeat("x", 40))),
}
