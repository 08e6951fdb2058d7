// Package bench measures the library against hand-written code on the same server, over the same client, in the same run:
// what a put, a change, an update, a batch, a page and a verification cost beside the plain commands that people write.
//
// Both sides take turns in short rounds, so that a server or a machine that slows down slows down both. A result is the
// round with the median ratio. lockstep bench and the benchmarks of this package run the same cases.
//
// The hand-written side is what a careful programmer writes with go-redis: MULTI and EXEC where three keys must agree,
// WATCH where the old value decides, one pipeline for a batch, ZREVRANGE and MGET for a page. It has no bookkeeping, so it
// cannot tell what is wrong after a crash, and it does not collect, fence or verify.
package bench
