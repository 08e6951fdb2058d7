package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
)

const (
	recordBytes = 220 // of one record as JSON
	statuses    = 50
	pageSize    = 20
	batchSize   = 200
	maxAt       = 1_000_000_000_000
)

// item is the record of the benchmarks.
type item struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	At     int64  `json:"at"`
	Body   string `json:"body"`
}

var (
	byStatus = membership.New("status", func(i item) string { return i.Status })
	recent   = ranked.New("recent", func(i item) int64 { return i.At })
)

// items declares the record. Its name is as long as that of the hand-written keys.
func items(owner string) *index.Entity[item] {
	return index.Define(owner, "item", index.Options[item]{
		ID: func(i item) string { return i.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[item]{byStatus, recent},
	})
}

// fill makes a record as long as it should be.
var fill = func() string {
	b, _ := json.Marshal(newItem(0, "")) // it has no value that JSON cannot hold
	return strings.Repeat("x", recordBytes-len(b))
}()

// newItem is a record with a status and a place of its own.
func newItem(n int64, body string) item {
	return item{ID: idOf(n), Status: statusOf(rand.IntN(statuses)), At: maxAt + rand.Int64N(maxAt), Body: body} //nolint:gosec // chance, not secrecy
}

func idOf(n int64) string { return fmt.Sprintf("id-%09d", n) }

func statusOf(n int) string { return fmt.Sprintf("status-%02d", n) }

// change gives a record another status and another place, as an update does.
func (i *item) change() {
	next := statusOf(rand.IntN(statuses - 1)) //nolint:gosec // chance, not secrecy
	if next == i.Status {
		next = statusOf(statuses - 1)
	}
	i.Status, i.At = next, maxAt+rand.Int64N(maxAt) //nolint:gosec // as above
}
