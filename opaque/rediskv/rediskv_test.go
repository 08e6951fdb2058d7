package rediskv_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/opaquetest"
	"github.com/lockstep-go/lockstep/opaque/rediskv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRedisKeepsTheContract(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(t testing.TB) *redistest.Server
	}{
		{"redis", func(t testing.TB) *redistest.Server { return redistest.Redis(t) }},
		{"redis that keeps its data", func(t testing.TB) *redistest.Server {
			return redistest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
		}},
		{"cluster", func(t testing.TB) *redistest.Server { return redistest.Cluster(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.start(t)
			opaquetest.Conformance(t, opaquetest.Harness{Open: func(t testing.TB) opaquetest.Target {
				s.Flush(t)
				return opaquetest.Target{
					KV:      rediskv.New(s.Client(t)),
					Second:  func(t testing.TB) opaque.KV { return rediskv.New(s.Client(t)) },
					Restart: func(t testing.TB) { s.Restart(t) },
				}
			}})
		})
	}
}
