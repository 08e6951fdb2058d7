package memcachekv_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/opaque"
)

var forever time.Time

const (
	patience = 15 * time.Second
	tick     = 5 * time.Millisecond
)

// fill writes until the server has no room for another value of any size that tests use.
func fill(t testing.TB, kv opaque.KV) {
	t.Helper()
	for _, size := range []int{100_000, 10_000, 1000, 300, 250, 200, 150, 100, 60, 30, 10} {
		full := false
		for i := 0; !full; i++ {
			_, err := kv.Add(t.Context(), fmt.Sprintf("fill.%d.%d", size, i), make([]byte, size), forever)
			full = errors.Is(err, opaque.ErrOutOfMemory)
			if !full {
				require.NoError(t, err)
			}
		}
	}
}
