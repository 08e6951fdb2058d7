// Package typed turns the values of Go types into index values, by type: time.Time first, then MarshalText, then the kind.
// The index packages share it, so that a value means the same as a member's value and as a group.
package typed
