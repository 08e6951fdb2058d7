package redistest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Entry is the content of one key.
type Entry struct {
	// Type is the word that TYPE says: "string", "set", "zset", "hash", "list".
	Type string
	// Value is the value of a string, else empty.
	Value string
	// Elements are the members of a set (each with ""), the fields of a hash
	// with their values, the members of a sorted set with their scores as the
	// server writes them, the elements of a list by position. Nil for a string.
	Elements map[string]string
	// PTTL is the remaining lifetime, negative if there is none.
	PTTL time.Duration

	read time.Time // when PTTL was read
}

// Snapshot reads every key of the server, on a cluster of all its masters. It
// is not atomic: nothing should write meanwhile. A key that expires while it
// is read is left out.
func Snapshot(t testing.TB, rdb redis.UniversalClient) map[string]Entry {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys, err := allKeys(ctx, rdb)
	if err != nil {
		t.Fatalf("redistest: snapshot: %v", err)
	}
	snapshot := make(map[string]Entry, len(keys))
	for key, e := range readEntries(ctx, rdb, keys) {
		switch {
		case e.err != nil:
			t.Fatalf("redistest: snapshot of %q: %v", key, e.err)
		case e.Type != "none":
			snapshot[key] = e.Entry
		}
	}
	return snapshot
}

// readResult is one key as read, or why it could not be.
type readResult struct {
	Entry
	err error
}

// readBatch is how many keys share a round trip.
const readBatch = 500

// readEntries reads keys, by contents and lifetime rather than by DUMP, whose
// bytes may change by a mere read. A missing key has the type "none".
func readEntries(ctx context.Context, rdb redis.UniversalClient, keys []string) map[string]readResult {
	all := make(map[string]readResult, len(keys))
	for batch := range slices.Chunk(keys, readBatch) {
		pipe := rdb.Pipeline()
		kinds := make([]*redis.StatusCmd, len(batch))
		for i, key := range batch {
			kinds[i] = pipe.Type(ctx, key)
		}
		_, _ = pipe.Exec(ctx) // each command has its error
		contents := make([]redis.Cmder, len(batch))
		lifetimes := make([]*redis.DurationCmd, len(batch))
		for i, key := range batch {
			contents[i] = readKey(ctx, pipe, key, kinds[i].Val())
			lifetimes[i] = pipe.PTTL(ctx, key)
		}
		_, _ = pipe.Exec(ctx)
		now := time.Now()
		for i, key := range batch {
			e := Entry{Type: kinds[i].Val(), read: now}
			err := kinds[i].Err()
			if err == nil {
				err = e.take(ctx, rdb, key, contents[i])
			}
			if err == nil {
				e.PTTL, err = lifetimes[i].Result()
			}
			if errors.Is(err, redis.Nil) || e.PTTL == -2 {
				e, err = Entry{Type: "none"}, nil
			}
			all[key] = readResult{e, err}
		}
	}
	return all
}

// readKey asks for the content of a key, nil if there is none or no way to.
func readKey(ctx context.Context, pipe redis.Pipeliner, key, kind string) redis.Cmder {
	switch kind {
	case "string":
		return pipe.Get(ctx, key)
	case "hash":
		return pipe.HGetAll(ctx, key)
	case "set":
		return pipe.SMembers(ctx, key)
	case "list":
		return pipe.LRange(ctx, key, 0, -1)
	case "zset":
		// The one read whose scores are text under both versions of the protocol.
		return pipe.ZScan(ctx, key, 0, "*", 1000)
	}
	return nil
}

// take takes the answer to readKey in.
func (e *Entry) take(ctx context.Context, rdb redis.UniversalClient, key string, cmd redis.Cmder) (err error) {
	switch cmd := cmd.(type) {
	case *redis.StringCmd:
		e.Value, err = cmd.Result()
	case *redis.MapStringStringCmd:
		e.Elements, err = cmd.Result()
	case *redis.StringSliceCmd:
		var items []string
		items, err = cmd.Result()
		e.Elements = make(map[string]string, len(items))
		for i, item := range items {
			if e.Type == "list" {
				e.Elements[strconv.Itoa(i)] = item
			} else {
				e.Elements[item] = ""
			}
		}
	case *redis.ScanCmd:
		e.Elements = map[string]string{}
		for {
			page, cursor, err := cmd.Result()
			if err != nil {
				return err
			}
			for i := 0; i+1 < len(page); i += 2 {
				e.Elements[page[i]] = page[i+1]
			}
			if cursor == 0 {
				return nil
			}
			cmd = rdb.ZScan(ctx, key, cursor, "*", 1000)
		}
	default:
		if e.Type != "none" {
			return fmt.Errorf("no snapshot of a %s", e.Type)
		}
		e.PTTL = -2
	}
	return err
}

// ttlSlack is how much later than its time a lifetime may have been read.
const ttlSlack = 500 * time.Millisecond

// Diff says in words what changed from one snapshot to another, sorted by key,
// empty if nothing did. A lifetime that only ran down is no change; one that
// was set again, given or taken away is, unless it was shortened by less than
// half a second or prolonged by less than two milliseconds.
func Diff(before, after map[string]Entry) []string {
	var diff []string
	for _, key := range union(before, after) {
		b, was := before[key]
		a, is := after[key]
		switch {
		case !was:
			diff = append(diff, fmt.Sprintf("%q appeared: %s", key, a))
		case !is:
			diff = append(diff, fmt.Sprintf("%q is gone: %s", key, b))
		case b.Type != a.Type:
			diff = append(diff, fmt.Sprintf("%q changed: %s, now %s", key, b, a))
		default:
			diff = append(diff, diffEntry(key, b, a)...)
		}
	}
	return diff
}

func diffEntry(key string, b, a Entry) []string {
	var diff []string
	if b.Value != a.Value {
		diff = append(diff, fmt.Sprintf("%q: value %q, now %q", key, b.Value, a.Value))
	}
	for _, m := range union(b.Elements, a.Elements) {
		x, was := b.Elements[m]
		y, is := a.Elements[m]
		switch {
		case !was:
			diff = append(diff, fmt.Sprintf("%q: %s appeared", key, element(a.Type, m, y)))
		case !is:
			diff = append(diff, fmt.Sprintf("%q: %s is gone", key, element(b.Type, m, x)))
		case x != y:
			diff = append(diff, fmt.Sprintf("%q: %s, now %q", key, element(b.Type, m, x), y))
		}
	}
	least := b.PTTL - a.read.Sub(b.read) - ttlSlack
	most := b.PTTL + 2*time.Millisecond
	if (b.PTTL < 0) != (a.PTTL < 0) || b.PTTL >= 0 && (a.PTTL < least || a.PTTL > most) {
		diff = append(diff, fmt.Sprintf("%q: %s, now %s", key, lifetime(b), lifetime(a)))
	}
	return diff
}

// String shows the entry on one line, its elements sorted.
func (e Entry) String() string {
	s := e.Type
	if e.Type == "string" {
		s += fmt.Sprintf(" %q", e.Value)
	}
	for _, m := range slices.Sorted(maps.Keys(e.Elements)) {
		s += " " + element(e.Type, m, e.Elements[m])
	}
	return s + ", " + lifetime(e)
}

func element(kind, member, value string) string {
	if kind == "set" {
		return fmt.Sprintf("%q", member)
	}
	return fmt.Sprintf("%q=%q", member, value)
}

func lifetime(e Entry) string {
	if e.PTTL < 0 {
		return "for ever"
	}
	return "for " + e.PTTL.String()
}

// union returns the keys of both maps, sorted.
func union[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
