package redistest

import "testing"

// Each runs fn as the subtests "miniredis", "redis" and "cluster", every one
// on a fresh, empty server.
//
// Without a redis-server binary the last two fail when CI=true, and are
// skipped elsewhere, with the reason on stderr.
func Each(t *testing.T, fn func(t *testing.T, s *Server)) {
	t.Helper()
	onEach(t, func(t *testing.T, start func() *Server) { fn(t, start()) })
}

// EachAtOnce runs fn as Each does, with the three servers at the same time: for
// tests that mostly wait, or that go on for a certain time.
func EachAtOnce(t *testing.T, fn func(t *testing.T, s *Server)) {
	t.Helper()
	onEach(t, func(t *testing.T, start func() *Server) {
		t.Parallel()
		fn(t, start())
	})
}

func onEach(t *testing.T, run func(t *testing.T, start func() *Server)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { run(t, func() *Server { return Mini(t) }) })
	t.Run("redis", func(t *testing.T) { run(t, func() *Server { return Redis(t) }) })
	t.Run("cluster", func(t *testing.T) { run(t, func() *Server { return Cluster(t) }) })
}
