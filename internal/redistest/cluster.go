package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cluster runs a real Redis cluster of one node that serves all slots. It
// enforces what a bigger one enforces: CROSSSLOT, MOVED, one database. args
// come after the defaults, as in [Redis].
//
// A master that starts waits two seconds before it serves, whatever its
// settings. The node therefore starts as the replica of a master that does not
// exist and takes over from it, which makes a ready cluster in about 0.1 s.
func Cluster(t testing.TB, args ...string) *Server {
	t.Helper()
	// The ids are arbitrary; a node config names nodes by 40 hex digits.
	self, ghost := strings.Repeat("a", 40), strings.Repeat("b", 40)
	s := redisServer(t, NameCluster, func(port, dir string) []string {
		bus := freePort(t)
		conf := fmt.Sprintf("%s 127.0.0.1:%s@%s myself,slave %s 0 0 1 connected\n"+
			"%s 127.0.0.1:1@2 master - 0 0 1 connected 0-16383\n"+
			"vars currentEpoch 1 lastVoteEpoch 0\n", self, port, bus, ghost, ghost)
		if err := os.WriteFile(filepath.Join(dir, "nodes.conf"), []byte(conf), 0o600); err != nil {
			t.Fatalf("redistest: %v", err)
		}
		// The default bus port, ten thousand above the port, is out of range
		// for most free ports.
		return append(redisArgs(port, dir), append([]string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
			"--cluster-port", bus, "--cluster-announce-ip", "127.0.0.1",
		}, args...)...)
	})
	s.settle = func() error { return clusterOK(s) }
	for _, command := range []string{"CLUSTER FAILOVER TAKEOVER", "CLUSTER FORGET " + ghost} {
		reply, err := rawCommand(s.Addr, command)
		if err != nil || reply != "+OK" {
			t.Fatalf("redistest: %s: %s %v", command, reply, err)
		}
	}
	if err := s.settle(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return s
}

// clusterOK waits until the node serves all slots.
func clusterOK(s *Server) error {
	var info string
	var err error
	ok := poll(startBudget, func() bool {
		info, err = rawCommand(s.Addr, "CLUSTER INFO")
		return err == nil && strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, "cluster_slots_ok:16384")
	})
	if !ok {
		return fmt.Errorf("the cluster at %s is not ready: %w\n%s", s.Addr, err, info)
	}
	return nil
}
