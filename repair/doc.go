// Package repair proves or restores the indexes of an entity type after an incident: records written behind the library's
// back, keys lost or overwritten, a restore from a backup, an index that is new.
//
// Verify reads, Run fixes what Verify finds, Build fills one index that is not ready. All three go over the records (what
// is missing, stale, or has a wrong score), over the manifest, and over the index keys (what has no record), while readers
// and writers go on. What is found is read again with its record unchanged before it is reported, and a fix is a script on
// one record that does nothing if the record has moved since: no live entry is ever removed, and none is added for a
// record that has changed meanwhile.
package repair
