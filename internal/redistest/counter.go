package redistest

import (
	"context"
	"maps"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Counter counts what one client asks of its server. It is safe for concurrent
// use.
type Counter struct {
	mu       sync.Mutex
	trips    int
	commands map[string]int
}

// Count installs a counter on a client. A single command is one trip, a
// pipeline or a transaction is one trip however long it is, and on a cluster
// however many nodes it goes to. Retries inside the client are not seen, nor
// is what a connection sends when it is set up (HELLO and the like).
//
// Hooks run in the order they were added: a counter added before [Checked]
// sees EVALSHA where one added after it sees EVAL.
func Count(rdb redis.UniversalClient) *Counter {
	c := &Counter{commands: map[string]int{}}
	rdb.AddHook(countHook{c})
	return c
}

// Trips returns the number of round trips since the start or the last Reset.
func (c *Counter) Trips() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trips
}

// Commands returns how often each command was sent, by its name in lower case
// ("evalsha"), as a copy.
func (c *Counter) Commands() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.commands)
}

// Reset starts again at zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips = 0
	clear(c.commands)
}

// setup holds the commands that go-redis sends on its own when it opens a
// connection. They pass the hooks like any other.
var setup = map[string]bool{
	"hello": true, "auth": true, "select": true, "client": true, "readonly": true,
}

func (c *Counter) add(cmds ...redis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := false
	for _, cmd := range cmds {
		if name := cmd.Name(); !setup[name] {
			c.commands[name]++
			sent = true
		}
	}
	if sent {
		c.trips++
	}
}

type countHook struct{ c *Counter }

func (h countHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return next(ctx, network, addr)
	}
}

func (h countHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.c.add(cmd)
		return next(ctx, cmd)
	}
}

func (h countHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.c.add(cmds...)
		return next(ctx, cmds)
	}
}
