package repair_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// TestAPassEndsWithItsContextWhateverTheServerIsSilentOn lets the server fall silent at each request of a pass in turn.
func TestAPassEndsWithItsContextWhateverTheServerIsSilentOn(t *testing.T) {
	s := redistest.Redis(t)
	p := redistest.NewProxy(t, s)
	best := ranked.New("best", func(i item) float64 { return i.Weight }, ranked.Keep(5), ranked.Slack(1))
	indexes := map[string][]index.Index[item]{"whole": {byColor, byWeight}, "bounded": {byColor, best}}
	for name, declared := range indexes {
		for kind, pass := range map[string]func(context.Context, index.Opened, repair.Options) (repair.Report, error){
			"verify": repair.Verify, "run": repair.Run,
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s.Flush(t)
				rdb := p.Client(t, func(o *redis.UniversalOptions) {
					o.ReadTimeout, o.PoolSize = 20*time.Second, 500 // calls that were left keep their connections for as long
				})
				c, err := index.Open(t.Context(), rdb, define(index.Forever, declared...))
				require.NoError(t, err)
				fill(t, c, 30)
				silent := 0
				for n := 1; ; n++ {
					require.Less(t, n, 100, "the passes do not end")
					p.Inject(nil, redistest.Every(n, 1, redistest.Fault{Kind: redistest.Swallow}))
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() {
						_, err := pass(ctx, c, repair.Options{})
						ended <- err
					}()
					var err error
					over := false
					require.Eventually(t, func() bool {
						select {
						case err = <-ended:
							over = true
						default:
						}
						_, struck := p.Seen()
						return over || struck > 0
					}, 10*time.Second, time.Millisecond)
					cancel()
					if !over {
						select {
						case err = <-ended:
						case <-time.After(5 * time.Second):
							require.FailNow(t, "it is kept", "request %d", n)
						}
					}
					_, struck := p.Seen()
					p.Inject(nil, nil)
					if struck == 0 {
						require.NoError(t, err)
						break
					}
					silent++
					require.ErrorIs(t, err, context.Canceled, "request %d", n)
				}
				require.Greater(t, silent, 4)
			})
		}
	}
}
