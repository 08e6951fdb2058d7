package memkv_test

import (
	"sync"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memkv"
	"github.com/lockstep-go/lockstep/opaque/opaquetest"
)

func TestTheStoreInMemoryKeepsTheContract(t *testing.T) {
	for name, o := range map[string]memkv.Options{
		"redis":     {Keys: key.Redis},
		"memcached": {Keys: key.Memcached, MaxValue: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			opaquetest.Conformance(t, opaquetest.Harness{Open: func(testing.TB) opaquetest.Target {
				var mu sync.Mutex
				now := time.Now()
				o.Now = func() time.Time {
					mu.Lock()
					defer mu.Unlock()
					return now
				}
				s := memkv.New(o)
				return opaquetest.Target{
					KV:      s,
					Second:  func(testing.TB) opaque.KV { return s },
					Restart: func(testing.TB) { s.Restart() },
					Advance: func(d time.Duration) {
						mu.Lock()
						defer mu.Unlock()
						now = now.Add(d)
					},
				}
			}})
		})
	}
}
