// Package index declares entity types, writes their records together with every index entry in one atomic step, and
// answers queries by exact value.
//
// Define names an entity type once: its owner and name, how a record gives its id, its format version, its lifetime and
// its indexes, which come from package membership. Open turns the declaration into a Collection on a Redis client. Every
// write of the collection moves a record and its index entries by one script, so no reader and no crash ever sees one
// without the other; every query asks the index first, then loads the records and checks them again.
//
// Data flows one way: the declaration gives the entries of a record, a plan names the keys and operations, a script
// checks and applies them, and a status comes back for each record.
package index
