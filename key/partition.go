package key

import (
	"fmt"
	"strings"
)

// Partition makes the keys that share one tag: records, index entries and the
// keys kept beside them. On a cluster they live in one slot. A Partition holds
// what its keys have in common, so making a key is one allocation; make it once
// and keep it. It is a value, safe for concurrent use. The zero Partition makes
// no records and no entries.
type Partition struct {
	space  Space
	tag    Tag
	slot   int
	prefix string // "<owner>:<entity>:{<tag>}:"
}

// Tag returns the tag as it stands in the keys, the one that Parse gives back:
// with a digest for its name where the rules of the space ask for it.
func (p Partition) Tag() Tag { return p.tag }

// Space returns the keyspace of the partition.
func (p Partition) Space() Space { return p.space }

// Slot returns the slot in which a Redis cluster keeps the partition, or -1 for
// the zero Tag, whose keys are placed one by one (see the function Slot).
func (p Partition) Slot() int {
	if p.tag.IsZero() {
		return -1
	}
	return p.slot
}

// Record returns the key of the record with the id, or of one named field of it
// kept under a key of its own. Ids and fields may be any bytes, the empty string
// too; a long one becomes a digest of its bytes. ErrMalformed for more than one
// field, ErrTooLong if the store has no room, which happens on memcached with a
// field only, ErrName on the zero Partition.
func (p Partition) Record(id string, field ...string) (string, error) {
	if len(field) > 1 {
		return "", fmt.Errorf("%w: a record with %d field segments, at most one", ErrMalformed, len(field))
	}
	r := p.space.rules
	var buf [keyBuffer]byte
	b := append(buf[:0], p.prefix...)
	b = appendSegment(b, id, r, r.untrusted)
	if len(field) == 1 {
		b = append(b, ':')
		b = appendSegment(b, field[0], r, false)
	}
	return p.finish(b)
}

// keyBuffer holds all but the longest keys on the stack.
const keyBuffer = 512

// finish ends a key with its version.
func (p Partition) finish(b []byte) (string, error) {
	if p.prefix == "" {
		return "", fmt.Errorf("%w: a Partition that no Space made", ErrName)
	}
	b = append(b, p.space.suffix...)
	if r := p.space.rules; len(b) > r.maxKey {
		return "", fmt.Errorf("%w: a key of %d bytes, %s takes %d", ErrTooLong, len(b), r.name, r.maxKey)
	}
	return string(b), nil
}

// Entry returns the key of an index from its body, as Space.EntryBody and
// Space.RankedBody give it and a manifest row keeps it. It refuses every other
// body with ErrMalformed, so that a damaged row never names a foreign key.
// Bodies written before or after a change to Untrusted are both good.
// ErrTooLong if the store has no room, which does not happen on Redis; ErrName
// on the zero Partition. One allocation, as a rule.
func (p Partition) Entry(body string) (string, error) {
	if _, _, _, _, ok := cutBody(body, p.space.rules.orRedis()); !ok {
		return "", fmt.Errorf("%w: the body of an index key, %d bytes", ErrMalformed, len(body))
	}
	var buf [keyBuffer]byte
	b := append(buf[:0], p.prefix...)
	b = append(b, '~')
	b = append(b, body...)
	return p.finish(b)
}

// cutBody takes apart and checks "<index>.<gen>[:<value>]".
func cutBody(body string, r Rules) (index string, gen int, value string, hasValue, ok bool) {
	head, value, hasValue := strings.Cut(body, ":")
	index, number, _ := strings.Cut(head, ".")
	gen, ok = readNumber(number)
	ok = ok && gen >= 1 && isIndexName(index) && (!hasValue || checkValue(value, r))
	return index, gen, value, hasValue, ok
}

// Manifest returns the key of the HASH id -> entries that were written for it.
func (p Partition) Manifest() string { return p.prefix + "~~manifest" + p.space.suffix }

// Meta returns the key of the HASH that holds the state of the partition.
func (p Partition) Meta() string { return p.prefix + "~~meta" + p.space.suffix }

// Expiry returns the key of the ZSET of the ids that have a lifetime.
func (p Partition) Expiry() string { return p.prefix + "~~expiry" + p.space.suffix }

// Floor returns the key that holds what ranked indexes have trimmed.
func (p Partition) Floor() string { return p.prefix + "~~floor" + p.space.suffix }

// Probe returns the scratch key on which permissions are tried out.
func (p Partition) Probe() string { return p.prefix + "~~probe" + p.space.suffix }
