package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printable replaces what could steer a terminal or mislead the eye: control characters, bidirectional marks, bytes that
// are not UTF-8. Characters become \uXXXX, which means the same inside a JSON text; stray bytes become \xXX. Characters
// of keep stay.
func printable(text string, keep ...rune) string {
	clean := true
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r), strings.ContainsRune(string(keep), r):
			b.WriteString(text[i : i+size])
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// line prints one line on standard output.
func (s *session) line(text string) error {
	if s.outTerminal {
		text = printable(text)
	}
	_, err := s.out.WriteString(text + "\n")
	return err
}

// value prints a value as one line of JSON.
func (s *session) value(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return s.line(strings.TrimSuffix(b.String(), "\n"))
}

// record prints the bytes of a record: as they are, or with --json as one line of JSON. Bytes that are no JSON become an
// object {"base64": "..."} there.
func (s *session) record(raw []byte) error {
	if s.json {
		switch {
		case !json.Valid(raw):
			return s.value(base64Of{raw})
		case bytes.ContainsAny(raw, "\r\n"):
			var b bytes.Buffer
			if err := json.Compact(&b, raw); err != nil {
				return err
			}
			raw = b.Bytes()
		}
	}
	if s.outTerminal {
		raw = []byte(printable(string(raw), '\n', '\t'))
	}
	if _, err := s.out.Write(raw); err != nil {
		return err
	}
	return s.out.WriteByte('\n')
}

// id prints an id as it is, or with --json as a JSON string.
func (s *session) id(id string) error {
	if s.json {
		return s.value(textOf(id))
	}
	return s.line(id)
}

// base64Of is how JSON output shows bytes that it cannot hold.
type base64Of struct {
	Base64 []byte `json:"base64"`
}

// textOf is a text for JSON output, which cannot hold bytes that are not UTF-8.
func textOf(text string) any {
	if utf8.ValidString(text) {
		return text
	}
	return base64Of{[]byte(text)}
}

// plural gives "1 record" or "3 records".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// table prints pairs of a word and its text in two columns.
func (s *session) table(rows [][2]string) error {
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		if err := s.line(fmt.Sprintf("%-*s  %s", width, r[0], r[1])); err != nil {
			return err
		}
	}
	return nil
}
