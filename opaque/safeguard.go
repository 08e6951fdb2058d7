package opaque

// safeguard is a part of the protocol that tests can take away, one at a time, to show that it is needed: the simulator has
// to find the damage. No program can set one.
type safeguard uint32

const (
	// recordFirst: a create takes the primary key with a pending record before it writes any entry.
	recordFirst safeguard = 1 << iota
	// addBefore: entries are in place before the record shows them.
	addBefore
	// commitByToken: the commit names the token that was read before the entries were written.
	commitByToken
	// removeAfter: old entries are removed after the commit.
	removeAfter
	// removeExactly: what is removed from a list is the entry of one write, not whatever the id has there.
	removeExactly
	// appendOnly: a writer that finds another entry of its id adds its own and leaves the other alone.
	appendOnly
	// fenceBeforeCleaning: a cleaner makes the commit of an entry's write impossible before it removes the entry.
	fenceBeforeCleaning
	// fenceBeforeStealing: so does a writer that takes over a claim.
	fenceBeforeStealing
	// fenceOwnRecord: also where the claim belongs to another attempt on the writer's own record.
	fenceOwnRecord
	// fencePending: and a pending record is deleted by its token.
	fencePending
	// fenceUnknown: a commit of unknown outcome is fenced before its entries are removed.
	fenceUnknown
	// claimFirst: whoever judges a claim reads it before its record.
	claimFirst
	// releaseByToken: a claim is removed by the token under which it was read.
	releaseByToken
	// deleteByToken: a record is deleted by the token under which it was read.
	deleteByToken
	// freshWriteID: every attempt has a write id of its own.
	freshWriteID
	// checkOnRead: a query believes the record and not the list.
	checkOnRead
	// keepExpiry: a fence passes the record's expiry on.
	keepExpiry
	// confirmAppend: an append of unknown outcome is looked for before the commit.
	confirmAppend
	// confirmDouble: a missing entry is reported only if the record did not move while it was looked for.
	confirmDouble
	// notice: losses are looked for.
	noticeLoss
	// onceOnly: an update of unknown outcome is repeated only if it has certainly not happened.
	onceOnly
)

// keeps reports whether a safeguard is in force.
func (c *core) keeps(s safeguard) bool { return c.o.without&s == 0 }
