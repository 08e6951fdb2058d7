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
	for _, key := range keys {
		e, err := readEntry(ctx, rdb, key)
		switch {
		case err != nil:
			t.Fatalf("redistest: snapshot of %q: %v", key, err)
		case e.Type != "none":
			snapshot[key] = e
		}
	}
	return snapshot
}

// readEntry reads one key, by contents and lifetime rather than by DUMP, whose
// bytes may change by a mere read. A missing key has the type "none".
func readEntry(ctx context.Context, rdb redis.UniversalClient, key string) (Entry, error) {
	kind, err := rdb.Type(ctx, key).Result()
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Type: kind}
	switch kind {
	case "none":
		return e, nil
	case "string":
		e.Value, err = rdb.Get(ctx, key).Result()
	case "hash":
		e.Elements, err = rdb.HGetAll(ctx, key).Result()
	case "set":
		var members []string
		members, err = rdb.SMembers(ctx, key).Result()
		e.Elements = make(map[string]string, len(members))
		for _, m := range members {
			e.Elements[m] = ""
		}
	case "list":
		var items []string
		items, err = rdb.LRange(ctx, key, 0, -1).Result()
		e.Elements = make(map[string]string, len(items))
		for i, item := range items {
			e.Elements[strconv.Itoa(i)] = item
		}
	case "zset":
		e.Elements, err = rawScores(ctx, rdb, key)
	default:
		return e, fmt.Errorf("no snapshot of a %s", kind)
	}
	if err == nil {
		e.PTTL, err = rdb.PTTL(ctx, key).Result()
		e.read = time.Now()
	}
	if errors.Is(err, redis.Nil) || e.PTTL == -2 {
		return Entry{Type: "none"}, nil
	}
	return e, err
}

// rawScores reads a sorted set by ZSCAN, the one read whose scores are text
// under both versions of the protocol.
func rawScores(ctx context.Context, rdb redis.UniversalClient, key string) (map[string]string, error) {
	scores := map[string]string{}
	it := rdb.ZScan(ctx, key, 0, "*", 1000).Iterator()
	for it.Next(ctx) {
		member := it.Val()
		if !it.Next(ctx) {
			break
		}
		scores[member] = it.Val()
	}
	return scores, it.Err()
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
