package key

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// mode says which bytes a segment escapes beyond those that every segment does.
type mode uint8

const (
	modeASCII mode = 1 << iota // space and bytes from 0x80 up
	modeTag                    // '.', which parts the name of a tag from its bucket
)

const (
	emptySegment = "%_" // `{}` is no hash tag and "::" is hard to see
	digestMark   = "%#"
	digestHex    = 2 * sha256.Size
	digestLen    = len(digestMark) + digestHex
	upperHex     = "0123456789ABCDEF"
)

// always marks the bytes that are escaped in every segment: the separator, the
// escape itself, braces (hash tags), the comma (pairs), what a glob pattern of
// SCAN, KEYS or an ACL rule would read as a pattern, and control bytes.
var always = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t[0x7f] = true
	for _, c := range []byte(`:%{},*?[]\^`) {
		t[c] = true
	}
	return t
}()

// wide reports whether only some stores take the byte as it is.
func wide(c byte) bool { return c == ' ' || c >= 0x80 }

// escapes reports whether the byte at position i of a segment is escaped.
func (m mode) escapes(c byte, i int) bool {
	return always[c] ||
		c == '~' && i == 0 ||
		m&modeASCII != 0 && wide(c) ||
		m&modeTag != 0 && c == '.'
}

// textLen returns the length of s as an encoded segment.
func textLen(s string, m mode) int {
	if s == "" {
		return len(emptySegment)
	}
	n := len(s)
	for i := range len(s) {
		if m.escapes(s[i], i) {
			n += 2
		}
	}
	return n
}

// appendText appends s as an encoded segment of any length.
func appendText(b []byte, s string, m mode) []byte {
	if s == "" {
		return append(b, emptySegment...)
	}
	for i := range len(s) {
		if m.escapes(s[i], i) {
			b = append(b, '%', upperHex[s[i]>>4], upperHex[s[i]&15])
		} else {
			b = append(b, s[i])
		}
	}
	return b
}

// checkText reports whether appendText could have written seg. It allocates
// nothing: the write path asks it about every entry of a manifest row.
func checkText(seg string, m mode) bool {
	if seg == emptySegment {
		return true
	}
	at := 0 // position in the decoded text
	for i := 0; i < len(seg); i++ {
		if seg[i] != '%' {
			if m.escapes(seg[i], at) {
				return false
			}
		} else {
			c, ok := unhex(seg[i+1:])
			if !ok || !m.escapes(c, at) {
				return false
			}
			i += 2
		}
		at++
	}
	return at > 0
}

// plainText decodes a segment that checkText accepted.
func plainText(seg string) string {
	if seg == emptySegment {
		return ""
	}
	if strings.IndexByte(seg, '%') < 0 {
		return seg
	}
	b := make([]byte, 0, len(seg))
	for i := 0; i < len(seg); i++ {
		c := seg[i]
		if u, ok := unhex(seg[i+1:]); c == '%' && ok {
			c = u
			i += 2
		}
		b = append(b, c)
	}
	return string(b)
}

// unhex reads the two upper-case hex digits that s begins with.
func unhex(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	hi, lo := strings.IndexByte(upperHex, s[0]), strings.IndexByte(upperHex, s[1])
	return byte(hi<<4 | lo&15), hi >= 0 && lo >= 0
}

// appendASCII appends an encoded segment with its wide bytes escaped too.
func appendASCII(b []byte, seg string) []byte {
	for i := range len(seg) {
		if wide(seg[i]) {
			b = append(b, '%', upperHex[seg[i]>>4], upperHex[seg[i]&15])
		} else {
			b = append(b, seg[i])
		}
	}
	return b
}

// withoutASCII undoes appendASCII.
func withoutASCII(seg string) string {
	if !escapesWide(seg) {
		return seg
	}
	b := make([]byte, 0, len(seg))
	for i := 0; i < len(seg); i++ {
		c := seg[i]
		if u, ok := unhex(seg[i+1:]); c == '%' && ok && wide(u) {
			c = u
			i += 2
		}
		b = append(b, c)
	}
	return string(b)
}

// escapesWide reports whether an encoded text escapes a wide byte, which only
// rules with modeASCII do.
func escapesWide(s string) bool {
	for i := range len(s) {
		if s[i] == '%' {
			if c, ok := unhex(s[i+1:]); ok && wide(c) {
				return true
			}
		}
	}
	return false
}

// appendDigest appends the digest of the canonical bytes as a segment.
func appendDigest(b []byte, canonical []byte) []byte {
	sum := sha256.Sum256(canonical)
	return hex.AppendEncode(append(b, digestMark...), sum[:])
}

// digestOf returns the hex digits of a digested segment.
func digestOf(seg string) (string, bool) {
	if !strings.HasPrefix(seg, digestMark) || !isDigest(seg[len(digestMark):]) {
		return "", false
	}
	return seg[len(digestMark):], true
}

// isDigest reports whether s is a SHA-256 sum in lower-case hex.
func isDigest(s string) bool {
	if len(s) != digestHex {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// appendSegment appends an id or a field: plain if it is short enough, else
// the digest of its bytes.
func appendSegment(b []byte, s string, r Rules, digest bool) []byte {
	// The length of s alone decides first, so that a huge id is hashed only.
	if digest || len(s) > r.maxSegment || textLen(s, r.mode) > r.maxSegment {
		return appendDigest(b, []byte(s))
	}
	return appendText(b, s, r.mode)
}

// readSegment decodes an id or a field. A digest comes back as its hex digits.
func readSegment(seg string, r Rules) (s string, digested, ok bool) {
	if sum, ok := digestOf(seg); ok {
		return sum, true, true
	}
	if len(seg) > r.maxSegment || !checkText(seg, r.mode) {
		return "", false, false
	}
	return plainText(seg), false, true
}
