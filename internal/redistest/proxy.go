package redistest

import (
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// FaultKind says what a [Proxy] does to a request.
type FaultKind int

// The kinds of faults. Every one is exact: when the client notices, the server has run the request, or never will.
const (
	// Pass hands the request on and the reply back.
	Pass FaultKind = iota
	// CutBefore closes the connection instead of handing the request on.
	CutBefore
	// CutAfter waits until the server has answered, throws the reply away and closes the connection.
	CutAfter
	// HalfClose waits until the server has answered and throws the reply away, then ends only its own sending: the client
	// reads the end of the stream and could still write.
	HalfClose
	// DropReply waits until the server has answered and throws the reply away; the connection stays.
	DropReply
	// Swallow neither hands the request on nor answers; the connection stays.
	Swallow
	// Delay waits for Fault.For before it hands the request on.
	Delay
	// Answer gives Fault.Text as an error instead of handing the request on: "NOSCRIPT No matching script".
	Answer
)

// Fault is what becomes of one request.
type Fault struct {
	Kind FaultKind
	Text string
	For  time.Duration
}

// Decide gives the fault of the n-th request that counts, from 1. command is its name in lower case. It is called under
// a lock, one request after another.
type Decide func(n int, command string) Fault

// At is one fault at the k-th request.
func At(k int, f Fault) Decide {
	return func(n int, _ string) Fault {
		if n == k {
			return f
		}
		return Fault{}
	}
}

// Every is a fault at every request from the first-th on, step by step.
func Every(first, step int, f Fault) Decide {
	return func(n int, _ string) Fault {
		if n >= first && (n-first)%step == 0 {
			return f
		}
		return Fault{}
	}
}

// Data names the commands that carry the library's work, the usual choice of what counts.
var Data = []string{"eval", "evalsha", "eval_ro", "evalsha_ro", "get", "mget", "hmget", "exec"}

// Writes names the commands with which the library writes.
var Writes = []string{"eval", "evalsha"}

// Proxy stands between clients and one server, reads their requests one by one and does to them what it was told. Every
// connection of a client has its own to the server; the requests of one connection are handed on one after another. A
// transaction counts once, at its EXEC: a server that does not take what is queued does not run it either.
type Proxy struct {
	// Addr is where it listens.
	Addr string

	target string
	listen net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex
	counted []string
	decide  Decide
	seen    int
	fired   int
	refuse  bool
	closed  bool
	links   map[*link]struct{}
}

// NewProxy runs a proxy in front of a server until the test ends. Without faults it is not noticed.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: proxy: %v", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: s.Addr, listen: l, links: map[*link]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		_ = l.Close()
		p.CutAll()
		p.wg.Wait()
	})
	return p
}

// Client returns a client of the proxied server, with the options of [Server.Client]. It is no cluster client, which
// would go past the proxy.
func (p *Proxy) Client(t testing.TB, mod ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	return (&Server{Name: NameRedis, Addr: p.Addr}).Client(t, mod...)
}

// Inject makes decide judge the requests that counted names (all if it is nil) and counts from the start. decide may be
// nil.
func (p *Proxy) Inject(counted []string, decide Decide) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted, p.decide, p.seen, p.fired = counted, decide, 0, 0
}

// Seen returns how many requests have counted since Inject, and how many of them had a fault.
func (p *Proxy) Seen() (requests, faults int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen, p.fired
}

// Refuse makes the proxy close every connection and accept no other (true), or serve again.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	p.refuse = on
	p.mu.Unlock()
	if on {
		p.CutAll()
	}
}

// CutAll closes every connection, whatever is on its way.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		l := &link{p: p, client: conn, quit: make(chan struct{})}
		p.mu.Lock()
		if p.refuse || p.closed {
			p.mu.Unlock()
			_ = conn.Close()
			continue
		}
		p.links[l] = struct{}{}
		p.mu.Unlock()
		p.wg.Go(l.serve)
	}
}

// judge counts a request and gives its fault.
func (p *Proxy) judge(command string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counted != nil && !slices.Contains(p.counted, command) {
		return Fault{}
	}
	p.seen++
	if p.decide == nil {
		return Fault{}
	}
	f := p.decide(p.seen, command)
	if f.Kind != Pass {
		p.fired++
	}
	return f
}
