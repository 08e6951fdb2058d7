package redistest

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

const (
	longWait = 10 * time.Second
	tick     = 5 * time.Millisecond
)

func TestEachServerAnswersAndIsEmpty(t *testing.T) {
	var names []string
	Each(t, func(t *testing.T, s *Server) {
		names = append(names, s.Name)
		require.Equal(t, "redis://"+s.Addr, s.URL())
		require.Equal(t, s.Name == NameMini, s.Mini != nil)
		rdb := s.Client(t)
		_, isCluster := rdb.(*redis.ClusterClient)
		require.Equal(t, s.Name == NameCluster, isCluster)

		ctx := t.Context()
		require.Empty(t, s.Keys(t))
		for _, key := range []string{"c", "a", "b"} {
			require.NoError(t, rdb.Set(ctx, key, "x", 0).Err())
		}
		require.Equal(t, []string{"a", "b", "c"}, s.Keys(t))
		s.Flush(t)
		require.Empty(t, s.Keys(t))
	})
	require.Equal(t, []string{NameMini, NameRedis, NameCluster}, names)
}

func TestClientOptionsReachTheClient(t *testing.T) {
	s := Redis(t)
	rdb := s.Client(t, func(o *redis.UniversalOptions) { o.ClientName = "probe" })
	require.Equal(t, "probe", rdb.ClientGetName(t.Context()).Val())
}

func TestClusterRefusesKeysOfTwoSlots(t *testing.T) {
	rdb := Cluster(t).Client(t)
	// Past the client, which would split the command by itself.
	err := rdb.(*redis.ClusterClient).ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, "mset", "a", "1", "b", "2").Err()
	})
	require.ErrorContains(t, err, "CROSSSLOT")
	require.NoError(t, rdb.MSet(t.Context(), "{x}a", "1", "{x}b", "2").Err())
}

func TestArgumentsOverrideTheDefaults(t *testing.T) {
	s := Redis(t, "--maxmemory", "100mb", "--appendonly", "yes")
	rdb := s.Client(t)
	require.Equal(t, map[string]string{"maxmemory": "104857600"}, rdb.ConfigGet(t.Context(), "maxmemory").Val())
	require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())
	require.NoError(t, rdb.ConfigSet(t.Context(), "appendfsync", "always").Err())
	require.NoError(t, rdb.Set(t.Context(), "k", "w", 0).Err())

	s.Restart(t) // same directory, so the log is read again
	require.Equal(t, "w", rdb.Get(t.Context(), "k").Val())
}

func TestAServerCanBeKilledAndComesBackAtItsAddress(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		rdb := s.Client(t)
		require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())
		s.Kill()
		require.Error(t, rdb.Get(t.Context(), "k").Err())
		s.Kill() // harmless

		addr := s.Addr
		s.Restart(t)
		require.Equal(t, addr, s.Addr)
		require.NoError(t, rdb.Set(t.Context(), "k2", "v", 0).Err())
		if s.Mini != nil {
			// miniredis keeps its data, a process without persistence does not.
			require.Equal(t, []string{"k", "k2"}, s.Keys(t))
		} else {
			require.Equal(t, []string{"k2"}, s.Keys(t))
		}
	})
}

func TestAFrozenServerAnswersAfterContinue(t *testing.T) {
	s := Redis(t)
	rdb := s.Client(t, func(o *redis.UniversalOptions) { o.MaxRetries = -1 })
	require.NoError(t, rdb.Ping(t.Context()).Err())

	s.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, rdb.Set(ctx, "k", "late", 0).Err())
	s.Continue(t)
	// The request was in the socket, and is applied after its caller gave up.
	require.Eventually(t, func() bool { return rdb.Get(t.Context(), "k").Val() == "late" }, longWait, tick)

	out := record(t, func(tb testing.TB) { Mini(tb).Stop(tb) })
	require.Contains(t, out.text, "a miniredis cannot be frozen")
}

