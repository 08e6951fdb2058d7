package key

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxName   = 64        // bytes of one segment of an owner, of an entity, of an index
	maxOwner  = 128       // bytes of an owner
	maxNumber = 1<<31 - 1 // of a version and of a generation
	// What the longest name of a tag needs around it: braces, .16383.xyz, separator.
	tagExtra = len("{.16383.xyz}:")
)

// Space is the keyspace of one entity type in one format version. Two versions
// of an entity are two keyspaces that share no key. A Space is a small value;
// copy it freely. The zero Space makes no keys.
type Space struct {
	owner, entity string
	version       int
	rules         Rules
	prefix        string // "<owner>:<entity>:"
	suffix        string // ":v<version>"
}

// NewSpace returns the keyspace of an entity type. The owner is one or more
// names joined by ':', at most 128 bytes, the entity is one name; a name begins
// with one of A-Z a-z 0-9 _ -, may go on with these and '.', and has at most 64
// bytes. The version is at least 1 and at most 2147483647. The zero Rules are
// those of Redis. Everything that is wrong is reported at once: ErrName for
// names, ErrRange for the version, ErrTooLong if the names leave the store no
// room for a record.
//
// One owner must not be another one with more names behind it: of the entities
// `acme` / `billing` and `acme:billing` / `account`, the prefix of the first
// covers the second. NewSpace cannot see that.
func NewSpace(owner, entity string, version int, r Rules) (Space, error) {
	s := Space{
		owner: owner, entity: entity, version: version, rules: r.orRedis(),
		prefix: owner + ":" + entity + ":", suffix: ":v" + strconv.Itoa(version),
	}
	if err := s.check(); err != nil {
		return Space{}, err
	}
	return s, nil
}

func (s Space) check() error {
	var errs []error
	if len(s.owner) > maxOwner {
		errs = append(errs, fmt.Errorf("%w: an owner of %d bytes, at most %d", ErrName, len(s.owner), maxOwner))
	} else {
		for name := range strings.SplitSeq(s.owner, ":") {
			if !isName(name) {
				errs = append(errs, fmt.Errorf("%w: segment %q of the owner", ErrName, name))
			}
		}
	}
	if !isName(s.entity) {
		errs = append(errs, fmt.Errorf("%w: entity %.80q", ErrName, s.entity))
	}
	if s.version < 1 || s.version > maxNumber {
		errs = append(errs, fmt.Errorf("%w: version %d, allowed are 1 to %d", ErrRange, s.version, maxNumber))
	}
	if room := s.rules.maxKey - tagExtra - 2*s.rules.maxSegment; len(errs) == 0 && len(s.prefix)+len(s.suffix) > room {
		errs = append(errs, fmt.Errorf("%w: owner, entity and version take %d of the %d bytes that %s leaves for them",
			ErrTooLong, len(s.prefix)+len(s.suffix), room, s.rules.name))
	}
	return errors.Join(errs...)
}

func isName(s string) bool {
	if s == "" || len(s) > maxName || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) && s[i] != '.' {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// Owner returns the owner as it was given, such as "acme:billing".
func (s Space) Owner() string { return s.owner }

// Entity returns the name of the entity type.
func (s Space) Entity() string { return s.entity }

// Version returns the format version.
func (s Space) Version() int { return s.version }

// Rules returns the rules of the store.
func (s Space) Rules() Rules { return s.rules.orRedis() }

// Prefix returns "<owner>:<entity>:", with which every key of the entity begins
// in every version. It holds no pattern: "<prefix>*" is right for SCAN, for a
// purge and for an ACL rule.
func (s Space) Prefix() string { return s.prefix }

// Catalog returns the key of the catalog, "<owner>:<entity>:~~catalog:v<version>".
// It carries no tag: it is one key of the whole entity type.
func (s Space) Catalog() string { return s.prefix + "~~catalog" + s.suffix }

// Partition returns the partition with the tag, ready to make keys. ErrName on
// the zero Space.
func (s Space) Partition(t Tag) (Partition, error) {
	if s.prefix == "" {
		return Partition{}, fmt.Errorf("%w: a Space that NewSpace did not make", ErrName)
	}
	t = t.under(s.rules, s.entity)
	text := t.text
	if s.rules.mode&modeASCII != 0 {
		text = string(appendASCII(nil, text))
	}
	p := Partition{space: s, tag: t, slot: -1, prefix: s.prefix + "{" + text + "}:"}
	if !t.IsZero() {
		p.slot = int(crc16(0, text) % slots)
	}
	return p, nil
}

// EntryBody returns the part of an index key that a manifest row keeps, such as
// "status.1:suspended": the name of the index, its generation, and the value,
// plain or as a digest, as the rules want it. Partition.Entry makes the key of
// it. ErrName for the name, see CheckIndexName; ErrRange for a generation
// outside 1 to 2147483647. It allocates only its result, unless the value becomes
// a digest.
func (s Space) EntryBody(index string, gen int, v Value) (string, error) {
	return s.body(index, gen, &v)
}

// RankedBody returns the same for a ranked index, "recent.1", or "recent.1:eu"
// for the ranking within a group. Errors and cost are those of EntryBody.
func (s Space) RankedBody(index string, gen int, group *Value) (string, error) {
	return s.body(index, gen, group)
}

func (s Space) body(index string, gen int, v *Value) (string, error) {
	var buf [384]byte
	b, err := s.AppendBody(buf[:0], index, gen, v)
	return string(b), err
}

// AppendBody appends what EntryBody returns, or RankedBody for the group v or for
// none, to b. On an error it returns nothing.
func (s Space) AppendBody(b []byte, index string, gen int, v *Value) ([]byte, error) {
	if err := checkIndex(index, gen); err != nil {
		return nil, err
	}
	b = append(b, index...)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(gen), 10)
	if v != nil {
		b = append(b, ':')
		b = appendValueSegment(b, *v, s.rules.orRedis())
	}
	return b, nil
}

// CheckIndexName returns an error, ErrName, unless the name is made of 1 to 64
// of A-Z a-z 0-9 _ -.
func CheckIndexName(name string) error {
	if !isIndexName(name) {
		return fmt.Errorf("%w: index %.80q, wanted are 1 to %d of A-Z a-z 0-9 _ -", ErrName, name, maxName)
	}
	return nil
}

func checkIndex(name string, gen int) error {
	if err := CheckIndexName(name); err != nil {
		return err
	}
	if gen < 1 || gen > maxNumber {
		return fmt.Errorf("%w: generation %d of index %s, allowed are 1 to %d", ErrRange, gen, name, maxNumber)
	}
	return nil
}

func isIndexName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}
