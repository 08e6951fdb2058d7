package opaque

import "fmt"

// FindingKind says what is wrong.
type FindingKind string

// What Verify finds.
const (
	Missing     FindingKind = "missing"     // a record without its entry
	Stale       FindingKind = "stale"       // an entry for a value that the record no longer has: costs a read, no answer
	Orphan      FindingKind = "orphan"      // an entry without a record: as harmless
	Pending     FindingKind = "pending"     // the reservation of a create that never finished
	Conflict    FindingKind = "conflict"    // a record whose unique value another live record holds
	Outdated    FindingKind = "outdated"    // a record written under an older declaration
	Undecodable FindingKind = "undecodable" // a value that is not of this format, or that the codec does not read
)

// Harmless reports whether answers stay right in spite of the finding: it costs room and time only.
func (k FindingKind) Harmless() bool { return k == Stale || k == Orphan || k == Pending }

// Finding is one thing that is wrong.
type Finding struct {
	Kind   FindingKind
	Index  string // "" where it is about no index
	ID     string
	Key    string // of the list or claim, else of the record
	Value  string // as it stands in the key
	Holder string // of a conflict
	Fixed  bool
}

// String names the finding without its value.
func (f Finding) String() string {
	s := fmt.Sprintf("%s %q", f.Kind, f.ID)
	if f.Index != "" {
		s += " (index " + f.Index + ")"
	}
	if f.Fixed {
		s += ", fixed"
	}
	return s
}

// Report is what Verify or Run has seen.
type Report struct {
	Records int // live records that were looked at
	Entries int // index entries that were looked at
	// Findings are the first thousand; Counts has all of them, Fixed those that are no more.
	Findings []Finding
	Counts   map[FindingKind]int
	Fixed    map[FindingKind]int
	// Young counts entries and reservations that may belong to a write under way. They were left alone.
	Young int
	// Lost is why the indexes are suspect at the end, "" if they are not; NotReady are the indexes that queries refuse.
	Lost     string
	NotReady []string
}

// maxFindings bounds what a report keeps one by one.
const maxFindings = 1000

func newReport() *Report {
	return &Report{Counts: map[FindingKind]int{}, Fixed: map[FindingKind]int{}}
}

func (r *Report) add(f Finding) {
	r.Counts[f.Kind]++
	if f.Fixed {
		r.Fixed[f.Kind]++
	}
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, f)
	}
}

// Left is how many findings were not fixed.
func (r *Report) Left() int {
	n := 0
	for k, count := range r.Counts {
		n += count - r.Fixed[k]
	}
	return n
}

// Clean reports whether nothing is wrong any more.
func (r *Report) Clean() bool { return r.Left() == 0 && r.Lost == "" && len(r.NotReady) == 0 }
