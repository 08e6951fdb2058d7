package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

// BenchmarkPutWithALifetime compares the server's time of one Put without a lifetime with that of one for an hour, and of one
// for 20 ms, where each Put meets a record that has expired and collects it. One caller; the sides take turns; medians.
func BenchmarkPutWithALifetime(b *testing.B) {
	s := redistest.Redis(b)
	rdb := s.Client(b)
	ctx := context.Background()
	sides := []struct {
		name string
		life time.Duration
	}{{"forever", index.Forever}, {"hour", time.Hour}, {"churn", 20 * time.Millisecond}}
	worlds := make([]*World, len(sides))
	for i, side := range sides {
		var err error
		worlds[i], err = Open(ctx, rdb, fmt.Sprintf("acme:%s", side.name), 2000)
		require.NoError(b, err)
	}
	for range b.N {
		micros := make([][]float64, len(sides))
		for range 7 {
			for i, side := range sides {
				w := worlds[i]
				c := Case{Callers: 1}
				t, err := w.turn(ctx, c, func(ctx context.Context) (int, error) {
					return 1, w.items.Put(ctx, w.fresh(1)[0], index.Lives(side.life))
				}, 300*time.Millisecond)
				require.NoError(b, err)
				micros[i] = append(micros[i], t.micros)
			}
		}
		for i := range micros {
			slices.Sort(micros[i])
		}
		median := func(i int) float64 { return micros[i][len(micros[i])/2] }
		b.ReportMetric(median(0), "forever-us")
		b.ReportMetric(median(1)/median(0), "hour-ratio")
		b.ReportMetric(median(2)/median(0), "churn-ratio")
		b.ReportMetric(0, "ns/op")
	}
}
