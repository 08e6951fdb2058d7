// Package key makes every key of an indexed entity, and takes every key apart.
//
// No other part of a program joins a key by hand: one builder and one parser
// keep ids apart from values, entities apart from one another, and all keys of
// a partition in one slot of a cluster. The package needs no server and no
// index; it is as useful for a session or a rate-limit bucket.
//
// # Layout
//
//	<owner>:<entity>:{<tag>}:<id>[:<field>]:v<version>            record
//	<owner>:<entity>:{<tag>}:~<index>.<gen>:<value>:v<version>    membership SET
//	<owner>:<entity>:{<tag>}:~<index>.<gen>[:<group>]:v<version>  ranked ZSET
//	<owner>:<entity>:{<tag>}:~~manifest:v<version>                and ~~meta, ~~expiry, ~~floor, ~~probe
//	<owner>:<entity>:~~catalog:v<version>                         one for all partitions
//
// The version ends every key: two format versions are two keyspaces that never
// touch. The generation is part of an index key: a changed definition is built
// beside the old one. A tag is a name, or a name, the number of a bucket and a
// suffix that places it: {account}, {account.17.hNU}.
//
// # Segments
//
// Ids, values, fields and names of tags may hold any bytes. In a key
//
//   - ':' '%' '{' '}' ',' '*' '?' '[' ']' '\' '^', control bytes, and '~' at the
//     beginning are written as % and two upper-case hex digits, and so is '.' in
//     the name of a tag;
//   - spaces and bytes from 0x80 up stay as they are on Redis and are escaped for
//     memcached;
//   - the empty text is %_;
//   - a text over the limit of the store, or declared untrusted, is %# and the
//     64 lower-case hex digits of its SHA-256.
//
// Everywhere else % is followed by two hex digits, so the two marks never meet
// an escaped text. Two different ids, or two different values, share a key only
// if their SHA-256 is the same.
//
// # Values
//
// The value of an index is typed. A text stands as it is: suspended. Other kinds
// begin with '~', which no text does:
//
//	~btrue ~bfalse               a truth value
//	~n42 ~n-0.5 ~n1e400 ~ninf    a number: integers, floats and decimals are one kind
//	~t20180207T012613.84Z        an instant, in UTC
//	~peu,~n42                    a pair; a pair inside a pair has its own ~p: ~p~pa,b,c
//	%#9f86d0...                  a digest of any kind
//
// A number has one spelling: written out if at most twenty zeros fill it up, else
// its digits and an exponent. For ids, fields and names of tags the digest is
// that of their bytes; for values it is that of the segment as it would stand in
// a key on Redis, so that no text has the digest of a number.
package key
