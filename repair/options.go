package repair

import "fmt"

// Options tune a pass. The zero value is good.
type Options struct {
	// Rate is how many records, manifest rows and index members are looked at per second. 0 does not throttle.
	Rate int
	// MaxFindings is how many findings the report holds, 1000 by default; negative for none. All are counted, and OnFinding
	// sees all.
	MaxFindings int
	// OnFinding is called for each finding when its fate is known: in Run after the fix. Never from two goroutines at once.
	OnFinding func(Finding)
	// Progress is called now and then, and at the end of each phase. Never from two goroutines at once.
	Progress func(Progress)
}

// defaultFindings is how many findings a report holds where Options do not say.
const defaultFindings = 1000

func (o Options) withDefaults() (Options, error) {
	if o.Rate < 0 {
		return o, fmt.Errorf("%w: a rate of %d records a second", ErrOptions, o.Rate)
	}
	switch {
	case o.MaxFindings == 0:
		o.MaxFindings = defaultFindings
	case o.MaxFindings < 0:
		o.MaxFindings = 0
	}
	return o, nil
}

// Phase is a part of a pass.
type Phase string

// The phases, in their order.
const (
	Keys      Phase = "keys"      // the keyspace is scanned; counted in keys
	Entries   Phase = "entries"   // index keys and manifest are read; counted in members and rows
	Records   Phase = "records"   // records are held against them
	Leftovers Phase = "leftovers" // what no record has accounted for; counted in rows and index keys
	Floors    Phase = "floors"    // ranked indexes that have become short; only where something is fixed
)

// Progress says how far a pass is.
type Progress struct {
	Phase Phase
	Done  int64
	Total int64 // 0 where it is not known; an estimate while others write
	Found int64 // findings so far, over all phases
}
