package membership

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// DefaultMaxValues is how many distinct values of a Multi index one record may have where MaxValues states nothing else.
const DefaultMaxValues = 1000

// Option sets one index. Options that change values apply to what is written and what is asked alike: first every
// Normalize, then Fold and Trim, each in the order given.
type Option struct {
	apply func(*settings)
}

// settings are the options of one index before its value type is known.
type settings struct {
	normalise []any      // func(V) V
	texts     []textStep // Fold and Trim, applied to text values
	textNames []string
	reading   any // func(string) ([]V, error)
	maxValues int
	revision  int
	digest    bool
	wrong     []error
}

// names are the steps that change values, in the order in which they are applied.
func (s *settings) names() []string {
	names := make([]string, 0, len(s.normalise)+len(s.textNames))
	for range s.normalise {
		names = append(names, "normalize")
	}
	return append(names, s.textNames...)
}

type textStep func(string) string

// Fold compares texts without case, by full Unicode case folding: "STRASSE" and "straße" are one value. Bytes that are not
// UTF-8 stay as they are. Only for text values.
var Fold = Option{func(s *settings) { s.text("fold", fold) }}

// Trim ignores white space around texts, as Unicode defines it. Only for text values.
var Trim = Option{func(s *settings) { s.text("trim", strings.TrimSpace) }}

// Normalize maps values to the one that stands for them, such as a host name to its registered form. fn must be pure, and
// mapping twice must give what mapping once gives. Open checks that V is the value type of the index. Where a change of
// fn changes keys, count Revision up.
func Normalize[V any](fn func(V) V) Option {
	return Option{func(s *settings) {
		if fn == nil {
			s.wrong = append(s.wrong, fmt.Errorf("Normalize has no function"))
			return
		}
		s.normalise = append(s.normalise, fn)
	}}
}

// Reading says which values a text typed by a person stands for, on the command line for example. By default a text is
// read as the value type of the index demands.
func Reading[V any](fn func(text string) ([]V, error)) Option {
	return Option{func(s *settings) { s.reading = fn }}
}

// MaxValues is the largest number of distinct values that one record may have in a Multi index; more are ErrTooLarge before
// anything is written. DefaultMaxValues by default. Each value is a key that a write touches.
func MaxValues(n int) Option {
	return Option{func(s *settings) {
		if n < 1 {
			s.wrong = append(s.wrong, fmt.Errorf("MaxValues(%d): at least 1", n))
		}
		s.maxValues = n
	}}
}

// Revision counts changes of an extractor or normaliser that code cannot see. A new revision is a new generation of the
// index: it is built beside the old one.
func Revision(n int) Option { return Option{func(s *settings) { s.revision = n }} }

// Digest keeps only the SHA-256 of each value in keys and rows, for values that should not be read there, such as e-mail
// addresses. Whoever can guess a value can still check it.
var Digest = Option{func(s *settings) { s.digest = true }}

func (s *settings) text(name string, step textStep) {
	s.texts = append(s.texts, step)
	s.textNames = append(s.textNames, name)
}

// fold is full case folding of what is UTF-8 in s.
func fold(s string) string {
	if isLowerASCII(s) {
		return s
	}
	caser := cases.Fold()
	if utf8.ValidString(s) {
		return strings.Map(foldCherokee, caser.String(s))
	}
	var b strings.Builder
	for len(s) > 0 {
		n := 0
		for n < len(s) {
			r, size := utf8.DecodeRuneInString(s[n:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			n += size
		}
		b.WriteString(strings.Map(foldCherokee, caser.String(s[:n])))
		if n < len(s) {
			b.WriteByte(s[n])
			n++
		}
		s = s[n:]
	}
	return b.String()
}

// foldCherokee makes the small letters of that script large, as Unicode folds them: the large ones are the older. The caser
// of x/text exchanges the two instead.
func foldCherokee(r rune) rune {
	switch {
	case 0xAB70 <= r && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case 0x13F8 <= r && r <= 0x13FD:
		return r - 8
	}
	return r
}

// isLowerASCII reports a text that folding leaves alone.
func isLowerASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || ('A' <= s[i] && s[i] <= 'Z') {
			return false
		}
	}
	return true
}
