package key

import (
	"fmt"
	"strings"
)

// Kind says what a key holds.
type Kind int

// The kinds of keys.
const (
	KindRecord   Kind = iota + 1 // a record, or one field of it
	KindIndex                    // a membership SET or a ranked ZSET
	KindManifest                 // what was written for each id of a partition
	KindMeta                     // the state of a partition
	KindExpiry                   // the lifetimes in a partition
	KindFloor                    // what ranked indexes of a partition trimmed
	KindProbe                    // the scratch key of a partition
	KindCatalog                  // the definitions of an entity type
)

var kindWords = [...]string{"unknown", "record", "index", "manifest", "meta", "expiry", "floor", "probe", "catalog"}

// String returns the word for the kind, such as "record" or "manifest";
// "unknown" for a number that is no kind.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindWords) {
		return kindWords[0]
	}
	return kindWords[k]
}

// Parsed is a key taken apart. It is comparable. Fields that the kind of the
// key does not have are zero.
type Parsed struct {
	Owner, Entity string
	Version       int
	Tag           Tag // not for KindCatalog
	Kind          Kind

	// For KindRecord. Digested says that the id is known only as a digest: ID is
	// then its 64 hex digits, and the id has to come from the record itself.
	ID       string
	Digested bool
	// A record may have one field segment, and that may be a digest as well.
	Field         string
	HasField      bool
	FieldDigested bool

	// For KindIndex. A membership entry has a Value; a ranked index has one, its
	// group, if it is ranked within groups.
	Index    string
	Gen      int
	Value    Value
	HasValue bool
}

// Parse takes a key apart. It accepts exactly what this package writes, in the
// spelling of Redis or of Memcached, and refuses everything else with
// ErrMalformed: other spellings of the same thing, names and numbers out of
// bounds, segments that should have been digests. Rebuilding what it returns
// (see Parsed.Key) gives the identical key. Cost: one pass; it allocates for
// segments with escapes only.
func Parse(k string) (Parsed, error) { return rulesOf(k).Parse(k) }

// Parse takes a key apart as the function Parse does, but accepts the spelling
// of this one store only. With or without Untrusted it accepts the same keys.
func (r Rules) Parse(k string) (Parsed, error) {
	p, reason := parse(k, r.orRedis())
	if reason != "" {
		return Parsed{}, fmt.Errorf("%w: %s", ErrMalformed, reason)
	}
	return p, nil
}

// rulesOf returns the rules a key was spelled with. Only an escaped wide byte
// tells them apart.
func rulesOf(k string) Rules {
	if escapesWide(k) {
		return Memcached
	}
	return Redis
}

func parse(k string, r Rules) (p Parsed, reason string) {
	if len(k) > r.maxKey {
		return p, "longer than any key"
	}
	end := strings.LastIndexByte(k, ':')
	if end < 0 || !strings.HasPrefix(k[end:], ":v") {
		return p, "no version at the end"
	}
	version, ok := readNumber(k[end+2:])
	if !ok {
		return p, "no version at the end"
	}
	p.Version = version
	head, tail, tagged := strings.Cut(k[:end], ":{")
	if !tagged {
		if head, tagged = strings.CutSuffix(head, ":~~catalog"); !tagged {
			return p, "neither a tag nor a catalog"
		}
		p.Kind = KindCatalog
	}
	cut := strings.LastIndexByte(head, ':')
	if cut < 0 {
		return p, "no owner"
	}
	p.Owner, p.Entity = head[:cut], head[cut+1:]
	s := Space{owner: p.Owner, entity: p.Entity, version: version, rules: r, prefix: k[:len(head)+1], suffix: k[end:]}
	if s.check() != nil {
		return p, "owner, entity or version out of bounds"
	}
	if p.Kind == KindCatalog {
		return p, ""
	}

	text, tail, ok := strings.Cut(tail, "}:")
	if !ok {
		return p, "the tag has no end"
	}
	if p.Tag, ok = readTag(text, r); !ok {
		return p, "not a tag"
	}
	return p, p.readTail(tail, r)
}

// readTail reads what stands between the tag and the version.
func (p *Parsed) readTail(tail string, r Rules) (reason string) {
	if name, ok := strings.CutPrefix(tail, "~~"); ok {
		for k := KindManifest; k <= KindProbe; k++ {
			if name == k.String() {
				p.Kind = k
				return ""
			}
		}
		return "no such key beside an index"
	}
	if body, ok := strings.CutPrefix(tail, "~"); ok {
		index, gen, value, hasValue, ok := cutBody(body, r)
		if !ok {
			return "not an index"
		}
		p.Kind, p.Index, p.Gen, p.HasValue = KindIndex, index, gen, hasValue
		if hasValue {
			p.Value = readValue(value, r.mode)
		}
		return ""
	}
	p.Kind = KindRecord
	id, field, hasField := strings.Cut(tail, ":")
	var ok bool
	if p.ID, p.Digested, ok = readSegment(id, r); !ok {
		return "not an id"
	}
	if p.HasField = hasField; hasField {
		if p.Field, p.FieldDigested, ok = readSegment(field, r); !ok {
			return "not a field"
		}
	}
	return ""
}

// Key puts the key together again under the rules: for the rules it was built
// with, the identical one. What is known as a digest stays that digest. Errors
// are those of NewSpace, EntryBody and Record, and ErrMalformed if a field that
// the kind needs is missing or is no digest where it should be one.
func (p Parsed) Key(r Rules) (string, error) {
	s, err := NewSpace(p.Owner, p.Entity, p.Version, r)
	if err != nil {
		return "", err
	}
	if p.Kind == KindCatalog {
		return s.Catalog(), nil
	}
	part, err := s.Partition(p.Tag)
	if err != nil {
		return "", err
	}
	switch p.Kind {
	case KindRecord:
		return p.record(part)
	case KindIndex:
		var v *Value
		if p.HasValue {
			v = &p.Value
		}
		body, err := s.body(p.Index, p.Gen, v)
		if err != nil {
			return "", err
		}
		return part.Entry(body)
	case KindManifest, KindMeta, KindExpiry, KindFloor, KindProbe:
		return part.prefix + "~~" + p.Kind.String() + s.suffix, nil
	default:
		return "", fmt.Errorf("%w: a key of kind %s", ErrMalformed, p.Kind)
	}
}

func (p Parsed) record(part Partition) (string, error) {
	if p.Digested && !isDigest(p.ID) || p.FieldDigested && !isDigest(p.Field) {
		return "", fmt.Errorf("%w: not a digest", ErrMalformed)
	}
	r := part.space.rules
	b := []byte(part.prefix)
	if p.Digested {
		b = append(append(b, digestMark...), p.ID...)
	} else {
		b = appendSegment(b, p.ID, r, r.untrusted)
	}
	switch {
	case p.HasField && p.FieldDigested:
		b = append(append(b, ":"+digestMark...), p.Field...)
	case p.HasField:
		b = appendSegment(append(b, ':'), p.Field, r, false)
	}
	return part.finish(b)
}
