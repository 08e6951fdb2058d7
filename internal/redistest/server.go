package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The values of Server.Name.
const (
	NameMini      = "miniredis"
	NameRedis     = "redis"
	NameCluster   = "cluster"
	NameMemcached = "memcached"
)

// Server is a running server that belongs to one test. Its methods are safe
// for concurrent use, except that Restart must not overlap with itself.
type Server struct {
	// Name is the kind of server: "miniredis", "redis", "cluster" or
	// "memcached".
	Name string
	// Addr is host:port. It stays the same over Restart.
	Addr string
	// Mini is the miniredis behind this server, nil on every other kind.
	Mini *miniredis.Miniredis

	proc *process
	// settle, if set, waits until a fresh child serves its clients.
	settle func() error
}

// Mini runs a miniredis inside the test process.
func Mini(t testing.TB) *Server {
	t.Helper()
	m := miniredis.RunT(t)
	return &Server{Name: NameMini, Addr: m.Addr(), Mini: m}
}

// Redis runs a redis-server child process on a free port of the loopback
// interface, without persistence, in a directory of its own. It takes well
// under 100 ms. args come after the defaults and override them
// ("--appendonly", "yes"); the port is not theirs to choose.
//
// The child is killed when the test ends, and on Linux also when the test
// process dies. A child that crashed fails the test and shows its output.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	return redisServer(t, NameRedis, func(port, dir string) []string {
		return append(redisArgs(port, dir), args...)
	})
}

func redisArgs(port, dir string) []string {
	return []string{
		"--port", port, "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
	}
}

func redisServer(t testing.TB, name string, args func(port, dir string) []string) *Server {
	t.Helper()
	p := launch(t, "redis-server", args, probeRedis)
	return &Server{Name: name, Addr: p.addr, proc: p}
}

// Replica runs a redis-server that follows primary, a server made by [Redis],
// and returns once it has the primary's data. What is written later arrives
// asynchronously, as in production.
func Replica(t testing.TB, primary *Server) *Server {
	t.Helper()
	if primary.Name != NameRedis {
		t.Fatalf("redistest: a %s has no replica here", primary.Name)
	}
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s := Redis(t, "--replicaof", host, port)
	s.settle = func() error {
		return infoSays(s, "replication", "master_link_status:up")
	}
	if err := s.settle(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return s
}

// infoSays waits until a section of INFO holds a line that begins with want.
func infoSays(s *Server, section, want string) error {
	var info string
	var err error
	ok := poll(startBudget, func() bool {
		info, err = rawCommand(s.Addr, "INFO "+section)
		return err == nil && strings.Contains(info, want)
	})
	if !ok {
		return fmt.Errorf("%s at %s never said %s: %w\n%s", s.Name, s.Addr, want, err, info)
	}
	return nil
}

// URL returns the address in the form that redis.ParseURL and, for a cluster,
// redis.ParseClusterURL read.
func (s *Server) URL() string {
	if s.Name == NameMemcached {
		return "memcached://" + s.Addr
	}
	return "redis://" + s.Addr
}

// Client returns a fresh client, a *redis.ClusterClient for a cluster and a
// *redis.Client otherwise, closed when the test ends. It honours the deadline
// of a context, times out after 5 s without one, backs off by milliseconds and
// sends nothing of its own accord but HELLO. mod changes its options.
func (s *Server) Client(t testing.TB, mod ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	if s.Name == NameMemcached {
		t.Fatal("redistest: memcached has no Redis client")
	}
	rdb := s.client(mod...)
	t.Cleanup(func() { _ = rdb.Close() }) // the test may have closed it already
	return rdb
}

func (s *Server) client(mod ...func(*redis.UniversalOptions)) redis.UniversalClient {
	opts := &redis.UniversalOptions{
		Addrs:                    []string{s.Addr},
		IsClusterMode:            s.Name == NameCluster,
		DialTimeout:              2 * time.Second,
		ReadTimeout:              5 * time.Second,
		WriteTimeout:             5 * time.Second,
		DialerRetries:            1,
		DialerRetryTimeout:       time.Millisecond,
		MinRetryBackoff:          time.Millisecond,
		MaxRetryBackoff:          20 * time.Millisecond,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, m := range mod {
		m(opts)
	}
	return redis.NewUniversalClient(opts)
}

// Keys returns every key on the server, sorted, expired ones left out as SCAN
// leaves them out. It works in a t.Cleanup too.
func (s *Server) Keys(t testing.TB) []string {
	t.Helper()
	rdb := s.client()
	defer rdb.Close()
	keys, err := allKeys(context.WithoutCancel(t.Context()), rdb)
	if err != nil {
		t.Fatalf("redistest: keys: %v", err)
	}
	return keys
}

// Flush removes every key. Cached scripts and settings stay.
func (s *Server) Flush(t testing.TB) {
	t.Helper()
	rdb := s.client()
	defer rdb.Close()
	err := eachMaster(context.WithoutCancel(t.Context()), rdb, func(ctx context.Context, node redis.Cmdable) error {
		return node.FlushAll(ctx).Err()
	})
	if err != nil {
		t.Fatalf("redistest: flush: %v", err)
	}
}

// Kill ends the server at once, as a crash would: SIGKILL for a process, its
// connections cut for miniredis. What the server had not persisted is lost,
// except that a miniredis keeps its data. Kill of a dead server does nothing.
func (s *Server) Kill() {
	if s.Mini != nil {
		s.Mini.Close()
		return
	}
	s.proc.kill()
}

// Restart kills the server if it runs and starts it again at the same address,
// in the same directory, with the same arguments; it returns once the server
// answers. A cluster takes two seconds, because Redis lets a restarted master
// wait that long before it serves.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	var err error
	if s.Mini != nil {
		err = s.Mini.Restart()
	} else {
		err = s.proc.restart()
	}
	if err == nil && s.settle != nil {
		err = s.settle()
	}
	if err != nil {
		t.Fatalf("redistest: restart: %v", err)
	}
}

// Stop freezes the server (SIGSTOP): connections stay open and the kernel
// still accepts new ones, but nothing is answered until Continue. It fails the
// test on miniredis.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.proc == nil {
		t.Fatalf("redistest: a %s cannot be frozen", s.Name)
	}
	if err := s.proc.signal(pause); err != nil {
		t.Fatalf("redistest: stop: %v", err)
	}
}

