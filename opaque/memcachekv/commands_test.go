package memcachekv_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memcachekv"
)

// recorder notes the first line of every request.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &recordedConn{conn, r}, err
}

type recordedConn struct {
	net.Conn
	r *recorder
}

func (c *recordedConn) Write(b []byte) (int, error) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	for rest := b; len(rest) > 0; {
		line, after, _ := bytes.Cut(rest, []byte("\r\n"))
		c.r.lines = append(c.r.lines, string(line))
		words := strings.Fields(string(line))
		// A value follows: its size is the third word of the meta form, the fifth of the classic one.
		size := -1
		switch {
		case words[0] == "ms":
			size, _ = strconv.Atoi(words[2])
		case slices.Contains([]string{"set", "add", "replace", "append", "prepend", "cas"}, words[0]):
			size, _ = strconv.Atoi(words[4])
		}
		if size >= 0 {
			after = after[min(len(after), size+2):]
		}
		rest = after
	}
	return c.Conn.Write(b)
}

type account struct{ ID, Status, Email string }

// What moves a token without naming one, moves none, or makes an item out of nothing is never sent: blind writes, touches and
// vivifying reads. Every lifetime is an instant, as a span of over 30 days would be taken for one.
func TestNoCommandIsSentThatATokenCannotGuard(t *testing.T) {
	s := redistest.Memcached(t)
	var r recorder
	kv := memcachekv.New(s.Addr, memcachekv.Options{Dial: r.dial})
	t.Cleanup(func() { require.NoError(t, kv.Close()) })
	byStatus := membership.New("status", func(a account) string { return a.Status })
	e := index.Define("acme", "account", index.Options[account]{
		ID: func(a account) string { return a.ID }, Version: 1, Lifetime: 40 * 24 * time.Hour,
		Indexes: []index.Index[account]{
			byStatus,
			membership.Unique("email", func(a account) (string, bool) { return a.Email, a.Email != "" }),
		},
	})
	ctx := t.Context()
	c, err := opaque.Open(ctx, kv, e, opaque.Options{IDBuckets: 2})
	require.NoError(t, err)
	for n := range 6 {
		a := account{ID: fmt.Sprint(n), Status: "a", Email: fmt.Sprint("e", n)}
		require.NoError(t, c.Create(ctx, a))
		a.Status = "b"
		require.NoError(t, c.Put(ctx, a))
		_, err := c.Update(ctx, a.ID, func(a *account) error { a.Email = ""; return nil })
		require.NoError(t, err)
		if n%2 == 0 {
			require.NoError(t, c.Delete(ctx, a.ID))
		}
	}
	for _, err := range c.Find(ctx, byStatus.Is("b")) {
		require.NoError(t, err)
	}
	_, err = c.Run(ctx, opaque.RunOptions{})
	require.NoError(t, err)

	verbs := map[string]int{}
	for _, line := range r.lines {
		words := strings.Fields(line)
		verbs[words[0]]++
		switch words[0] {
		case "stats", "lru_crawler": // what they read moves nothing
		case "mg":
			for _, flag := range words[2:] {
				require.NotContains(t, "NTR", flag[:1], "%s", line)
			}
		case "md":
			require.Contains(t, line, " C", "%s", line)
		case "ms":
			require.Contains(t, words[3:], "ME", "an add: %s", line)
		case "cas":
			require.Len(t, words, 6, "%s", line)
		default:
			require.Fail(t, "a command that no token guards", "%s", line)
		}
		lifetime := ""
		if words[0] == "cas" {
			lifetime = words[3]
		}
		for _, flag := range words[1:] {
			if words[0] == "ms" && flag[0] == 'T' {
				lifetime = flag[1:]
			}
		}
		if seconds, err := strconv.ParseInt(lifetime, 10, 64); err == nil && seconds != 0 {
			require.Greater(t, seconds, time.Now().Unix(), "%s", line)
		}
	}
	require.Greater(t, verbs["cas"], 10)
	require.Greater(t, verbs["ms"], 10)
	require.Positive(t, verbs["md"])
}
