// Package redistest gives the tests of this module their servers and their
// second opinion.
//
// Servers: [Mini] runs miniredis inside the test, [Redis] a real redis-server
// child process, [Cluster] a real cluster of one node, which enforces slots,
// [Replica] and [Memcached] what their names say. [Each] runs one test on the
// first three. Every server ends with its test, and with the test process if
// that one is killed.
//
// Checks: [Checked] fails a script that touches a key it did not declare,
// [Count] counts round trips, [Snapshot] and [Diff] show that nothing changed,
// and [Oracle] derives every index entry again from the records by brute
// force.
//
// The package imports no other package of the module. The oracle knows the
// layout of the keys from the design only, so that a mistake of the write path
// cannot hide behind the same mistake here.
package redistest
