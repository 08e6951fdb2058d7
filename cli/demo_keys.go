package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/key"
)

// cleanUpTime bounds the removal of the demonstration's keys, which also runs after Ctrl-C.
const cleanUpTime = 30 * time.Second

// keys shows a handful of the raw keys, one of each kind, as redis-cli would.
func (d *demo) keys() error {
	d.title("5  What is on the server: plain Redis, no module")
	all, err := d.scan(d.ctx)
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	for _, k := range all {
		p, err := key.Parse(k)
		if err != nil {
			return err
		}
		if group := p.Kind.String() + " " + p.Index; !shown[group] {
			shown[group] = true
			if err := d.show(k, p); err != nil {
				return err
			}
		}
	}
	d.say("  ... %d keys in all", len(all))
	return nil
}

// show prints one key with its type and size.
func (d *demo) show(k string, p key.Parsed) error {
	kind, err := d.rdb.Type(d.ctx, k).Result()
	if err != nil {
		return err
	}
	var n int64
	command := ""
	switch kind {
	case "string":
		command = "STRLEN"
		n, err = d.rdb.StrLen(d.ctx, k).Result()
	case "set":
		command = "SCARD"
		n, err = d.rdb.SCard(d.ctx, k).Result()
	case "zset":
		command = "ZCARD"
		n, err = d.rdb.ZCard(d.ctx, k).Result()
	case "hash":
		command = "HLEN"
		n, err = d.rdb.HLen(d.ctx, k).Result()
	}
	if err != nil {
		return err
	}
	what := p.Kind.String()
	if p.Kind == key.KindIndex {
		what = "index " + p.Index
	}
	d.say("  %-12s %-7s %-7s %-60s %s", what, kind, command, k, d.bold(fmt.Sprintf("%5d", n)))
	return nil
}

// cleanUp removes every key of the demonstration, whatever ended it.
func (d *demo) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), cleanUpTime)
	defer cancel()
	removed := 0
	prefix := d.target.Space().Prefix()
	err := d.eachPrimary(ctx, func(node redis.Cmdable) error {
		keys, err := scanPrefix(ctx, node, prefix)
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(keys, 500) {
			_, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, k := range batch {
					pipe.Del(ctx, k)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		removed += len(keys)
		return nil
	})
	left := 0
	if err == nil {
		var rest []string
		if rest, err = d.scan(ctx); err == nil {
			left = len(rest)
		}
	}
	if err == nil && left > 0 {
		err = errors.New("some are there again")
	}
	if err != nil {
		return fmt.Errorf("keys of the demonstration are left under %s: %w", prefix, err)
	}
	d.title("Cleaned up")
	d.say("  %d keys removed, none left under %s", removed, prefix)
	return nil
}

// scan gives every key of the demonstration, sorted.
func (d *demo) scan(ctx context.Context) ([]string, error) {
	var all []string
	err := d.eachPrimary(ctx, func(node redis.Cmdable) error {
		keys, err := scanPrefix(ctx, node, d.target.Space().Prefix())
		all = append(all, keys...)
		return err
	})
	slices.Sort(all)
	return slices.Compact(all), err
}

func scanPrefix(ctx context.Context, node redis.Cmdable, prefix string) ([]string, error) {
	var all []string
	it := node.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for it.Next(ctx) {
		all = append(all, it.Val())
	}
	slices.Sort(all)
	return slices.Compact(all), it.Err()
}

// eachPrimary calls fn for every primary of a cluster, or once for a single server, one after another.
func (d *demo) eachPrimary(ctx context.Context, fn func(redis.Cmdable) error) error {
	cluster, ok := d.rdb.(*redis.ClusterClient)
	if !ok {
		return fn(d.rdb)
	}
	var one sync.Mutex
	return cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		return fn(node)
	})
}

// title begins a part.
func (d *demo) title(format string, args ...any) {
	d.say("\n%s", d.bold(fmt.Sprintf(format, args...)))
}

// command shows what one would type for the lines that follow.
func (d *demo) command(text string) { d.say("  %s %s", d.s.app.Name, text) }

// say prints lines of the demonstration; errors of the output show when it is flushed.
func (d *demo) say(format string, args ...any) { _, _ = fmt.Fprintf(d.s.out, format+"\n", args...) }

// bold highlights a text on a terminal.
func (d *demo) bold(text string) string {
	if !d.s.outTerminal || d.s.app.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[1;36m" + text + "\x1b[0m"
}
