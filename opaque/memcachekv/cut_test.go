package memcachekv_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memcachekv"
)

// cutter cuts the reply to the next request that holds a word.
type cutter struct {
	word atomic.Pointer[string]
	sent atomic.Int64 // requests with the word
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, c: c}, nil
}

type cutConn struct {
	net.Conn
	c   *cutter
	cut atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if word := c.c.word.Load(); word != nil && bytes.HasPrefix(b, []byte(*word)) {
		c.c.sent.Add(1)
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
	s := redistest.Memcached(t)
	ctx := t.Context()
	var c cutter
	kv := memcachekv.New(s.Addr, memcachekv.Options{Dial: c.dial})
	t.Cleanup(func() { require.NoError(t, kv.Close()) })
	cut := func(word string, fn func() error) {
		t.Helper()
		c.sent.Store(0)
		c.word.Store(&word)
		require.ErrorIs(t, fn(), opaque.ErrUnknown)
		c.word.Store(nil)
		require.EqualValues(t, 1, c.sent.Load())
	}
	value := func() string {
		item, err := kv.Get(ctx, "k")
		require.NoError(t, err)
		return string(item.Value)
	}
	cut("ms ", func() error { _, err := kv.Add(ctx, "k", []byte("a"), forever); return err })
	require.Eventually(t, func() bool { _, err := kv.Get(ctx, "k"); return err == nil }, patience, tick)
	require.Equal(t, "a", value())
	item, err := kv.Get(ctx, "k")
	require.NoError(t, err)
	cut("cas ", func() error { _, err := kv.Swap(ctx, "k", []byte("b"), forever, item.Token); return err })
	require.Eventually(t, func() bool { return value() == "b" }, patience, tick)
	require.ErrorIs(t, kv.Delete(ctx, "k", item.Token), opaque.ErrChanged)
	item, err = kv.Get(ctx, "k")
	require.NoError(t, err)
	cut("md ", func() error { return kv.Delete(ctx, "k", item.Token) })
	require.Eventually(t, func() bool { _, err := kv.Get(ctx, "k"); return err != nil }, patience, tick)
}

// Reads by other clients can plant an empty item where there is none ("vivify").
func TestAnEmptyItemThatAnotherClientPlantedHoldsNothing(t *testing.T) {
	s := redistest.Memcached(t)
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "mg k v N60\r\n")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	kv := client(t, s)
	_, err = kv.Get(t.Context(), "k")
	require.ErrorIs(t, err, opaque.ErrNotFound)
	_, err = kv.Add(t.Context(), "k", []byte("a"), forever)
	require.ErrorIs(t, err, opaque.ErrExists)
}

// Reading, and touching by other clients, leave the token alone; so a lifetime is no part of what a token protects.
func TestATouchDoesNotMoveTheToken(t *testing.T) {
	s := redistest.Memcached(t)
	kv := client(t, s)
	token, err := kv.Add(t.Context(), "k", []byte("a"), forever)
	require.NoError(t, err)
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "touch k 1000\r\n")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	_, err = kv.Swap(t.Context(), "k", []byte("b"), forever, token)
	require.NoError(t, err)
}
