package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// masterName is what the sentinels call the set.
const masterName = "main"

// SentinelSet is a primary, a replica and three sentinels that watch them, all child processes of the test.
type SentinelSet struct {
	// Nodes are the two servers; which of them is the primary changes.
	Nodes []*Server

	sentinels []*Server
}

// Sentinels runs a [SentinelSet] until the test ends. It is ready when every sentinel knows the replica and the others,
// which takes a few seconds.
func Sentinels(t testing.TB) *SentinelSet {
	t.Helper()
	primary := Redis(t)
	set := &SentinelSet{Nodes: []*Server{primary, Replica(t, primary)}}
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	for range 3 { // two agree on a primary that is gone
		set.sentinels = append(set.sentinels, redisServer(t, NameRedis, func(own, dir string) []string {
			conf := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\n"+
				"sentinel monitor %[3]s %[4]s %[5]s 2\nsentinel down-after-milliseconds %[3]s 500\n"+
				"sentinel failover-timeout %[3]s 2000\n", own, dir, masterName, host, port)
			file := filepath.Join(dir, "sentinel.conf")
			if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
				t.Fatalf("redistest: %v", err)
			}
			return []string{file, "--sentinel"}
		}))
	}
	set.Settled(t)
	return set
}

// Settled waits until every sentinel sees one primary that is up, one replica that follows it, and the two others.
func (s *SentinelSet) Settled(t testing.TB) {
	t.Helper()
	var last string
	ok := poll(startBudget*2, func() bool {
		for _, sentinel := range s.sentinels {
			info, err := rawArray(sentinel.Addr, "SENTINEL", "MASTER", masterName)
			if err != nil {
				last = err.Error()
				return false
			}
			last = fmt.Sprint(info)
			if info["flags"] != "master" || info["num-slaves"] != "1" || info["num-other-sentinels"] != "2" {
				return false
			}
			if net.JoinHostPort(info["ip"], info["port"]) != s.primaryAddr() {
				return false
			}
		}
		replica, err := rawCommand(s.replica().Addr, "INFO replication")
		return err == nil && strings.Contains(replica, "role:slave") && strings.Contains(replica, "master_link_status:up")
	})
	if !ok {
		t.Fatalf("redistest: the sentinels did not settle: %s", last)
	}
}

func (s *SentinelSet) primaryAddr() string {
	reply, err := rawArray(s.sentinels[0].Addr, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
	if err != nil {
		return ""
	}
	for host, port := range reply {
		return net.JoinHostPort(host, port)
	}
	return ""
}

// Primary is the server that the sentinels call the primary.
func (s *SentinelSet) Primary() *Server {
	addr := s.primaryAddr()
	for _, n := range s.Nodes {
		if n.Addr == addr {
			return n
		}
	}
	return s.Nodes[0]
}

func (s *SentinelSet) replica() *Server {
	if s.Primary() == s.Nodes[0] {
		return s.Nodes[1]
	}
	return s.Nodes[0]
}

// Failover makes the sentinels promote the replica while the primary still runs, and waits until they name it.
func (s *SentinelSet) Failover(t testing.TB) {
	t.Helper()
	old := s.primaryAddr()
	var last string
	ok := poll(startBudget, func() bool {
		if now := s.primaryAddr(); now != "" && now != old {
			return true
		}
		// Refused as long as another failover is on its way or the replica is not known well enough.
		last, _ = rawCommand(s.sentinels[0].Addr, "SENTINEL FAILOVER "+masterName)
		return false
	})
	if !ok {
		t.Fatalf("redistest: no failover: %s", last)
	}
}

// Client returns a client that asks the sentinels for the primary, with the options of [Server.Client].
func (s *SentinelSet) Client(t testing.TB) redis.UniversalClient {
	t.Helper()
	o := &redis.FailoverOptions{
		MasterName:            masterName,
		DialTimeout:           time.Second,
		ReadTimeout:           2 * time.Second,
		WriteTimeout:          2 * time.Second,
		DialerRetries:         1,
		DialerRetryTimeout:    time.Millisecond,
		MinRetryBackoff:       time.Millisecond,
		MaxRetryBackoff:       20 * time.Millisecond,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	}
	for _, sentinel := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, sentinel.Addr)
	}
	rdb := redis.NewFailoverClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// rawArray sends one command over a client of its own and returns its reply, names and values, as a map.
func rawArray(addr string, command ...any) (map[string]string, error) {
	rdb := (&Server{Name: NameRedis, Addr: addr}).client(func(o *redis.UniversalOptions) { o.Protocol, o.MaxRetries = 2, -1 })
	defer rdb.Close()
	cmd := redis.NewStringSliceCmd(context.Background(), command...)
	err := rdb.Process(context.Background(), cmd)
	out := map[string]string{}
	for i := 0; i+1 < len(cmd.Val()); i += 2 {
		out[cmd.Val()[i]] = cmd.Val()[i+1]
	}
	return out, err
}

// Await waits until the sentinels have replaced a primary that is gone.
func (s *SentinelSet) Await(t testing.TB, gone *Server) {
	t.Helper()
	if !poll(startBudget, func() bool { a := s.primaryAddr(); return a != "" && a != gone.Addr }) {
		t.Fatalf("redistest: the sentinels still name %s", gone.Addr)
	}
}
