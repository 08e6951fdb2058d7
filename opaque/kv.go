package opaque

import (
	"context"
	"iter"
	"time"

	"github.com/lockstep-go/lockstep/key"
)

// Token names one write of one key: opaque bytes that a store issues and takes back. Tokens compare for equality only, and
// nothing here compares them at all. The empty token names nothing.
type Token string

// Item is a value with the token of the write that left it.
type Item struct {
	Value []byte
	Token Token
}

// KV is what an opaque store has to offer: single keys, each changed atomically, and nothing that spans two of them. Package
// opaquetest is a conformance suite for implementations.
//
// A token is issued for one write and never again, not for the same bytes either, as long as anybody may remember it; a
// store that cannot promise that over its own restart refuses the tokens of an earlier life with ErrChanged. Only writes
// move tokens. An expired value counts as absent.
//
// Errors match the sentinels of this package. A write that ends with ErrNotFound, ErrExists, ErrChanged, ErrTooLarge,
// ErrBadKey, ErrNoToken, ErrOutOfMemory or ErrUnavailable has not happened and never will. Every other error of a write
// means that it may have happened, or may still happen later: ErrUnknown. An expiry is an instant, zero for none; a store
// may round it up to its own granularity.
//
// Implementations are safe for concurrent use, keep no reference to a value they were given, and honour ctx.
type KV interface {
	// Get reads a key. ErrNotFound if it is absent.
	Get(ctx context.Context, key string) (Item, error)
	// Add writes a key that is absent, else ErrExists.
	Add(ctx context.Context, key string, value []byte, expires time.Time) (Token, error)
	// Swap replaces the value that token names. ErrChanged if the key holds another write, ErrNotFound if it is absent
	// (a store that cannot tell may say ErrChanged), ErrNoToken for an empty token. A swap that fails leaves the old value.
	Swap(ctx context.Context, key string, value []byte, expires time.Time, token Token) (Token, error)
	// Delete removes the value that token names. Errors as Swap.
	Delete(ctx context.Context, key string, token Token) error
	// Limits are the limits of the store. They do not change while a client lives.
	Limits(ctx context.Context) (Limits, error)
}

// Limits are what a store takes.
type Limits struct {
	// Keys are the rules for keys.
	Keys key.Rules
	// MaxValue is the largest value in bytes, 0 for no limit.
	MaxValue int
	// MinLifetime is the shortest lifetime that the store keeps faithfully, 0 for any.
	MinLifetime time.Duration
}

// BatchGetter is a KV that reads many keys in one round trip. The items are aligned with keys; one without a token is
// absent. The keys are not read at one instant.
type BatchGetter interface {
	GetMany(ctx context.Context, keys []string) ([]Item, error)
}

// Witness is a KV that can tell whether it has lost something. Without it, only the loss of everything is noticed.
type Witness interface {
	Life(ctx context.Context) (Life, error)
}

// Life identifies one run of a server and what it has thrown away in it.
type Life struct {
	// Run is another text after every restart that loses data.
	Run string `json:"run"`
	// Evictions and Flushes only grow within a run.
	Evictions uint64 `json:"evictions"`
	Flushes   uint64 `json:"flushes"`
}

// Lister is a KV that can list its keys. The list may miss keys and is no snapshot: it serves to find garbage, and never to
// conclude that something is missing.
type Lister interface {
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]
}
