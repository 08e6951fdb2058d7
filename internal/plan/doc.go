// Package plan turns what a record should be indexed under, and what was written for it before, into the operations of one
// write. It is pure: no server, no clock, no randomness.
//
// Data flows one way: a declaration gives Entries of a record; placed under the generation of their index they become
// Tokens, the words that a manifest row keeps; two lists of tokens give the Ops between them.
package plan
