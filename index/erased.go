package index

import (
	"context"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/key"
)

// Declared is an *Entity of any type, for programs that handle declarations without their types.
type Declared interface {
	Owner() string
	Name() string
	Version() int
	Lifetime() time.Duration
	String() string
	Err() error
	Space() key.Space
	Definitions() []Definition
	Amplification() int
	Fingerprint() string
	OpenErased(ctx context.Context, rdb redis.UniversalClient, o ...OpenOptions) (Opened, error)
}

// Opened is a *Collection of any type. Records go in and out as the bytes of their codec.
type Opened interface {
	// Declared is the declaration that was opened.
	Declared() Declared
	// Inspect says what is wrong with the bytes of a record by itself, and its id, without asking the store.
	Inspect(raw []byte) (id string, err error)
	// PutEncoded decodes records and puts them, as PutMany does: outcomes are aligned with raw, and a record that does not
	// decode is an outcome with an error. The codec must find the id in the bytes.
	PutEncoded(ctx context.Context, raw [][]byte) ([]Outcome, error)
	// GetEncoded gives the stored bytes of records, aligned with ids.
	GetEncoded(ctx context.Context, ids []string) ([]Result[[]byte], error)
	// FindEncoded gives the stored bytes of the records that have a value which text can stand for in an index.
	FindEncoded(ctx context.Context, index, text string) iter.Seq2[Encoded, error]
	// FindIDs gives their ids.
	FindIDs(ctx context.Context, index, text string) iter.Seq2[string, error]
	// CountOf counts them.
	CountOf(ctx context.Context, index, text string) (int64, error)
	// TopEncoded gives a page of a ranked index that is known by name, as Top does. A membership index, which holds no
	// order, is ErrUnsupported.
	TopEncoded(ctx context.Context, q TopRequest) (TopResult, error)
	// DeleteMany removes records and their entries.
	DeleteMany(ctx context.Context, ids []string) ([]Outcome, error)
	// RecordKey is the key at which the record of an id is stored.
	RecordKey(id string) (string, error)
	// Maintenance is what package repair works with.
	Maintenance() Maintenance
}

// Encoded is one record as its codec wrote it.
type Encoded struct {
	ID    string
	Bytes []byte
}
