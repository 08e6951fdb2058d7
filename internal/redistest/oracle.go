package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Oracle says by brute force what the keys of one entity type must hold. It
// reads every record, asks the test which entries the record must have, and
// compares that with every index key and manifest on the server. It shares no
// code with what it judges: it takes keys apart on its own, and the functions
// that make keys are written by hand in the test, as literal text.
type Oracle[T any] struct {
	// Prefix is "<owner>:<entity>:", for example "acme:billing:account:".
	Prefix string
	// Version is the format version. Keys of other versions are ignored.
	Version int
	// Decode reads the stored bytes of a record.
	Decode func(raw string) (T, error)
	// ID returns the id of a record.
	ID func(T) string
	// Expect returns the index keys that must hold the record's id: "" for a
	// membership SET, the score as text for a ranked ZSET. Scores are compared
	// as numbers.
	Expect func(T) map[string]string
	// RecordKey returns the key of the record with this id.
	RecordKey func(id string) string
	// Members, if set, turns the elements of an index key into ids with their
	// scores, for keys whose members are not ids.
	Members func(key string, elements map[string]string) map[string]string
}

// Check returns what is wrong, one line for each finding, sorted; nothing if
// records, indexes and manifests agree. A finding begins with its kind:
//
//	missing     a record without one of its entries
//	stale       an entry that its record does not name
//	orphan      an entry without a record
//	misranked   an entry with another score than the record names
//	kind        an index key of another type than the record needs
//	manifest    a record without a row, or a row without a record
//	misplaced   a record under another key than its own
//	undecodable a record that Decode refuses
//	foreign     a key under the prefix that the layout does not know
//	unreadable  a key that could not be read
//
// It is not atomic and takes a few calls per key, so nothing should write
// meanwhile. A record that has expired is gone: collect what is due before, or
// its entries are orphans. The entries of a record that does not decode are
// orphans as well. Expect cannot tell what a trim has removed: for an index that
// keeps only some records it must know which, by itself or by a closure.
func (o Oracle[T]) Check(ctx context.Context, rdb redis.UniversalClient) []string {
	c := check[T]{
		Oracle:    o,
		live:      map[string]string{},
		expected:  map[string]map[string]string{},
		indexes:   map[string]Entry{},
		manifests: map[string]Entry{},
	}
	c.read(ctx, rdb)
	c.judgeIndexes()
	c.judgeManifests()
	slices.Sort(c.findings)
	return c.findings
}

// Verify fails the test if Check finds anything. It is made for t.Cleanup, when
// the test's own context is over.
func (o Oracle[T]) Verify(t testing.TB, rdb redis.UniversalClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if findings := o.Check(ctx, rdb); len(findings) > 0 {
		t.Errorf("redistest: the oracle disagrees with the server:\n%s", strings.Join(findings, "\n"))
	}
}

// check is one run of an oracle.
type check[T any] struct {
	Oracle[T]
	findings  []string
	live      map[string]string            // id -> tag of its record
	expected  map[string]map[string]string // index key -> id -> score text
	indexes   map[string]Entry             // index key -> content
	manifests map[string]Entry             // tag -> content
}

func (c *check[T]) find(kind, format string, args ...any) {
	c.findings = append(c.findings, kind+": "+fmt.Sprintf(format, args...))
}

// read sorts every key under the prefix into records, indexes and manifests.
func (c *check[T]) read(ctx context.Context, rdb redis.UniversalClient) {
	keys, err := allKeys(ctx, rdb)
	if err != nil {
		c.find("unreadable", "the list of keys: %v", err)
		return
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, c.Prefix) })
	entries := readEntries(ctx, rdb, keys)
	for _, key := range keys {
		rest := strings.TrimPrefix(key, c.Prefix)
		part, tag, version := classify(rest)
		if part != partForeign && version != c.Version {
			continue
		}
		e := entries[key]
		switch {
		case e.err != nil:
			c.find("unreadable", "%q: %v", key, e.err)
		case e.Type == "none":
			// Expired since the scan.
		case part == partRecord && e.Type == "string":
			c.readRecord(key, tag, e.Value)
		case part == partIndex && (e.Type == "set" || e.Type == "zset"):
			if c.Members != nil {
				e.Elements = c.Members(key, e.Elements)
			}
			c.indexes[key] = e.Entry
		case part == partManifest && e.Type == "hash":
			c.manifests[tag] = e.Entry
		case part == partOther:
			// Its content is the business of those who write it.
		default:
			c.find("foreign", "%q is a %s, %s", key, e.Type, part)
		}
	}
}

