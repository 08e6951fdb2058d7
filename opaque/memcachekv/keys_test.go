package memcachekv_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

// A server walks its memory for one client at a time, and tells the others that it is busy.
func TestKeysAreListedForEverybodyWhoAsksAtOnce(t *testing.T) {
	const keys = 3000
	s := redistest.Memcached(t)
	kv := client(t, s)
	for i := range keys {
		_, err := kv.Add(t.Context(), fmt.Sprintf("mine.%d", i), []byte("x"), forever)
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	for range 8 {
		kv := client(t, s)
		wg.Go(func() {
			n := 0
			for _, err := range kv.Keys(t.Context(), "mine.") {
				if err != nil {
					t.Error(err)
					return
				}
				n++
			}
			if n != keys {
				t.Errorf("%d keys of %d", n, keys)
			}
		})
	}
	wg.Wait()
}
