package index

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/lockstep-go/lockstep/lua"
)

// Cursor is where a page ended: pass it to Order.After to go on. It is text without special characters, holds a score and
// an id, and is good for the query that gave it, with any page size: the next page begins after that pair, wherever
// records have moved meanwhile. "" is the beginning.
type Cursor string

// cursorQuery is how many bytes of a query's digest a cursor holds.
const cursorQuery = 8

// newCursor makes the cursor of a query after a pair.
func newCursor(query string, after lua.Pair) Cursor {
	b := []byte(digest(query)[:cursorQuery])
	b = binary.AppendUvarint(b, uint64(len(after.Score)))
	b = append(b, after.Score...)
	b = append(b, after.Member...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// open gives the pair that a cursor stands for.
func (c Cursor) open(query string) (after lua.Pair, err error) {
	if c == "" {
		return after, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(c))
	if err != nil || len(b) < cursorQuery+1+4 || strings.ContainsAny(string(c), "\r\n") { // which the decoder skips
		return after, fmt.Errorf("%w: it was cut or altered", ErrCursor)
	}
	body, sum := b[:len(b)-4], b[len(b)-4:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return after, fmt.Errorf("%w: it was cut or altered", ErrCursor)
	}
	if !strings.HasPrefix(digest(query), string(body[:cursorQuery])) {
		return after, fmt.Errorf("%w: it belongs to another query", ErrCursor)
	}
	size, n := binary.Uvarint(body[cursorQuery:])
	rest := body[cursorQuery:]
	if n <= 0 || size > uint64(len(rest)-n) {
		return after, fmt.Errorf("%w: it was cut or altered", ErrCursor)
	}
	rest = rest[n:]
	return lua.Pair{Score: string(rest[:size]), Member: string(rest[size:])}, nil
}
