package repair

import (
	"encoding/json"
	"time"
)

// Kind says what is wrong with an entry or a key.
type Kind string

// The kinds of findings.
const (
	Missing     Kind = "missing"     // a record without one of its entries
	Stale       Kind = "stale"       // an entry for a value that its record does not have
	Orphan      Kind = "orphan"      // an entry without a record
	Misranked   Kind = "misranked"   // an entry with another score than its record has
	Undecodable Kind = "undecodable" // a record that does not decode, or whose values no index can hold; never touched
	Foreign     Kind = "foreign"     // a key or value that is none of Lockstep's where its own belong; never touched
)

// Finding is one entry, record or key that is not as it should be.
type Finding struct {
	Kind   Kind
	Index  string // "" if it is about no single index
	ID     string // of the record, "" if it is about none
	Key    string // the index key of an entry, else the key of the record or of the foreign value
	Detail string // for people, "" if the kind says it all
	Fixed  bool
	Err    error // why it was not fixed, or does not decode: *index.ConflictError for a unique value in other hands
}

// MarshalJSON writes a finding with its error as text.
func (f Finding) MarshalJSON() ([]byte, error) {
	var text string
	if f.Err != nil {
		text = f.Err.Error()
	}
	return json.Marshal(struct {
		Kind   Kind   `json:"kind"`
		Index  string `json:"index,omitempty"`
		ID     string `json:"id,omitempty"`
		Key    string `json:"key"`
		Detail string `json:"detail,omitempty"`
		Fixed  bool   `json:"fixed"`
		Err    string `json:"error,omitempty"`
	}{f.Kind, f.Index, f.ID, f.Key, f.Detail, f.Fixed, text})
}

// Report is the outcome of a pass. The counts of findings are of entries; those of Undecodable are of records, those of
// Foreign of keys.
type Report struct {
	Entity string `json:"entity"` // owner and name

	Records int64 `json:"records"` // records looked at
	Entries int64 `json:"entries"` // entries that these records ask for

	Missing     int64 `json:"missing"`
	Stale       int64 `json:"stale"`
	Orphan      int64 `json:"orphan"`
	Misranked   int64 `json:"misranked"`
	Undecodable int64 `json:"undecodable"`
	Foreign     int64 `json:"foreign"`

	// Fixed counts the findings that were put right.
	Fixed int64 `json:"fixed"`
	// Skipped counts what could not be put right or not be judged: a unique value that two records ask for, and entries at
	// whose key a foreign value sits.
	Skipped int64 `json:"skipped"`
	// Refilled counts entries that a bounded ranked index had trimmed and that Run took back, because better ones are gone.
	Refilled int64 `json:"refilled"`
	// Expired counts entries of records whose lifetime has ended and that nothing has collected yet. They are no findings:
	// queries hide them. Run collects them.
	Expired int64 `json:"expired"`
	// Rows counts manifest rows that were lost, damaged or left over while the entries were as they should be. They are no
	// findings: no query reads them. Run writes them again. Verify sees only rows that are lost or left over, and while
	// others write, it counts some that are just being written.
	Rows int64 `json:"rows"`

	// NotReady are the declared indexes that do not answer queries, at the end of the pass.
	NotReady []string `json:"not_ready"`

	// Findings are the first ones, as many as Options.MaxFindings allows; Truncated counts the others.
	Findings  []Finding `json:"findings"`
	Truncated int64     `json:"truncated"`

	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`

	// How the pass ended, where it did not come to its end: the context was over, another run is active, or it failed. The
	// counts are then those of the part that was done.
	Stopped bool `json:"stopped"`
	Active  bool `json:"active"`
	Failed  bool `json:"failed"`

	conflicts int64 // findings among Skipped
}

// Found is the number of findings of all kinds.
func (r Report) Found() int64 {
	return r.Missing + r.Stale + r.Orphan + r.Misranked + r.Undecodable + r.Foreign
}

// Exit codes, which add up.
const (
	ExitFindings = 1  // findings are left, or an index is not ready
	ExitFailed   = 2  // the pass could not run
	ExitSkipped  = 4  // something was skipped
	ExitStopped  = 8  // the pass was stopped
	ExitActive   = 16 // another run is active
)

// ExitCode is the exit code of a program that made the pass: 0 if everything is as it should be, else a sum of the Exit
// codes. What was skipped counts as such, not as left too.
func (r Report) ExitCode() int {
	code := 0
	if r.left() > 0 || len(r.NotReady) > 0 && r.Skipped == 0 && r.complete() {
		code += ExitFindings
	}
	if r.Failed {
		code += ExitFailed
	}
	if r.Skipped > 0 {
		code += ExitSkipped
	}
	if r.Stopped {
		code += ExitStopped
	}
	if r.Active {
		code += ExitActive
	}
	return code
}

// Clean reports whether the pass came to its end and nothing is left to do.
func (r Report) Clean() bool { return r.ExitCode() == 0 }

func (r Report) complete() bool { return !r.Stopped && !r.Active && !r.Failed }

// left is how many findings are neither fixed nor skipped.
func (r Report) left() int64 { return r.Found() - r.Fixed - r.conflicts }
