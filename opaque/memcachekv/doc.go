// Package memcachekv keeps opaque values on one memcached server.
//
// It has a connection layer of its own, because a token of memcached is only good in the life of the server that issued
// it: after a restart tokens begin at 1 again, and a pool that hides the reconnect can store over somebody else's value. A
// token here names the connection that it came from; once that connection is gone, the token is refused with
// opaque.ErrChanged and nothing is sent.
//
// Writes are classic where the meta commands are not safe: on memcached 1.6.18 an "ms" with a compare value that fails for
// its size or for memory removes the old value, while the classic "cas" leaves it. The token of the new value is read on the
// same connection in the same round trip; each value carries a random nonce, so that another writer's value is never taken
// for it.
//
// Run the server with -M, which refuses writes when its memory is full instead of throwing values away. Evictions, flushes
// and restarts are noticed (opaque.Witness). One server is one store: for several, open several stores.
package memcachekv
