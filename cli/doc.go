// Package cli is the command-line tool of Lockstep: load, get, put, delete, find, count and rank records; verify, repair and
// build indexes, sweep what has expired; take keys apart, print the ACL rule of an entity type; a demonstration, and a benchmark.
//
// A program embeds it with the entity types that it declares, so that operators work with exactly its indexes and codecs:
//
//	os.Exit(cli.New(Accounts, Orders).Run(ctx, os.Args[1:]))
//
// Without an entity type every command takes one from a schema file (-s), which declares indexes over the fields of JSON
// objects. That is the program cmd/lockstep. Both run the same commands; a schema file is only another way to make an
// index.Declared.
//
// # Exit codes
//
//	0  fine
//	1  a record was not found, refused or in conflict: the data is to blame
//	2  wrong usage, a wrong schema file, or the work could not be done: no server, no permission, interrupted
//
// Once a pass of verify, repair, build or sweep has begun, the code is that of its report, a sum of: 1 findings are left or
// an index is not ready, 2 it failed, 4 something was skipped, 8 it was stopped, 16 another run is active.
//
// Results go to standard output. Errors go to standard error, one line each, and name entity, id and index where they are
// known; with --json each is an object {"error": "..."}.
//
// # Opaque stores
//
// With --kv, load, get, put, delete, find, count, verify and repair work on a store that only hands bytes back: memcached, or
// a Redis used like one. A program that opens its entity types there with options of its own gives them in App.Opaque.
package cli
