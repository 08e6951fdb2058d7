package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/ranked"
)

// rank is one ranked index of a schema file.
type rank struct {
	mention
	group    *mention // the field inside whose values it ranks, nil without
	instants string   // how the field holds instants: a key of timeUnits or "rfc3339", "" for numbers and texts
	text     bool     // texts in the order of their bytes
	exact    bool
	keep     int
	slack    *int
	maxAge   time.Duration
	low      bool
}

// rankKeys are the keys that only a ranked index has.
var rankKeys = []string{"keep", "slack", "within", "time", "max_age", "exact", "lowest_first"}

// timeUnits are the ways in which a number can hold an instant since 1970, and how many digits of such a number are below
// a second.
var timeUnits = map[string]int{"s": 0, "ms": 3, "us": 6}

// rank reads the declaration of a ranked index; m holds its keys.
func (p *problems) rank(name string, m map[string]*yaml.Node) *rank {
	of := "index " + name
	field := m["ranked"]
	r := &rank{mention: mention{index: name, word: "ranked", name: p.text(field, of+": ranked"), line: field.Line}}
	for _, word := range []string{"membership", "unique", "split", "fold", "trim", "buckets"} {
		if n := m[word]; n != nil {
			p.add(n.Line, "%s: %s is not for a ranked index", of, word)
		}
	}
	if n := m["within"]; n != nil {
		r.group = &mention{index: name, word: "within", name: p.text(n, of+": within"), line: n.Line}
	}
	r.keep = p.integer(m["keep"], of+": keep")
	if n := m["slack"]; n != nil {
		slack := p.natural(n, of+": slack")
		r.slack = &slack
		if m["keep"] == nil {
			p.add(n.Line, "%s: slack is for an index with keep", of)
		}
	}
	r.exact, r.low = p.boolean(m["exact"], of+": exact"), p.boolean(m["lowest_first"], of+": lowest_first")
	p.rankTimes(r, of, m)
	switch kind := p.text(m["type"], of+": type"); {
	case kind == "" || kind == "number" && r.instants == "":
	case r.instants != "":
		p.add(m["type"].Line, "%s: give either time or type", of)
	case kind != "string":
		p.add(m["type"].Line, "%s: type %q has no order here: it is number or string", of, kind)
	case !r.exact:
		p.add(m["type"].Line, "%s: texts are ordered by their bytes: write exact: true", of)
	default:
		r.text = true
	}
	return r
}

// rankTimes reads the keys that are about instants.
func (p *problems) rankTimes(r *rank, of string, m map[string]*yaml.Node) {
	if n := m["time"]; n != nil {
		r.instants = p.text(n, of+": time")
		if _, known := timeUnits[r.instants]; r.instants != "" && !known && r.instants != "rfc3339" {
			p.add(n.Line, "%s: time %q is none of s, ms, us, rfc3339", of, r.instants)
		}
	}
	n := m["max_age"]
	if n == nil {
		return
	}
	r.maxAge = p.duration(n, of+": max_age", time.Microsecond)
	switch {
	case m["time"] == nil:
		p.add(n.Line, "%s: max_age needs to know how the field holds a time: write time: ms, or one of s, us, rfc3339", of)
	case r.exact:
		p.add(n.Line, "%s: max_age is not for an index with exact: true", of)
	case r.low:
		p.add(n.Line, "%s: max_age keeps the newest, lowest_first the oldest", of)
	}
}

// declare makes the index; i is its place among those of a Document.
func (r *rank) declare(i int) index.Index[Document] {
	switch {
	case r.text:
		return declareRank(r, i, ranked.SparseExact, func(p place) string { return p.text })
	case r.instants != "" && r.exact:
		return declareRank(r, i, ranked.SparseExact, func(p place) time.Time { return p.at })
	case r.instants != "":
		return declareRank(r, i, ranked.Sparse, func(p place) time.Time { return p.at })
	case r.exact:
		return declareRank(r, i, ranked.SparseExact, func(p place) int64 { return p.whole })
	default:
		return declareRank(r, i, ranked.Sparse, func(p place) float64 { return p.number })
	}
}

func declareRank[S any](
	r *rank, i int,
	make func(string, func(Document) (S, bool), ...ranked.Option) *ranked.Index[Document, S], score func(place) S,
) index.Index[Document] {
	o := []ranked.Option{ranked.Revision(r.revision())}
	if r.keep > 0 {
		o = append(o, ranked.Keep(r.keep))
	}
	if r.slack != nil {
		o = append(o, ranked.Slack(*r.slack))
	}
	if r.maxAge > 0 {
		o = append(o, ranked.MaxAge(r.maxAge))
	}
	if r.low {
		o = append(o, ranked.LowestFirst())
	}
	ix := make(r.index, func(d Document) (S, bool) {
		p := d.place(i)
		return score(p), p.ok
	}, o...)
	if r.group == nil {
		return ix
	}
	return ranked.Within(func(d Document) string { return d.place(i).group }, ix)
}

// revision stands for what the definition of an index does not show: the fields that it reads, and how.
func (r *rank) revision() int {
	parts := []string{r.name, r.instants}
	if r.group != nil {
		parts = append(parts, r.group.name)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return int(binary.BigEndian.Uint32(sum[:])>>1) | 1
}

// unbounded reports an index that nothing keeps from growing with its records.
func (r *rank) unbounded() bool { return r.keep == 0 && r.maxAge == 0 }

// mentions are the fields that a schema file names, in its order.
func (s *schema) mentions() []*mention {
	var out []*mention
	for _, f := range s.fields {
		out = append(out, &f.mention)
	}
	for _, r := range s.ranks {
		out = append(out, &r.mention)
		if r.group != nil {
			out = append(out, r.group)
		}
	}
	slices.SortStableFunc(out, func(a, b *mention) int { return a.line - b.line })
	return out
}
