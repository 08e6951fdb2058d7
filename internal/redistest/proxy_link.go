package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// link is one connection of a client with its own connection to the server.
type link struct {
	p      *Proxy
	client net.Conn
	quit   chan struct{}
	once   sync.Once

	mu     sync.Mutex
	server net.Conn
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.quit)
		_ = l.client.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.server != nil {
			_ = l.server.Close()
		}
	})
}

// serve hands requests on until one side ends or a fault says so.
func (l *link) serve() {
	defer func() {
		l.close()
		l.p.mu.Lock()
		delete(l.p.links, l)
		l.p.mu.Unlock()
	}()
	server, err := net.DialTimeout("tcp", l.p.target, time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	requests, replies := bufio.NewReader(l.client), bufio.NewReader(server)
	queueing := false // between MULTI and EXEC
	for {
		raw, command, err := readRequest(requests)
		if err != nil {
			return
		}
		command = strings.ToLower(command)
		var f Fault
		end := command == "exec" || command == "discard"
		if !queueing || end {
			f = l.p.judge(command)
		}
		if queueing && f.Kind == Answer {
			// What is answered instead of EXEC ends the transaction.
			if !l.handle(Fault{Kind: DropReply}, []byte("*1\r\n$7\r\nDISCARD\r\n"), replies) {
				return
			}
		}
		if !l.handle(f, raw, replies) {
			return
		}
		queueing = command == "multi" || queueing && !end
	}
}

// handle does to one request what its fault says and reports whether the connection goes on.
func (l *link) handle(f Fault, raw []byte, replies *bufio.Reader) bool {
	switch f.Kind {
	case CutBefore:
		return false
	case Swallow:
		return true
	case Answer:
		_, err := io.WriteString(l.client, "-"+f.Text+"\r\n")
		return err == nil
	case Delay:
		timer := time.NewTimer(f.For)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.quit:
			return false
		}
	}
	if _, err := l.server.Write(raw); err != nil {
		return false
	}
	reply, err := readReply(replies)
	if err != nil {
		return false
	}
	switch f.Kind {
	case CutAfter:
		return false
	case DropReply:
		return true
	case HalfClose:
		conn, ok := l.client.(*net.TCPConn)
		if !ok || conn.CloseWrite() != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, l.client) // until the client ends it
		return false
	}
	_, err = l.client.Write(reply)
	return err == nil
}

// readRequest reads one request, an array of bulk strings, and gives its bytes and its first word.
func readRequest(r *bufio.Reader) (raw []byte, command string, err error) {
	raw, err = readValue(r, nil)
	if err != nil {
		return nil, "", err
	}
	if raw[0] != '*' {
		return nil, "", fmt.Errorf("redistest: a request that begins with %q", raw[0])
	}
	// *n \r\n $size \r\n word
	rest := raw[lineEnd(raw):]
	size, err := strconv.Atoi(string(rest[1 : lineEnd(rest)-2]))
	if err != nil {
		return nil, "", err
	}
	return raw, string(rest[lineEnd(rest):][:size]), nil
}

// readReply reads one reply, with the push messages before it.
func readReply(r *bufio.Reader) ([]byte, error) {
	var raw []byte
	for {
		start := len(raw)
		var err error
		if raw, err = readValue(r, raw); err != nil || raw[start] != '>' {
			return raw, err
		}
	}
}

func lineEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		if b[i-1] == '\r' && b[i] == '\n' {
			return i + 1
		}
	}
	return len(b)
}

// readValue appends one value of the protocol, of either version, to raw.
func readValue(r *bufio.Reader, raw []byte) ([]byte, error) {
	start := len(raw)
	for {
		part, err := r.ReadSlice('\n')
		raw = append(raw, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	line := raw[start:]
	if len(line) < 3 {
		return nil, fmt.Errorf("redistest: a line %q of no protocol", line)
	}
	kind := line[0]
	switch kind {
	case '+', '-', ':', '_', '#', ',', '(':
		return raw, nil
	case '$', '=', '!', '*', '~', '>', '%', '|':
	default:
		return nil, fmt.Errorf("redistest: a value that begins with %q", kind)
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil || n < 0 {
		return raw, err
	}
	switch kind {
	case '$', '=', '!':
		at := len(raw)
		raw = append(raw, make([]byte, n+2)...)
		_, err = io.ReadFull(r, raw[at:])
		return raw, err
	case '%', '|':
		n *= 2
	}
	if kind == '|' {
		n++ // attributes precede the value that they are about
	}
	for range n {
		if raw, err = readValue(r, raw); err != nil {
			return nil, err
		}
	}
	return raw, nil
}
