package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/opaque"
)

// schemaExample stands in the help.
const schemaExample = `owner: usgs:feed          # the application; its keys begin with it
entity: quake
version: 1                # of the key format; two versions share no key
id: id                    # the field that holds the id
lifetime: forever         # or how long a record lives after it was written: 3s, 24h
indexes:
  status: {membership: status}                # INDEX: {membership: FIELD}
  source: {membership: sources, split: ","}   # every part of a text
  rating: {membership: MPAA Rating, trim: true, type: string}
  email:  {unique: email, fold: true}         # at most one record has a value
  recent: {ranked: time, keep: 1000}          # in the order of a number; the best 1000 are kept
  strongest: {ranked: mag, keep: 100, within: net}    # one order for each value of net
  day:    {ranked: time, time: ms, max_age: 24h}      # a time since 1970 in s, ms or us, or as rfc3339
  due:    {ranked: due, lowest_first: true, exact: true, keep: 500}   # whole numbers up to 2^63
# With --kv only:
#   net: {membership: net, buckets: 8}        # the ids of a value in so many lists of 4096, else one
# id_buckets: 256                             # the ids of all records likewise, else 64
`

// ReadSchema reads the text of a schema file, as the flag -s takes it, into a declaration. file is what errors call it.
// Everything wrong with it is reported at once, one line for each problem, as FILE:LINE: what.
//
// A changed field or separator is a new generation of the index, as a change of the index itself is: it answers
// index.ErrNotReady until it is built.
func ReadSchema(file string, text []byte) (*index.Entity[Document], error) {
	s, err := parseSchema(file, text)
	if err != nil {
		return nil, err
	}
	return s.entity, nil
}

// schema is a parsed schema file.
type schema struct {
	file string
	id   string // the field that holds the id

	idBuckets int // lists of all ids on an opaque store, 0 for the default

	fields []*field
	ranks  []*rank
	entity *index.Entity[Document]
}

// mention is one place where a schema file names a field of the records.
type mention struct {
	index string
	word  string // membership, unique, ranked or within
	name  string // of the field
	line  int
	seen  atomic.Bool // a record had the field
}

// wrong is the error of a record whose field is not what it must be.
func (m *mention) wrong(got, want string) error {
	return &FieldError{Index: m.index, Field: m.name, Got: got, Want: want}
}

// about says which field an error is about.
func (m *mention) about(err error) error {
	return fmt.Errorf("field %q (index %s): %w", m.name, m.index, err)
}

// field is one membership index of a schema file.
type field struct {
	mention
	unique bool
	split  string
	kind   string // string, number, bool, or "" for any
	fold   bool
	trim   bool

	buckets int // lists that a value has on an opaque store, 0 for one
}

// The keys of a schema file, in the order in which one writes them.
var (
	requiredKeys = []string{"owner", "entity", "version", "id", "lifetime"}
	schemaKeys   = slices.Concat(requiredKeys, []string{"indexes", "id_buckets"})
	indexKeys    = append([]string{"membership", "unique", "split", "fold", "trim", "type", "buckets", "ranked"}, rankKeys...)
)

func parseSchema(file string, text []byte) (*schema, error) {
	p := &problems{file: file}
	s := &schema{file: file}
	root := p.document(text)
	if root == nil {
		return nil, p.err()
	}
	m := p.mapping(root, "", schemaKeys)
	for _, required := range requiredKeys {
		if _, ok := m[required]; !ok {
			p.add(root.Line, "%s is missing%s", required, map[string]string{
				"lifetime": `: write "lifetime: forever", or how long a record lives, such as 24h`,
				"id":       ": it names the field that holds the id of a record",
			}[required])
		}
	}
	owner := p.text(m["owner"], "owner")
	name := p.text(m["entity"], "entity")
	version := p.integer(m["version"], "version")
	s.id = p.text(m["id"], "id")
	lifetime := p.lifetime(m["lifetime"])
	s.idBuckets = p.buckets(m["id_buckets"], "id_buckets", opaque.MaxIDBuckets)
	p.space(m, owner, name, version)
	if n := m["indexes"]; n != nil {
		s.readIndexes(p, n)
	}
	if err := p.err(); err != nil {
		return nil, err
	}

	o := index.Options[Document]{
		ID: Document.ID, Version: version, Lifetime: lifetime,
		Codec: index.Codec[Document]{
			Encode: func(d Document) ([]byte, error) { return d.raw, nil },
			Decode: func(_ string, b []byte) (Document, error) { return s.decode(b) },
		},
	}
	for i, f := range s.fields {
		o.Indexes = append(o.Indexes, f.declare(i))
	}
	for i, r := range s.ranks {
		o.Indexes = append(o.Indexes, r.declare(i))
	}
	s.entity = index.Define(owner, name, o)
	if err := s.entity.Err(); err != nil {
		p.add(root.Line, "%v", err)
	}
	return s, p.err()
}

// space checks the names that begin every key, each at its own line.
func (p *problems) space(m map[string]*yaml.Node, owner, name string, version int) {
	for _, part := range []struct {
		key, owner, name string
		version          int
		given            bool
	}{
		{"owner", owner, "x", 1, owner != ""},
		{"entity", "x", name, 1, name != ""},
		{"version", "x", "x", version, version != 0},
	} {
		if !part.given {
			continue
		}
		if _, err := key.NewSpace(part.owner, part.name, part.version, key.Redis); err != nil {
			p.add(m[part.key].Line, "%s: %v", part.key, err)
		}
	}
}