func (c *check[T]) readRecord(key, tag, raw string) {
	record, err := c.Decode(raw)
	if err != nil {
		c.find("undecodable", "%q: %v", key, err)
		return
	}
	id := c.ID(record)
	if own := c.RecordKey(id); own != key {
		c.find("misplaced", "%q holds the record %q, whose key is %q", key, id, own)
		return
	}
	c.live[id] = tag
	for index, score := range c.Expect(record) {
		if c.expected[index] == nil {
			c.expected[index] = map[string]string{}
		}
		c.expected[index][id] = score
	}
}

func (c *check[T]) judgeIndexes() {
	for key, entries := range c.expected {
		index := c.indexes[key]
		for id, want := range entries {
			got, held := index.Elements[id]
			switch {
			case !held:
				c.find("missing", "%q lacks %q", key, id)
			case (want == "") != (index.Type == "set"):
				c.find("kind", "%q is a %s, %q needs the score %q", key, index.Type, id, want)
			case want != "" && !sameScore(want, got):
				c.find("misranked", "%q has %q at %s instead of %s", key, id, got, want)
			}
		}
	}
	for key, index := range c.indexes {
		for id := range index.Elements {
			if _, named := c.expected[key][id]; named {
				continue
			}
			if _, lives := c.live[id]; lives {
				c.find("stale", "%q holds %q, whose record does not name it", key, id)
			} else {
				c.find("orphan", "%q holds %q, which has no record", key, id)
			}
		}
	}
}

// judgeManifests holds each partition's rows against the records in it.
func (c *check[T]) judgeManifests() {
	for id, tag := range c.live {
		if _, row := c.manifests[tag].Elements[id]; !row {
			c.find("manifest", "partition {%s} has no row for the record %q", tag, id)
		}
	}
	for tag, manifest := range c.manifests {
		for id := range manifest.Elements {
			if home, lives := c.live[id]; !lives || home != tag {
				c.find("manifest", "partition {%s} has a row for %q, which has no record in it", tag, id)
			}
		}
	}
}

// part is the place of a key in the layout.
type part string

const (
	partRecord   part = "in the place of a record"
	partIndex    part = "in the place of an index"
	partManifest part = "in the place of a manifest"
	partOther    part = "in the place of housekeeping"
	partForeign  part = "in no place of the layout"
)

// housekeeping names the keys that are neither record nor index. The catalog
// alone has no tag.
var housekeeping = map[string]part{
	"~~manifest": partManifest,
	"~~meta":     partOther,
	"~~expiry":   partOther,
	"~~floor":    partOther,
	"~~probe":    partOther,
}

// classify takes apart what follows the prefix, {<tag>}:<segments>:v<version>.
func classify(rest string) (p part, tag string, version int) {
	cut := strings.LastIndex(rest, ":v")
	if cut < 0 {
		return partForeign, "", 0
	}
	version, err := strconv.Atoi(rest[cut+len(":v"):])
	if err != nil {
		return partForeign, "", 0
	}
	rest = rest[:cut]
	if rest == "~~catalog" {
		return partOther, "", version
	}
	tag, segments, ok := strings.Cut(rest, "}:")
	tag, open := strings.CutPrefix(tag, "{")
	if !ok || !open || tag == "" || segments == "" {
		return partForeign, "", 0
	}
	switch {
	case strings.HasPrefix(segments, "~~"):
		if p, known := housekeeping[segments]; known {
			return p, tag, version
		}
		return partForeign, "", 0
	case strings.HasPrefix(segments, "~"):
		return partIndex, tag, version
	default:
		return partRecord, tag, version
	}
}

func sameScore(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}
