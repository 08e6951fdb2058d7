package index_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

// TestACollectionWithAStaleRowCacheLeavesNothingBehind lets two collections, as two processes have them, change the same
// records in turns: each remembers entries that are no longer true.
func TestACollectionWithAStaleRowCacheLeavesNothingBehind(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		a, rdb := open(t, s, items)
		b, _ := open(t, s, items)
		for round := range 4 {
			for i, c := range []*index.Collection[item]{a, b, b, a} {
				rec := item{ID: "x", Color: fmt.Sprint("c", round, i), Code: fmt.Sprint("k", i), Tags: []string{fmt.Sprint("t", i), "t"}}
				require.NoError(t, c.Put(ctx, rec))
				verify(t, rdb)
			}
			require.NoError(t, []*index.Collection[item]{a, b}[round%2].Delete(ctx, "x"))
			verify(t, rdb)
		}
		require.NoError(t, b.Put(ctx, item{ID: "y", Color: "red", Code: "k"}))
		require.NoError(t, a.Put(ctx, item{ID: "y", Color: "red"}))
		require.NoError(t, b.Put(ctx, item{ID: "z", Color: "red", Code: "k"}), "the value is free, whoever was remembered to hold it")
		require.ErrorIs(t, a.Put(ctx, item{ID: "y", Color: "red", Code: "k"}), index.ErrConflict)
		verify(t, rdb)
	})
}

// TestAForeignValueAtAKeyThatOnlyTheRowCacheNamesStopsNoWrite puts something else where a record has not been for a while.
func TestAForeignValueAtAKeyThatOnlyTheRowCacheNamesStopsNoWrite(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		a, rdb := open(t, s, items)
		b, _ := open(t, s, items)
		const red, green = "acme:item:{item}:~color.1:red:v1", "acme:item:{item}:~color.1:green:v1"
		require.NoError(t, a.Put(ctx, item{ID: "x", Color: "red"}))
		require.NoError(t, b.Put(ctx, item{ID: "x", Color: "blue"}))
		require.NoError(t, rdb.Set(ctx, red, "foreign", 0).Err())
		require.NoError(t, a.Put(ctx, item{ID: "x", Color: "white"}))
		n, err := a.Count(ctx, byColor.Is("white"))
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		require.Equal(t, "foreign", rdb.Get(ctx, red).Val())

		// One that the write does need stops it, whatever is remembered.
		require.NoError(t, rdb.Set(ctx, green, "foreign", 0).Err())
		require.ErrorIs(t, a.Put(ctx, item{ID: "x", Color: "green"}), index.ErrKeyType)
		require.ErrorIs(t, a.Put(ctx, item{ID: "x", Color: "green"}), index.ErrKeyType)
		require.NoError(t, rdb.Del(ctx, red, green).Err())
		verify(t, rdb)
	})
}

// TestWritersWithAndWithoutARowCacheKeepTheIndexesExact lets collections that remember everything, little and nothing write
// the same few records at once.
func TestWritersWithAndWithoutARowCacheKeepTheIndexesExact(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		rdb := s.Client(t)
		rounds := s.Size(400, 100)
		var wg sync.WaitGroup
		for n, bytes := range []int{0, 200, -1, 0} {
			c, err := index.Open(ctx, rdb, items, index.OpenOptions{RowCacheBytes: bytes})
			require.NoError(t, err)
			for w := range 2 {
				random := rand.New(rand.NewPCG(uint64(n), uint64(w)))
				wg.Go(func() {
					for range rounds {
						id := fmt.Sprint("i", random.IntN(6))
						rec := item{ID: id, Color: fmt.Sprint("c", random.IntN(4)), Tags: []string{fmt.Sprint("t", random.IntN(5))}}
						var err error
						switch random.IntN(6) {
						case 0:
							err = c.Delete(ctx, id)
						case 1:
							_, err = c.PutMany(ctx, []item{rec, {ID: "other", Color: rec.Color}})
						default:
							err = c.Put(ctx, rec)
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		verify(t, rdb)
	})
}
