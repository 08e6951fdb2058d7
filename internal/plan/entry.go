package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/key"
)

// Entry is one membership that a record asks for: the id belongs under Value in Index.
type Entry struct {
	Index  string
	Value  key.Value
	Unique bool
}

// Definition is what is fixed about an index: everything that decides which keys it writes.
type Definition struct {
	Name        string
	Kind        string // "membership"
	Encoding    string // of its values: "text", "number", "pair(text,number)", ...
	Unique      bool
	Multi       bool
	Sparse      bool
	Digest      bool     // values are kept as digests
	Normalisers []string // in the order in which they are applied
	Revision    int      // counted up by hand when an extractor changes its meaning
	Err         error    // what is wrong with the declaration
}

// Canonical is the definition as text, the same for the same keys whatever the code looks like. It is hashed into the
// fingerprint of the entity type.
func (d Definition) Canonical() string {
	var b strings.Builder
	b.WriteString(d.Name + " " + d.Kind + " " + d.Encoding)
	for _, f := range []struct {
		on   bool
		name string
	}{{d.Unique, "unique"}, {d.Multi, "multi"}, {d.Sparse, "sparse"}, {d.Digest, "digest"}} {
		if f.on {
			b.WriteString(" " + f.name)
		}
	}
	for _, n := range d.Normalisers {
		b.WriteString(" " + n)
	}
	if d.Revision != 0 {
		b.WriteString(" revision=" + strconv.Itoa(d.Revision))
	}
	return b.String()
}

// Kind says what an index key is on the server, and begins a token.
type Kind byte

// Set is the kind of a membership index key.
const Set Kind = 's'

// Token is one written entry as a manifest row keeps it: its Kind and the body of its key. It outlives the declaration
// that it came from, which is how an entry of a dropped index is still found and removed.
type Token string

// NewToken makes a token of the body of an index key.
func NewToken(k Kind, body string) Token { return Token(string(rune(k)) + body) }

// Kind is the kind of the index key.
func (t Token) Kind() Kind {
	if t == "" {
		return 0
	}
	return Kind(t[0])
}

// Body is the body of the index key, for key.Partition.Entry.
func (t Token) Body() string {
	if t == "" {
		return ""
	}
	return string(t[1:])
}

// Placed is an entry with the token under which it is written.
type Placed struct {
	Token  Token
	Index  string
	Unique bool
}

// Place gives entries the generations of their indexes. The result is sorted by token and names each token once, so that
// equal states of a record give equal rows.
func Place(space key.Space, generations map[string]int, entries []Entry) ([]Placed, error) {
	out := make([]Placed, 0, len(entries))
	for _, e := range entries {
		body, err := space.EntryBody(e.Index, generations[e.Index], e.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, Placed{NewToken(Set, body), e.Index, e.Unique})
	}
	slices.SortFunc(out, func(a, b Placed) int { return strings.Compare(string(a.Token), string(b.Token)) })
	return slices.CompactFunc(out, func(a, b Placed) bool { return a.Token == b.Token }), nil
}

// Tokens are the tokens of placed entries, in their order.
func Tokens(placed []Placed) []Token {
	out := make([]Token, len(placed))
	for i, p := range placed {
		out[i] = p.Token
	}
	return out
}
