package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Memcached runs a memcached child process on a free port of the loopback
// interface. Of the server only Name, Addr, URL, Kill, Restart, Stop and
// Continue are of use. args come after the defaults and override them.
func Memcached(t testing.TB, args ...string) *Server {
	t.Helper()
	p := launch(t, "memcached", func(port, _ string) []string {
		all := []string{"-l", "127.0.0.1", "-p", port, "-U", "0"}
		if os.Geteuid() == 0 {
			all = append(all, "-u", "root") // it refuses to run as root unless told so
		}
		return append(all, args...)
	}, probeMemcached)
	return &Server{Name: NameMemcached, Addr: p.addr, proc: p}
}

// probeMemcached returns the process id of the server at addr.
func probeMemcached(addr string) (int, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(conn, "stats\r\nquit\r\n"); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if pid, ok := strings.CutPrefix(lines.Text(), "STAT pid "); ok {
			return strconv.Atoi(pid)
		}
	}
	return 0, errors.Join(errors.New("no pid in the answer to stats"), lines.Err())
}
