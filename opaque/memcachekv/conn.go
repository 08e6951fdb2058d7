package memcachekv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/opaque"
)

// slot holds one connection at a time. Whoever has the lock uses it alone.
type slot struct {
	lock chan struct{} // holds one element while the slot is taken
	conn net.Conn
	r    *bufio.Reader
	// serial is another number for every connection. A token with an older one is refused.
	serial uint64
}

// errBroken says that a connection answered something that is not the protocol.
var errBroken = errors.New("memcachekv: unexpected answer")

// take locks a slot: the one of a token, or any.
func (s *Store) take(ctx context.Context, want int) (*slot, int, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, unavailable(err)
	}
	if want < 0 {
		first := int(s.turn.Add(1)) % len(s.slots)
		for i := range s.slots {
			n := (first + i) % len(s.slots)
			select {
			case s.slots[n].lock <- struct{}{}:
				return &s.slots[n], n, nil
			default:
			}
		}
		want = first
	}
	select {
	case s.slots[want].lock <- struct{}{}:
		return &s.slots[want], want, nil
	case <-ctx.Done():
		return nil, 0, unavailable(ctx.Err())
	}
}

func (l *slot) leave() { <-l.lock }

// connect makes sure that the slot has a connection.
func (s *Store) connect(ctx context.Context, l *slot) error {
	if l.conn != nil {
		return nil
	}
	if s.closed.Load() {
		return unavailable(net.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	conn, err := s.o.Dial(ctx, "tcp", s.addr)
	if err != nil {
		return unavailable(err)
	}
	l.conn, l.r = conn, bufio.NewReaderSize(conn, 16<<10)
	l.serial = s.serial.Add(1)
	return nil
}

// exchange sends a request and reads its answer. A connection on which anything goes wrong is closed: what comes after an
// answer that was not read cannot be told apart from the next one.
func (s *Store) exchange(ctx context.Context, l *slot, request []byte, answer func(r *bufio.Reader) error) error {
	deadline := time.Now().Add(s.o.Timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	conn := l.conn
	err := conn.SetDeadline(deadline)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		if _, err = conn.Write(request); err == nil {
			err = answer(l.r)
		}
		if !stop() && err == nil {
			// The deadline may hit the next request instead.
			l.close()
		}
	}
	if err != nil && !errors.As(err, new(refusal)) {
		l.close()
	}
	return err
}

func (l *slot) close() {
	if l.conn != nil {
		_ = l.conn.Close() // whatever it says, it is of no use any more
		l.conn, l.r = nil, nil
	}
}

// refusal is an answer that says that the server has not done what was asked. The connection is good.
type refusal struct{ err error }

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

func unavailable(err error) error { return fmt.Errorf("%w: %w", opaque.ErrUnavailable, err) }

// readLine reads a line without its end.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line, ok := strings.CutSuffix(line, "\r\n")
	if !ok {
		return "", fmt.Errorf("%w: a line without its end", errBroken)
	}
	return line, nil
}

// value is the answer to a meta get.
type value struct {
	found bool
	raw   []byte
	cas   uint64
}

// readValue reads the answer to "mg <key> v c".
func readValue(r *bufio.Reader) (v value, err error) {
	line, err := readLine(r)
	if err != nil {
		return v, err
	}
	if line == "EN" {
		return v, nil
	}
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "VA" {
		return v, fmt.Errorf("%w: %.80q to a get", errBroken, line)
	}
	size, err := strconv.Atoi(words[1])
	if err != nil || size < 0 || size > maxAnswer {
		return v, fmt.Errorf("%w: a size of %.20q", errBroken, words[1])
	}
	for _, w := range words[2:] {
		if digits, ok := strings.CutPrefix(w, "c"); ok {
			if v.cas, err = strconv.ParseUint(digits, 10, 64); err != nil {
				return v, fmt.Errorf("%w: token %.20q", errBroken, w)
			}
		}
	}
	v.raw = make([]byte, size+2)
	if _, err := io.ReadFull(r, v.raw); err != nil {
		return v, err
	}
	if string(v.raw[size:]) != "\r\n" {
		return v, fmt.Errorf("%w: a value without its end", errBroken)
	}
	v.raw = v.raw[:size]
	v.found = true
	return v, nil
}

// maxAnswer bounds what is read as one value: more than any server is configured for.
const maxAnswer = 1 << 30

// refused makes an error of an answer that is none of those expected.
func refused(line string) error {
	switch {
	case strings.HasPrefix(line, "SERVER_ERROR object too large"):
		return refusal{fmt.Errorf("%w: %s", opaque.ErrTooLarge, line)}
	case strings.HasPrefix(strings.ToLower(line), "server_error out of memory"):
		return refusal{fmt.Errorf("%w: %s", opaque.ErrOutOfMemory, line)}
	default:
		return fmt.Errorf("%w: %.80q", errBroken, line)
	}
}