// Continue wakes a server frozen by Stop (SIGCONT), which then answers what
// its sockets have collected. It fails the test on miniredis.
func (s *Server) Continue(t testing.TB) {
	t.Helper()
	if s.proc == nil {
		t.Fatalf("redistest: a %s cannot be frozen", s.Name)
	}
	if err := s.proc.signal(resume); err != nil {
		t.Fatalf("redistest: continue: %v", err)
	}
}

// probeRedis returns the process id of the server at addr, 0 if the server
// wants a password first.
func probeRedis(addr string) (int, error) {
	pong, err := rawCommand(addr, "PING")
	if err != nil {
		return 0, err
	}
	if strings.HasPrefix(pong, "-NOAUTH") {
		return 0, nil
	}
	if pong != "+PONG" {
		return 0, errors.New(pong)
	}
	info, err := rawCommand(addr, "INFO server")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(info, "process_id:")
	id, _, _ := strings.Cut(after, "\r\n")
	return strconv.Atoi(id)
}

// rawCommand sends one command over a connection of its own. It returns a
// simple reply with its type byte and a bulk reply as it is. A client would
// retry on its own here and hide when the server came up.
func rawCommand(addr, command string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	size, isBulk := strings.CutPrefix(line, "$")
	if !isBulk {
		return line, nil
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return "", fmt.Errorf("unexpected reply %q", line)
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return string(body), err
}

// eachMaster runs fn on every server that holds keys, one after the other.
func eachMaster(
	ctx context.Context, rdb redis.UniversalClient, fn func(ctx context.Context, node redis.Cmdable) error,
) error {
	cluster, ok := rdb.(interface {
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	})
	if !ok {
		return fn(ctx, rdb)
	}
	var mu sync.Mutex
	return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		return fn(ctx, node)
	})
}

// allKeys returns every key of every master, sorted and each once.
func allKeys(ctx context.Context, rdb redis.UniversalClient) ([]string, error) {
	var keys []string
	err := eachMaster(ctx, rdb, func(ctx context.Context, node redis.Cmdable) error {
		it := node.Scan(ctx, 0, "*", 1000).Iterator()
		for it.Next(ctx) {
			keys = append(keys, it.Val())
		}
		return it.Err()
	})
	slices.Sort(keys)
	return slices.Compact(keys), err
}
