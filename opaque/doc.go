// Package opaque keeps the same typed declaration on stores that only hand bytes back: no sets, no scripts, and nothing that
// changes two keys at once. An index is then one small entry per value, changed by compare-and-swap, and the record decides
// what is true.
//
//	kv := memcachekv.New("10.0.0.5:11211")
//	accounts, err := opaque.Open(ctx, kv, Accounts)
//	err = accounts.Create(ctx, a)                              // record first, entries, one swap that commits
//	owner, err := accounts.One(ctx, ByEmail.Is("ann@x.org"))   // unique: at most one live record holds a value
//	for a, err := range accounts.Find(ctx, ByStatus.Is("new")) { ... }
//
// # What holds
//
//   - All indexes of a record switch at one instant, when the record does. Whatever crashes, a live record has its entries.
//   - A query gives no record that did not have the value, and misses none that had it throughout.
//   - A unique value has at most one live holder.
//   - A write is done, or not, or ErrUnknown; never half done and never done twice.
//
// They hang on three things that the store has to offer, see KV, and on nothing that a clock says: a key is changed by one
// server, a token is never issued twice, nothing is lost. Loss is looked for: after a restart, a flush or an eviction the
// indexes are suspect, misses are answered with ErrSuspect, and new unique values are refused or looked for among all
// records, until Run has rebuilt what is missing.
//
// # What does not
//
// There is no snapshot over several records, no order, no range, and no way to let two records exchange unique values in one
// step: give one of them a third value first. Ranked indexes are refused by Open. A list is bounded, see Options.
//
// docs/opaque.md describes the protocol, its hazards and the test that holds each.
package opaque
