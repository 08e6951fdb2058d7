package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/primaries"
	"github.com/lockstep-go/lockstep/key"
)

// cleanUpTime bounds the removal of the demonstration's keys, which also runs after Ctrl-C.
const cleanUpTime = 30 * time.Second

// sizes are the commands that give the size of a key, by its type.
var sizes = map[string]string{"string": "STRLEN", "set": "SCARD", "zset": "ZCARD", "hash": "HLEN"}

// keys shows the raw keys, one of each kind, and what redis-cli says about some of them.
func (d *demo) keys() error {
	d.title("4  What is on the server: plain Redis, no module")
	all, err := d.scan(d.ctx, d.target.Space().Prefix())
	if err != nil {
		return err
	}
	g := grid{header: []string{"one of each kind", "type", "size", "", "key"}, right: []int{3}}
	met := map[string]string{} // what is shown -> its key
	for _, k := range all {
		p, err := key.Parse(k)
		if err != nil {
			return err
		}
		what := p.Kind.String()
		if p.Kind == key.KindIndex {
			what = "index " + p.Index
		}
		if met[what] != "" {
			continue
		}
		met[what] = k
		kind, err := d.rdb.Type(d.ctx, k).Result()
		if err != nil {
			return err
		}
		n, err := d.rdb.Do(d.ctx, sizes[kind], k).Int64()
		if err != nil {
			return err
		}
		g.rows = append(g.rows, []string{what, kind, sizes[kind], fmt.Sprint(n), k})
	}
	if err := d.s.grid(g, "  "); err != nil {
		return err
	}
	d.say("  ... %d keys in all; as redis-cli shows them:", len(all))
	line, e := latest()
	if line == nil {
		return errors.New("there are no earthquakes")
	}
	id := e.ID
	record, err := d.quakes.RecordKey(id)
	if err != nil {
		return err
	}
	net, err := keyOf(slices.Values(all), "net", e.Net)
	if err != nil {
		return err
	}
	for _, command := range [][]any{
		{"GET", record},
		{"SISMEMBER", net, id},
		{"ZREVRANGE", met["index recent"], 0, 1, "WITHSCORES"},
		{"HGET", met["manifest"], id},
	} {
		if err := d.typed(command); err != nil {
			return err
		}
	}
	return nil
}

// typed shows a command and its reply as redis-cli does.
func (d *demo) typed(command []any) error {
	reply, err := d.rdb.Do(d.ctx, command...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	d.say("\n  > %s", strings.TrimSpace(fmt.Sprintln(command...)))
	for _, line := range replyLines(reply) {
		d.say("  %s", cut(line, d.s.width()-2))
	}
	return nil
}

// replyLines writes a reply as redis-cli does.
func replyLines(reply any) []string {
	switch v := reply.(type) {
	case nil:
		return []string{"(nil)"}
	case int64:
		return []string{fmt.Sprintf("(integer) %d", v)}
	case string:
		return []string{quoted(v)}
	case float64:
		return []string{quoted(strconv.FormatFloat(v, 'f', -1, 64))}
	case []any:
		var out []string
		for _, element := range v { // pairs come as lists of two, or one after the other, by the version of the protocol
			if pair, ok := element.([]any); ok {
				for _, half := range pair {
					out = append(out, replyLines(half)...)
				}
				continue
			}
			out = append(out, replyLines(element)...)
		}
		for i, line := range out {
			out[i] = fmt.Sprintf("%d) %s", i+1, line)
		}
		return out
	default:
		return []string{fmt.Sprint(v)}
	}
}

// quoted writes bytes as redis-cli does: \xNN for all that is not printable ASCII.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// cleanUp removes every key of the demonstration, whatever ended it.
func (d *demo) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), cleanUpTime)
	defer cancel()
	removed, err := removePrefix(ctx, d.rdb, d.owner+":")
	if err != nil {
		return fmt.Errorf("keys of the demonstration are left under %s: %w", d.owner, err)
	}
	d.title("Cleaned up")
	d.say("  %d keys removed, none left under %s:", removed, d.owner)
	return nil
}

// scan gives every key with a prefix, sorted.
func (d *demo) scan(ctx context.Context, prefix string) ([]string, error) {
	return keysWith(ctx, d.rdb, prefix)
}

// removePrefix removes every key with a prefix and looks again.
func removePrefix(ctx context.Context, rdb redis.UniversalClient, prefix string) (removed int, err error) {
	err = primaries.Each(ctx, rdb, func(ctx context.Context, node redis.Cmdable) error {
		keys, err := scanPrefix(ctx, node, prefix)
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(keys, 500) {
			_, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, k := range batch {
					pipe.Unlink(ctx, k)
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
	if err != nil {
		return removed, err
	}
	rest, err := keysWith(ctx, rdb, prefix)
	if err == nil && len(rest) > 0 {
		err = errors.New("some are there again")
	}
	return removed, err
}

// keysWith gives every key with a prefix, sorted.
func keysWith(ctx context.Context, rdb redis.UniversalClient, prefix string) ([]string, error) {
	var all []string
	err := primaries.Each(ctx, rdb, func(ctx context.Context, node redis.Cmdable) error {
		keys, err := scanPrefix(ctx, node, prefix)
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
