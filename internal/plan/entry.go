package plan

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/key"
)

// Entry is one membership that a record asks for: the id belongs in Index, in a set under Value, or in an order by Score
// and, if the order is by groups, under Value.
type Entry struct {
	Index   string
	Kind    Kind
	Value   key.Value
	Grouped bool // Ranked and Lexical: Value is the group
	Unique  bool // Set
	// Score is the score of a Ranked entry as text, and the bytes before the id of a Lexical one.
	Score string
}

// Definition is what is fixed about an index: everything that decides which keys it writes.
type Definition struct {
	Name        string
	Kind        string // "membership" or "ranked"
	Encoding    string // of its values: "text", "number", "pair(text,number)", ...
	Unique      bool
	Multi       bool
	Sparse      bool
	Digest      bool     // values are kept as digests
	Normalisers []string // in the order in which they are applied
	Group       string   // encoding of the group of a ranked index, "" without groups
	Bound       Bound    // of a ranked index
	Revision    int      // counted up by hand when an extractor changes its meaning
	Err         error    // what is wrong with the declaration
}

// Bound says how much of an order a ranked index holds.
type Bound struct {
	Lexical bool
	Prefix  int  // bytes of a Lexical member before its id, -1 where they are terminated
	Low     bool // the lowest are kept
	Keep    int  // 0 keeps all
	Slack   int
	MaxAge  time.Duration // 0 without
	Unit    time.Duration // of the scores of times
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
	// Keep and Slack may change: what was trimmed stands in the floor.
	if d.Group != "" {
		b.WriteString(" within=" + d.Group)
	}
	if d.Bound.Low {
		b.WriteString(" lowest-first")
	}
	if d.Bound.MaxAge != 0 {
		b.WriteString(" max-age=" + d.Bound.MaxAge.String())
	}
	if d.Bound.Unit != 0 {
		b.WriteString(" unit=" + d.Bound.Unit.String())
	}
	if d.Revision != 0 {
		b.WriteString(" revision=" + strconv.Itoa(d.Revision))
	}
	return b.String()
}

// Kind says what an index key is on the server, and begins a token.
type Kind byte

// The kinds of index keys.
const (
	Set     Kind = 's' // a SET of ids
	Ranked  Kind = 'z' // a ZSET of ids by score
	Lexical Kind = 'l' // a ZSET of score 0, ordered by the bytes that its members begin with
)

// Token is one written entry as a manifest row keeps it: its Kind and the body of its key. It outlives the declaration
// that it came from, which is how an entry of a dropped index is still found and removed.
type Token string

// NewToken makes a token of the body of an index key. A lexical entry needs its prefix too, because the member to remove
// begins with it.
func NewToken(k Kind, body, prefix string) Token {
	t := string(rune(k)) + body
	if k == Lexical {
		t += "\t" + hex.EncodeToString([]byte(prefix))
	}
	return Token(t)
}

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
	body, _, _ := strings.Cut(string(t[1:]), "\t")
	return body
}

// Prefix is what stands before the id in the member of a lexical entry, "" for the others.
func (t Token) Prefix() string {
	_, digits, _ := strings.Cut(string(t), "\t")
	prefix, _ := hex.DecodeString(digits) // checked by Split
	return string(prefix)
}

// Placed is an entry with the token under which it is written.
type Placed struct {
	Token  Token
	Index  string
	Unique bool
	Score  string
}

// Place gives entries the generations of their indexes. The result is sorted by token and names each token once, so that
// equal states of a record give equal rows.
func Place(space key.Space, generations map[string]int, entries []Entry) ([]Placed, error) {
	out := make([]Placed, 0, len(entries))
	for _, e := range entries {
		token, err := e.token(space, generations[e.Index])
		if err != nil {
			return nil, err
		}
		out = append(out, Placed{token, e.Index, e.Unique, e.Score})
	}
	slices.SortFunc(out, func(a, b Placed) int { return strings.Compare(string(a.Token), string(b.Token)) })
	return slices.CompactFunc(out, func(a, b Placed) bool { return a.Token == b.Token }), nil
}

// token is the entry as a row keeps it.
func (e *Entry) token(space key.Space, generation int) (Token, error) {
	var value *key.Value
	if e.Kind == Set || e.Grouped {
		value = &e.Value
	}
	var buf [256]byte
	b, err := space.AppendBody(append(buf[:0], byte(e.Kind)), e.Index, generation, value)
	if err != nil {
		return "", err
	}
	if e.Kind == Lexical {
		b = hex.AppendEncode(append(b, '\t'), []byte(e.Score))
	}
	return Token(b), nil
}

// Tokens are the tokens of placed entries, in their order.
func Tokens(placed []Placed) []Token {
	out := make([]Token, len(placed))
	for i, p := range placed {
		out[i] = p.Token
	}
	return out
}
