package repair_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// BenchmarkVerify compares a pass with a plain SCAN and MGET of the same records: one membership and one ranked index,
// records of 220 bytes.
func BenchmarkVerify(b *testing.B) {
	for _, n := range []int{20_000, 100_000} {
		s := redistest.Redis(b)
		rdb := s.Client(b)
		ctx := context.Background()
		c, err := index.Open(ctx, rdb, define(index.Forever, membership.New("color", func(i item) string { return i.Color }),
			ranked.New("weight", func(i item) float64 { return i.Weight })))
		require.NoError(b, err)
		recs := make([]item, n)
		for i := range recs {
			recs[i] = numbered(i)
			recs[i].Note = "0123456789012345678901234567890123456789012345678901234567890123456789"
		}
		_, err = c.PutMany(ctx, recs)
		require.NoError(b, err)
		name := map[int]string{20_000: "20k", 100_000: "100k"}[n]
		b.Run(name, func(b *testing.B) {
			var plain, pass time.Duration
			for range b.N {
				begin := time.Now()
				read := 0
				var cursor uint64
				for {
					keys, next, err := rdb.Scan(ctx, cursor, "acme:item:*", 1000).Result()
					require.NoError(b, err)
					if len(keys) > 0 {
						values, err := rdb.MGet(ctx, keys...).Result()
						require.NoError(b, err)
						read += len(values)
					}
					if cursor = next; cursor == 0 {
						break
					}
				}
				require.Greater(b, read, n)
				plain += time.Since(begin)
				begin = time.Now()
				rep, err := repair.Verify(ctx, c, repair.Options{})
				require.NoError(b, err)
				require.Zero(b, rep.ExitCode())
				pass += time.Since(begin)
			}
			per := func(d time.Duration) float64 { return float64(n*b.N) / d.Seconds() }
			b.ReportMetric(per(pass), "records/s")
			b.ReportMetric(per(plain), "plain/s")
			b.ReportMetric(per(pass)/per(plain), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkSweep collects a thousand expired records beside live ones: what it costs follows the expired, not all.
func BenchmarkSweep(b *testing.B) {
	for _, live := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(live), func(b *testing.B) {
			s := redistest.Redis(b)
			rdb := s.Client(b)
			ctx := context.Background()
			c, err := index.Open(ctx, rdb, define(time.Hour, byColor, byWeight))
			require.NoError(b, err)
			put := func(from, n int) {
				for i := 0; i < n; i += 1000 {
					recs := make([]item, min(1000, n-i))
					for j := range recs {
						recs[j] = numbered(from + i + j)
					}
					_, err := c.PutMany(ctx, recs)
					require.NoError(b, err)
				}
			}
			put(0, live)
			const expired = 1000
			trips := redistest.Count(rdb)
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				for i := range expired {
					require.NoError(b, c.Put(ctx, numbered(10_000_000+i), index.Lives(time.Hour)))
				}
				for i := range expired { // due at once, so that no write collects some of them
					exec(b, rdb, "pexpire", record(numbered(10_000_000+i).ID), "1")
					exec(b, rdb, "zadd", prefix+"~~expiry:v1", "1", numbered(10_000_000+i).ID)
				}
				require.Eventually(b, func() bool {
					return rdb.Exists(ctx, record(numbered(10_000_000).ID), record(numbered(10_000_000+expired-1).ID)).Val() == 0
				}, 5*time.Second, time.Millisecond)
				trips.Reset()
				b.StartTimer()
				rep, err := repair.Sweep(ctx, c, repair.Options{})
				require.NoError(b, err)
				require.EqualValues(b, expired, rep.Records)
			}
			b.ReportMetric(float64(trips.Trips()), "trips")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/sweep")
		})
	}
}