// lifetime reads forever or a duration.
func (p *problems) lifetime(n *yaml.Node) time.Duration {
	text := p.text(n, "lifetime")
	if text == "" {
		return 0
	}
	if text == "forever" {
		return index.Forever
	}
	return p.span(n, "lifetime", "neither forever nor a duration such as 3s, 15m or 24h", time.Millisecond)
}

// duration reads a duration of at least least.
func (p *problems) duration(n *yaml.Node, what string, least time.Duration) time.Duration {
	if p.text(n, what) == "" {
		return 0
	}
	return p.span(n, what, "no duration such as 3s, 15m or 24h", least)
}

// span reads the text of a duration.
func (p *problems) span(n *yaml.Node, what, otherwise string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		p.add(n.Line, "%s %q is %s", what, n.Value, otherwise)
	case d < least:
		p.add(n.Line, "%s %s is under a %s", what, n.Value, map[time.Duration]string{
			time.Millisecond: "millisecond", time.Microsecond: "microsecond",
		}[least])
	}
	return d
}

// readIndexes reads the declarations of indexes.
func (s *schema) readIndexes(p *problems, n *yaml.Node) {
	for _, pair := range p.pairs(n, "indexes") {
		name := pair.key.Value
		if err := key.CheckIndexName(name); err != nil {
			p.add(pair.key.Line, "index %q: %v", name, err)
		}
		m := p.mapping(pair.value, "index "+name, indexKeys)
		switch {
		case m == nil:
		case m["ranked"] != nil:
			s.ranks = append(s.ranks, p.rank(name, m))
		default:
			s.fields = append(s.fields, p.field(name, pair.value, m))
		}
	}
}

// field reads the declaration n of a membership index; m holds its keys.
func (p *problems) field(name string, n *yaml.Node, m map[string]*yaml.Node) *field {
	of := "index " + name
	f := &field{mention: mention{index: name, word: "membership"}}
	source := m["membership"]
	switch unique := m["unique"]; {
	case source != nil && unique != nil:
		p.add(unique.Line, "%s is either membership or unique, not both", of)
	case unique != nil:
		source, f.word, f.unique = unique, "unique", true
	case source == nil:
		p.add(n.Line, "%s names no field: write {membership: FIELD}, {unique: FIELD} or {ranked: FIELD}", of)
	}
	for _, word := range rankKeys {
		if o := m[word]; o != nil {
			p.add(o.Line, "%s: %s is for a ranked index", of, word)
		}
	}
	if source != nil {
		f.name, f.line = p.text(source, of+": "+f.word), source.Line
	}
	f.fold, f.trim = p.boolean(m["fold"], of+": fold"), p.boolean(m["trim"], of+": trim")
	f.split = p.text(m["split"], of+": split")
	f.kind = p.text(m["type"], of+": type")
	if t := m["type"]; t != nil && f.kind != "" && kindWords[f.kind] == "" {
		p.add(t.Line, "%s: type %q is none of string, number, bool", of, f.kind)
	}
	f.buckets = p.buckets(m["buckets"], of+": buckets", opaque.MaxBuckets)
	if b := m["buckets"]; b != nil && f.unique {
		p.add(b.Line, "%s: a value of a unique index has one record, it needs no buckets", of)
	}
	if sp := m["split"]; sp != nil && f.unique {
		p.add(sp.Line, "%s: a unique index has one value, it cannot split", of)
	}
	if f.kind == "number" || f.kind == "bool" {
		for _, word := range []string{"split", "fold", "trim"} {
			if o := m[word]; o != nil {
				p.add(o.Line, "%s: %s is for texts, the type is %s", of, word, f.kind)
			}
		}
	}
	return f
}

// buckets reads into how many lists an opaque store divides ids.
func (p *problems) buckets(n *yaml.Node, what string, most int) int {
	v := p.integer(n, what)
	if v > most {
		p.add(n.Line, "%s: %d, at most %d", what, v, most)
	}
	return v
}

// buckets are those of all indexes that have some.
func (s *schema) buckets() map[string]int {
	out := map[string]int{}
	for _, f := range s.fields {
		if f.buckets > 0 {
			out[f.index] = f.buckets
		}
	}
	return out
}

// declare makes the index; i is its place among the values of a Document.
func (f *field) declare(i int) index.Index[Document] {
	o := []membership.Option{membership.Revision(f.revision())}
	if f.trim {
		o = append(o, membership.Trim)
	}
	if f.fold {
		o = append(o, membership.Fold)
	}
	if f.kind != "" {
		o = append(o, membership.Reading(f.reading))
	}
	if f.unique {
		return membership.Unique(f.index, func(d Document) (key.Value, bool) {
			values := d.at(i)
			if len(values) == 0 {
				return key.Value{}, false
			}
			return values[0], true
		}, o...)
	}
	return membership.Multi(f.index, func(d Document) []key.Value { return d.at(i) }, o...)
}

// revision stands for what the definition of an index does not show: the field that it reads, and how.
func (f *field) revision() int {
	sum := sha256.Sum256([]byte(f.name + "\x00" + f.split))
	return int(binary.BigEndian.Uint32(sum[:])>>1) | 1
}
