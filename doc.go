// Package lockstep is the root of a library that keeps secondary indexes on stores that answer only by key, Redis first.
// It holds no code; the packages below it do.
//
// A program declares an index on an entity type once. From then on every write moves the record and all of its index
// entries in one step of the server, queries answer by exact value or by top-N, and an index that is not whole says so instead of
// answering with a short list. Nothing needs a search module, keyspace events, a listener or a background process, and
// what is stored is plain Redis: a STRING per record, a SET per indexed value, a ZSET per order, and per partition a HASH that remembers
// which entries were written for which id, so that a removal takes away what was written and not what would be written
// today.
//
//	var (
//		ByStatus = membership.New("status", func(a Account) string { return a.Status })
//		ByEmail  = membership.Unique("email", func(a Account) (string, bool) { return a.Email, a.Email != "" }, membership.Fold)
//
//		Accounts = index.Define("acme:billing", "account", index.Options[Account]{
//			ID: func(a Account) string { return a.ID }, Version: 1, Lifetime: index.Forever,
//			Indexes: []index.Index[Account]{ByStatus, ByEmail},
//		})
//	)
//
// # Packages
//
//	index         define an entity type, open it on a client, write and query: begin here
//	membership    indexes by exact value: plain, sparse, multi-valued, unique
//	ranked        indexes by order: top-N, ranges, groups, trimmed on write
//	repair        verify, repair and build indexes, sweep what has expired
//	opaque        the same declaration on stores that only hand bytes back
//	key           makes and takes apart every key; useful alone
//	lua           the scripts and their typed wrappers; no other package sends one
//	indextest     servers and checks for the tests of a program that uses the library
//	cli           the command-line tool, to embed with typed entities
//	cmd/lockstep  the same tool for any JSON lines, declared by a schema file
//
// Imports only go down: cmd/lockstep, cli, repair, then membership and ranked, then index, then lua and key. The design, the guarantees and
// the decisions behind them are in the folder docs.
package lockstep