func TestAReplicaHasThePrimarysDataAndFollowsIt(t *testing.T) {
	p := Redis(t)
	require.NoError(t, p.Client(t).Set(t.Context(), "k", "v", 0).Err())
	r := Replica(t, p).Client(t)
	require.Equal(t, "v", r.Get(t.Context(), "k").Val())
	require.NoError(t, p.Client(t).Set(t.Context(), "k", "w", 0).Err())
	require.Eventually(t, func() bool { return r.Get(t.Context(), "k").Val() == "w" }, longWait, tick)
	require.ErrorContains(t, r.Set(t.Context(), "k", "x", 0).Err(), "READONLY")

	out := record(t, func(tb testing.TB) { Replica(tb, Mini(tb)) })
	require.True(t, out.failed)
}

func TestMemcachedAnswersAndRestarts(t *testing.T) {
	s := Memcached(t)
	require.Equal(t, "memcached://"+s.Addr, s.URL())
	version := func() string {
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("version\r\n"))
		require.NoError(t, err)
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		return line
	}
	require.Contains(t, version(), "VERSION")
	s.Restart(t)
	require.Contains(t, version(), "VERSION")
}

func TestAServerThatCannotStartShowsWhy(t *testing.T) {
	out := record(t, func(tb testing.TB) { Redis(tb, "--no-such-option", "1") })
	require.True(t, out.failed)
	require.Contains(t, out.text, "no-such-option")
	require.Contains(t, out.text, "FATAL CONFIG FILE ERROR", "the server's own words")
}

func TestACrashIsReportedWithTheServersOutput(t *testing.T) {
	s := Redis(t)
	s.proc.mu.Lock()
	c := s.proc.child
	s.proc.mu.Unlock()
	require.NoError(t, c.cmd.Process.Kill()) // behind the server's back
	<-c.done
	crash := s.proc.kill()
	require.Contains(t, crash, "signal: killed")
	require.Contains(t, crash, "Ready to accept connections")
}

func TestAPortLostToSomebodyElseIsNoticed(t *testing.T) {
	other := Redis(t)
	plain, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer plain.Close()
	for name, addr := range map[string]string{"a redis-server": other.Addr, "a silent listener": plain.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			_, port, err := net.SplitHostPort(addr)
			require.NoError(t, err)
			dir := t.TempDir()
			p := &process{
				path: lookPath(t, "redis-server"), addr: addr, dir: dir, args: redisArgs(port, dir), probe: probeRedis,
			}
			require.ErrorIs(t, p.start(), errPortTaken)
			require.Nil(t, p.child)
		})
	}
}

func TestAMissingServerFailsInCIAndIsSkippedAloudElsewhere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())

	t.Setenv("CI", "true")
	out := record(t, func(tb testing.TB) { Redis(tb) })
	require.True(t, out.failed)
	require.Contains(t, out.text, "apt-get install redis-server")

	t.Setenv("CI", "")
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer stderr.Close()
	stdErr := os.Stderr
	os.Stderr = stderr
	out = record(t, func(tb testing.TB) { Redis(tb) })
	os.Stderr = stdErr
	require.True(t, out.skipped)
	require.False(t, out.failed)
	require.Contains(t, out.text, "apt-get install redis-server")
	said, err := os.ReadFile(stderr.Name())
	require.NoError(t, err)
	require.Contains(t, string(said), "SKIPPED: "+t.Name())
}

// holdServer, when set, makes the test binary start a server, print its
// address and wait to be killed.
const holdServer = "REDISTEST_HOLD_SERVER"

func TestHoldServer(t *testing.T) {
	if os.Getenv(holdServer) == "" {
		t.Skip("only for TestAServerDiesWithItsTestProcess")
	}
	s := Redis(t)
	_, err := os.Stdout.WriteString("addr " + s.Addr + "\n")
	require.NoError(t, err)
	_, _ = os.Stdin.Read(make([]byte, 1)) // ends with the parent at the latest
}

func TestAServerDiesWithItsTestProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child to its parent")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^TestHoldServer$")
	cmd.Env = append(os.Environ(), holdServer+"=1", "TMPDIR="+t.TempDir())
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var addr string
	for lines := bufio.NewScanner(stdout); addr == "" && lines.Scan(); {
		if a, ok := strings.CutPrefix(lines.Text(), "addr "); ok {
			addr = a
		}
	}
	require.NotEmpty(t, addr)
	_, err = probeRedis(addr)
	require.NoError(t, err)

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // reports the kill
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, longWait, tick)
}
