package key

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Tag is the hash tag of a key: what a Redis cluster hashes, and so what
// decides which keys live together in one slot. Tags are comparable; to compare
// the tag of a parsed key, take the one of Partition.Tag, which is a digest where
// the rules ask for one. The zero Tag renders as `{}`, which Redis does not take
// for a hash tag: each key is then placed by itself.
type Tag struct {
	text string // between the braces, as Redis gets it: name, or name.bucket.suffix
}

// Single returns the tag of an entity type that lives in one partition, such
// as {account}. Any bytes may stand in the name; where they are longer than a
// segment may be, a digest stands for them.
func Single(name string) Tag { return Tag{text: tagName(name)} }

// Group returns the tag of one group, such as one customer: {customer-7}. It is
// the same tag as Single gives for the same name. Any bytes may stand in the
// group, the empty string too.
func Group(group string) Tag { return Tag{text: tagName(group)} }

// Bucket returns the tag of bucket i of n, such as {account.17.hNU}, counted
// from 0. A suffix of three letters puts the bucket into a chosen slot, from 0 to
// 8 slots after 16384*i/n, so that n buckets divide a cluster evenly, by design
// and not by luck. (It is not the boundary itself because tools that divide the
// slots among masters round it differently.) The suffix depends on the name, i
// and n and on nothing else. Buckets of different counts may still have the same
// tag, as the first ones often do: another count needs another version. ErrRange
// if n is outside 1 to 16384 or i outside 0 to n-1.
func Bucket(name string, i, n int) (Tag, error) { return bucketTag(tagName(name), 0, i, n) }

// GroupBucket returns the tag of bucket i of n of one outsized group, such as
// {customer-7.3.wUO}. The buckets of a group are spread evenly as those of
// Bucket are, but count from the slot of Group(group): otherwise the first
// bucket of every group would meet in one slot. ErrRange as Bucket.
func GroupBucket(group string, i, n int) (Tag, error) {
	name := tagName(group)
	return bucketTag(name, int(crc16(0, name)%slots), i, n)
}

// Name returns the name or group that the tag was made of, or the hex digits of
// its digest if that is all the tag knows. The zero Tag has the name "".
func (t Tag) Name() string {
	name, _, _ := strings.Cut(t.text, ".")
	if sum, ok := digestOf(name); ok {
		return sum
	}
	return plainText(name)
}

// Digested reports whether the name is known only as a digest.
func (t Tag) Digested() bool { return strings.HasPrefix(t.text, digestMark) }

// Bucket returns the number of the bucket, and false if the tag is not one of
// several.
func (t Tag) Bucket() (int, bool) {
	_, rest, ok := strings.Cut(t.text, ".")
	if !ok {
		return 0, false
	}
	number, _, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	return i, err == nil
}

// IsZero reports whether the tag is the zero Tag, with which every key is
// placed by itself.
func (t Tag) IsZero() bool { return t.text == "" }

// String returns the tag with its braces as it stands in a key on Redis.
func (t Tag) String() string { return "{" + t.text + "}" }

func tagName(name string) string {
	return string(appendTagName(nil, name))
}

func appendTagName(b []byte, name string) []byte {
	if len(name) > Redis.maxSegment || textLen(name, modeTag) > Redis.maxSegment {
		return appendDigest(b, []byte(name))
	}
	return appendText(b, name, modeTag)
}

// margin is how far behind the boundary a bucket is put at most.
const margin = 8

func bucketTag(name string, origin, i, n int) (Tag, error) {
	if n < 1 || n > slots {
		return Tag{}, fmt.Errorf("%w: %d buckets, allowed are 1 to %d", ErrRange, n, slots)
	}
	if i < 0 || i >= n {
		return Tag{}, fmt.Errorf("%w: bucket %d of %d", ErrRange, i, n)
	}
	target := origin + (slots*i+n/2)/n + min(margin, slots/n/4)
	return placed(name+"."+strconv.Itoa(i), target%slots), nil
}

// placed completes name.bucket with the suffix that moves it to the slot.
func placed(head string, slot int) Tag {
	head += "."
	// A CRC is linear: CRC(head+suffix) = CRC(head+zeros) xor CRC(suffix).
	rest := (crc16(crc16(0, head), "\x00\x00\x00") ^ uint16(slot)) % slots
	return Tag{text: head + suffix(int(suffixes()[rest]))}
}

// The letters of a suffix are five free bits each: 'h' xor any of 0 to 7, xor 0x18
// or not, xor 0x20 or not. Three of them are fifteen, enough to solve for the
// fourteen bits of any slot.
const suffixLetters = "hijklmnopqrstuvwHIJKLMNOPQRSTUVW"

func suffix(code int) string {
	return string([]byte{suffixLetters[code>>10&31], suffixLetters[code>>5&31], suffixLetters[code&31]})
}

// suffixes maps what the CRC of a suffix has to be, modulo 16384, to the
// lowest code of a suffix that has it.
var suffixes = sync.OnceValue(func() *[slots]uint16 {
	var t [slots]uint16
	for code := 1<<15 - 1; code >= 0; code-- {
		t[crc16(0, suffix(code))%slots] = uint16(code)
	}
	return &t
})

// under returns the tag as the rules render it in keys of the entity: the same,
// or with a digest for its name, in the same slot if it is a bucket.
func (t Tag) under(r Rules, entity string) Tag {
	if t.IsZero() || t.Digested() {
		return t
	}
	name, rest, bucket := strings.Cut(t.text, ".")
	n := len(name)
	if r.mode&modeASCII != 0 {
		n = len(appendASCII(nil, name))
	}
	if n <= r.maxSegment && (!r.untrusted || t.Name() == entity) {
		return t
	}
	d := string(appendDigest(nil, []byte(t.Name())))
	if !bucket {
		return Tag{text: d}
	}
	number, _, _ := strings.Cut(rest, ".")
	return placed(d+"."+number, int(crc16(0, t.text)%slots))
}

// readTag decodes what stands between the braces.
func readTag(text string, r Rules) (Tag, bool) {
	if text == "" {
		return Tag{}, true
	}
	name, rest, bucket := strings.Cut(text, ".")
	if _, ok := digestOf(name); !ok && (len(name) > r.maxSegment || !checkText(name, r.mode|modeTag)) {
		return Tag{}, false
	}
	if bucket {
		number, suffix, _ := strings.Cut(rest, ".")
		if i, ok := readNumber(number); !ok || i >= slots || len(suffix) != 3 || strings.Trim(suffix, suffixLetters) != "" {
			return Tag{}, false
		}
	}
	if r.mode&modeASCII != 0 {
		text = withoutASCII(text)
	}
	return Tag{text: text}, true
}
