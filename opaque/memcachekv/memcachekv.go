package memcachekv

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/opaque"
)

// Options tune a store. The zero value is good.
type Options struct {
	// Conns is how many connections are open at most, DefaultConns by default. A token keeps its holder on one of them.
	Conns int
	// Timeout bounds one exchange with the server, DefaultTimeout by default. A context may end it earlier.
	Timeout time.Duration
	// MaxItem is the item size of the server in bytes. By default the server is asked ("stats settings").
	MaxItem int
	// Dial opens a connection; a net.Dialer by default.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Defaults of Options.
const (
	DefaultConns   = 8
	DefaultTimeout = 2 * time.Second
)

const (
	nonceSize = 8
	// itemOverhead is more than an item needs beside its value: header, token, the longest key, the nonce.
	itemOverhead = 512
	// minLifetime is what memcached keeps: its clock ticks once a second, and a value of one second may be gone at once.
	minLifetime = 2 * time.Second
)

// Store is an opaque store on one memcached server. It is safe for concurrent use and has to be closed.
type Store struct {
	addr   string
	o      Options
	slots  []slot
	turn   atomic.Uint64
	serial atomic.Uint64
	closed atomic.Bool
	item   atomic.Int64 // item size of the server, 0 while unknown
}

// New makes a store of the server at addr (host:port). It connects with the first call. A negative option counts as its
// default.
func New(addr string, o ...Options) *Store {
	s := &Store{addr: addr}
	if len(o) > 0 {
		s.o = o[0]
	}
	if s.o.Conns <= 0 {
		s.o.Conns = DefaultConns
	}
	if s.o.Timeout <= 0 {
		s.o.Timeout = DefaultTimeout
	}
	if s.o.Dial == nil {
		s.o.Dial = new(net.Dialer).DialContext
	}
	s.item.Store(int64(max(0, s.o.MaxItem)))
	s.slots = make([]slot, s.o.Conns)
	for i := range s.slots {
		s.slots[i].lock = make(chan struct{}, 1)
	}
	return s
}

// Close closes all connections, each once its exchange is at its end. Later calls answer opaque.ErrUnavailable.
func (s *Store) Close() error {
	s.closed.Store(true)
	for i := range s.slots {
		s.slots[i].lock <- struct{}{}
		s.slots[i].close()
		s.slots[i].leave()
	}
	return nil
}

// token names a write: slot, serial of the connection, number of the server.
func newToken(n int, serial, cas uint64) opaque.Token {
	return opaque.Token(fmt.Sprintf("%d.%d.%d", n, serial, cas))
}

// parse takes a token apart. ErrNoToken for the empty one, ErrChanged for what this store never issued.
func (s *Store) parse(t opaque.Token) (n int, serial, cas uint64, err error) {
	if t == "" {
		return 0, 0, 0, opaque.ErrNoToken
	}
	words := strings.Split(string(t), ".")
	if len(words) == 3 {
		n, err = strconv.Atoi(words[0])
		if err == nil && n >= 0 && n < len(s.slots) {
			serial, err = strconv.ParseUint(words[1], 10, 64)
			if err == nil {
				cas, err = strconv.ParseUint(words[2], 10, 64)
			}
			if err == nil && cas > 0 {
				return n, serial, cas, nil
			}
		}
	}
	return 0, 0, 0, fmt.Errorf("%w: not a token of this client", opaque.ErrChanged)
}

// Get implements opaque.KV. One round trip.
func (s *Store) Get(ctx context.Context, k string) (opaque.Item, error) {
	items, err := s.GetMany(ctx, []string{k})
	switch {
	case err != nil:
		return opaque.Item{}, err
	case items[0].Token == "":
		return opaque.Item{}, opaque.ErrNotFound
	}
	return items[0], nil
}

// GetMany implements opaque.BatchGetter. One round trip per 100 keys. A connection that turns out to be dead, as after a
// restart of the server, is replaced once.
func (s *Store) GetMany(ctx context.Context, keys []string) ([]opaque.Item, error) {
	for _, k := range keys {
		if err := checkKey(k); err != nil {
			return nil, err
		}
	}
	out := make([]opaque.Item, len(keys))
	for from := 0; from < len(keys); from += batchKeys {
		part := keys[from:min(from+batchKeys, len(keys))]
		var request bytes.Buffer
		for _, k := range part {
			request.WriteString("mg " + k + " v c\r\n")
		}
		err := s.read(ctx, request.Bytes(), func(r *bufio.Reader, n int, serial uint64) error {
			for i := range part {
				v, err := readValue(r)
				if err != nil {
					return err
				}
				out[from+i] = opaque.Item{}
				switch {
				case !v.found || len(v.raw) == 0:
					// An empty item was never written here; it comes of other clients ("vivify") and holds nothing.
				case len(v.raw) < nonceSize:
					return fmt.Errorf("%w: the key holds a value that this package did not write", errBroken)
				default:
					out[from+i] = opaque.Item{Value: v.raw[nonceSize:], Token: newToken(n, serial, v.cas)}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// batchKeys bounds one request, so that it fits into the buffers of a socket while the server answers already.
const batchKeys = 100

// read runs an exchange that changes nothing. It is tried again on a fresh connection, once.
func (s *Store) read(ctx context.Context, request []byte, answer func(r *bufio.Reader, n int, serial uint64) error) error {
	l, n, err := s.take(ctx, -1)
	if err != nil {
		return err
	}
	defer l.leave()
	for range 2 {
		fresh := l.conn == nil
		if err = s.connect(ctx, l); err != nil {
			return err
		}
		err = s.exchange(ctx, l, request, func(r *bufio.Reader) error { return answer(r, n, l.serial) })
		if err == nil || fresh || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// Add implements opaque.KV. One round trip.
func (s *Store) Add(ctx context.Context, k string, v []byte, expires time.Time) (opaque.Token, error) {
	if err := s.check(ctx, k, v); err != nil {
		return "", err
	}
	l, n, err := s.take(ctx, -1)
	if err != nil {
		return "", err
	}
	defer l.leave()
	if err := s.connect(ctx, l); err != nil {
		return "", err
	}
	raw := seal(v)
	request := fmt.Appendf(nil, "ms %s %d T%d ME c\r\n", k, len(raw), exptime(expires))
	request = append(append(request, raw...), "\r\n"...)
	var token opaque.Token
	err = s.exchange(ctx, l, request, func(r *bufio.Reader) error {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		status, flags, _ := strings.Cut(line, " ")
		switch status {
		case "HD":
			cas, err := strconv.ParseUint(strings.TrimPrefix(flags, "c"), 10, 64)
			if err != nil {
				return fmt.Errorf("%w: %.80q to an add", errBroken, line)
			}
			token = newToken(n, l.serial, cas)
			return nil
		case "NS":
			return refusal{opaque.ErrExists}
		}
		return refused(line)
	})
	return token, judge(err)
}

// Swap implements opaque.KV. One round trip: the new token is read behind the write. Where another writer got in between,
// the swap has happened and its token is one that names nothing any more.
func (s *Store) Swap(
	ctx context.Context, k string, v []byte, expires time.Time, token opaque.Token,
) (next opaque.Token, err error) {
	if err := s.check(ctx, k, v); err != nil {
		return "", err
	}
	l, n, cas, err := s.hold(ctx, token)
	if err != nil {
		return "", err
	}
	defer l.leave()
	raw := seal(v)
	request := fmt.Appendf(nil, "cas %s 0 %d %d %d\r\n", k, exptime(expires), len(raw), cas)
	request = append(append(request, raw...), "\r\nmg "+k+" v c\r\n"...)
	var verdict error
	err = s.exchange(ctx, l, request, func(r *bufio.Reader) error {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		switch line {
		case "STORED":
		case "EXISTS":
			verdict = opaque.ErrChanged
		case "NOT_FOUND":
			verdict = opaque.ErrNotFound
		default:
			if verdict = refused(line); !errors.As(verdict, new(refusal)) {
				return verdict
			}
		}
		now, err := readValue(r)
		if err != nil {
			if verdict != nil {
				l.close()
				return refusal{verdict}
			}
			return err
		}
		if next = newToken(n, 0, 1); bytes.Equal(now.raw, raw) {
			next = newToken(n, l.serial, now.cas)
		}
		return nil
	})
	if err == nil {
		err = verdict
	}
	if err != nil {
		return "", judge(err)
	}
	return next, nil
}

// Delete implements opaque.KV. One round trip.
func (s *Store) Delete(ctx context.Context, k string, token opaque.Token) error {
	if err := s.check(ctx, k, nil); err != nil {
		return err
	}
	l, _, cas, err := s.hold(ctx, token)
	if err != nil {
		return err
	}
	defer l.leave()
	return judge(s.exchange(ctx, l, fmt.Appendf(nil, "md %s C%d\r\n", k, cas), func(r *bufio.Reader) error {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		switch line {
		case "HD":
			return nil
		case "EX":
			return refusal{opaque.ErrChanged}
		case "NF":
			return refusal{opaque.ErrNotFound}
		}
		return refused(line)
	}))
}

// hold locks the slot of a token, if its connection is still the one that the token came from.
func (s *Store) hold(ctx context.Context, token opaque.Token) (*slot, int, uint64, error) {
	n, serial, cas, err := s.parse(token)
	if err != nil {
		return nil, 0, 0, err
	}
	l, n, err := s.take(ctx, n)
	if err != nil {
		return nil, 0, 0, err
	}
	if l.conn == nil || l.serial != serial {
		l.leave()
		return nil, 0, 0, fmt.Errorf("%w: the connection that gave the token is gone", opaque.ErrChanged)
	}
	return l, n, cas, nil
}

// judge says what an error of a write that was sent means.
func judge(err error) error {
	var no refusal
	switch {
	case err == nil, errors.Is(err, opaque.ErrChanged), errors.Is(err, opaque.ErrNotFound):
		return err
	case errors.As(err, &no):
		return no.err
	default:
		return fmt.Errorf("%w: %w", opaque.ErrUnknown, err)
	}
}

// seal puts a nonce before a value.
func seal(v []byte) []byte {
	raw := make([]byte, nonceSize, nonceSize+len(v))
	_, _ = rand.Read(raw) // never fails
	return append(raw, v...)
}

// exptime is an expiry as memcached takes it: always absolute, since more than 30 days from now would be read as a date.
func exptime(expires time.Time) int64 {
	if expires.IsZero() {
		return 0
	}
	// Rounded up; and never so small that it counts as relative.
	return max(expires.Add(time.Second-1).Unix(), longAgo)
}

// longAgo is the smallest number that memcached reads as a date, well in the past.
const longAgo = 60*60*24*30 + 1

func checkKey(k string) error {
	if k == "" || len(k) > key.Memcached.MaxKey() {
		return fmt.Errorf("%w: %d bytes, memcached takes 1 to %d", opaque.ErrBadKey, len(k), key.Memcached.MaxKey())
	}
	for i := range len(k) {
		if k[i] <= ' ' || k[i] == 0x7f {
			return fmt.Errorf("%w: a space or a control character", opaque.ErrBadKey)
		}
	}
	return nil
}

// check refuses what must not be sent.
func (s *Store) check(ctx context.Context, k string, v []byte) error {
	if err := checkKey(k); err != nil {
		return err
	}
	if v == nil {
		return nil
	}
	limits, err := s.Limits(ctx)
	if err != nil {
		return err
	}
	if len(v) > limits.MaxValue {
		return fmt.Errorf("%w: %d bytes, the server takes %d", opaque.ErrTooLarge, len(v), limits.MaxValue)
	}
	return nil
}
