// Package ranked makes indexes that answer "the twenty most recent" and "all from here to there": ids in the order of a
// score, bounded on write.
//
// New and Sparse keep a float64 score, exact for integers up to 2^53, floats and times by the microsecond; Exact keeps an
// order of bytes, exact for every int64 and uint64, nanoseconds and texts. What an encoding cannot hold is refused before
// anything is written. Within ranks inside groups.
//
// Keep bounds an index: what falls out of the best n is trimmed by the write that pushes it out, and the best of what may
// still be outside is remembered as the floor. By it every page says whether it is complete: a page that trimming or
// deletion may have shortened is flagged, never passed off as whole.
//
// Equal scores are ordered by id, byte by byte, in the direction of the query, so every record has one place on a page. The
// rank of one record is one more than the Count of those Above its score, or Below it where the lowest come first: equal
// scores share the better rank, and the next one after k of them is k further on. Where trimmed records may be among those
// that count, Count says so by ErrIncomplete.
package ranked
