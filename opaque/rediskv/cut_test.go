package rediskv_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/rediskv"
)

// cutConn cuts the reply to a request that holds a word.
type cutConn struct {
	net.Conn
	word *atomic.Pointer[string]
	sent *atomic.Int64
	cut  atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if word := c.word.Load(); word != nil && bytes.Contains(bytes.ToLower(b), []byte(*word)) {
		c.sent.Add(1)
		c.cut.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	if c.cut.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

func TestAWriteWhoseReplyIsLostIsUnknownAndNotSentAgain(t *testing.T) {
	s := redistest.Redis(t)
	ctx := t.Context()
	var word atomic.Pointer[string]
	var sent atomic.Int64
	rdb := s.Client(t, func(o *redis.UniversalOptions) {
		o.MaxRetries = 3
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &cutConn{Conn: conn, word: &word, sent: &sent}, err
		}
	})
	kv := rediskv.New(rdb)
	cut := func(w string, fn func() error) {
		t.Helper()
		sent.Store(0)
		word.Store(&w)
		require.ErrorIs(t, fn(), opaque.ErrUnknown)
		word.Store(nil)
		require.EqualValues(t, 1, sent.Load(), w)
	}
	token := func(want string) (out opaque.Token) {
		require.Eventually(t, func() bool {
			item, err := kv.Get(ctx, "k")
			out = item.Token
			return err == nil && string(item.Value) == want
		}, 15*time.Second, 5*time.Millisecond)
		return out
	}
	var forever time.Time
	cut("\r\nset\r\n", func() error { _, err := kv.Add(ctx, "k", []byte("a"), forever); return err })
	first := token("a")
	cut("exec", func() error { _, err := kv.Swap(ctx, "k", []byte("b"), forever, first); return err })
	second := token("b")
	require.ErrorIs(t, kv.Delete(ctx, "k", first), opaque.ErrChanged)
	cut("exec", func() error { return kv.Delete(ctx, "k", second) })
	require.Eventually(t, func() bool { _, err := kv.Get(ctx, "k"); return err != nil }, 15*time.Second, 5*time.Millisecond)
}
