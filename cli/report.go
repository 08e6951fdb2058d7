package cli

import (
	"fmt"

	"github.com/lockstep-go/lockstep/repair"
)

// passReport is the report of a pass as it is printed.
type passReport struct {
	object   any    // what --json prints
	began    bool   // else there is nothing to print but the error
	about    string // entity, records and entries
	counts   grid
	findings []repair.Finding // the first ones
	found    int64            // all
	verdict  string
	code     int // exit code
}

// reportOf makes the report of a pass of package repair ready for printing.
func reportOf(r repair.Report) passReport {
	if r.Findings == nil {
		r.Findings = []repair.Finding{}
	}
	if r.NotReady == nil {
		r.NotReady = []string{}
	}
	return passReport{
		object: r, began: !r.Started.IsZero(), about: about(r), counts: counts(r), findings: r.Findings, found: r.Found(),
		verdict: verdict(r), code: r.ExitCode(),
	}
}

func about(r repair.Report) string {
	return fmt.Sprintf("%s: %s, %s in %v", r.Entity,
		plural(int(r.Records), "record"), many(int(r.Entries), "entry", "entries"), roundTime(r.Duration))
}

// passed prints the report of a pass.
func (s *session) passed(name string, r passReport) error {
	if s.json {
		return s.value(r.object)
	}
	if err := s.line(name + " " + r.about); err != nil {
		return err
	}
	if len(r.counts.rows) > 0 {
		if err := s.grid(r.counts, ""); err != nil {
			return err
		}
	}
	if err := s.findings(r); err != nil {
		return err
	}
	if r.verdict == "" {
		return nil
	}
	return s.line(r.verdict)
}

// counts is the table of a report: the kinds of findings, and what else was met.
func counts(r repair.Report) grid {
	return countGrid(append(kinds(r), kindCount{"fixed", r.Fixed}),
		kindCount{"skipped", r.Skipped},
		kindCount{"refilled", r.Refilled},
		kindCount{"expired, not collected yet", r.Expired},
		kindCount{"manifest rows", r.Rows},
	)
}

// countGrid is a table of counts: those of others only where they are not zero.
func countGrid(always []kindCount, others ...kindCount) grid {
	g := grid{header: []string{"finding", "count"}, right: []int{1}}
	for i, k := range append(always, others...) {
		if k.n == 0 && i >= len(always) {
			continue
		}
		if k.n > 0 {
			g.mark(len(g.rows), 1, bright)
		}
		g.rows = append(g.rows, []string{string(k.kind), fmt.Sprint(k.n)})
	}
	return g
}

// kindCount is how many findings of a kind there are.
type kindCount struct {
	kind repair.Kind
	n    int64
}

func kinds(r repair.Report) []kindCount {
	return []kindCount{
		{repair.Missing, r.Missing},
		{repair.Stale, r.Stale},
		{repair.Orphan, r.Orphan},
		{repair.Misranked, r.Misranked},
		{repair.Undecodable, r.Undecodable},
		{repair.Foreign, r.Foreign},
	}
}

// findings prints the first findings of a report.
func (s *session) findings(r passReport) error {
	if len(r.findings) == 0 {
		return nil
	}
	g := grid{header: []string{"kind", "index", "id", "key", "state"}}
	for _, f := range r.findings {
		state := f.Detail
		switch {
		case f.Fixed:
			state = "fixed"
		case f.Err != nil:
			state = f.Err.Error()
		}
		g.rows = append(g.rows, []string{string(f.Kind), f.Index, f.ID, f.Key, state})
	}
	if err := s.line(""); err != nil {
		return err
	}
	if err := s.grid(g, ""); err != nil {
		return err
	}
	if more := r.found - int64(len(r.findings)); more > 0 {
		return s.line(fmt.Sprintf("and %s not shown (--findings N)", plural(int(more), "finding")))
	}
	return nil
}

// verdict says in one line how a pass ended.
func verdict(r repair.Report) string {
	switch {
	case r.Active:
		return "another run is active: this one has stopped"
	case r.Stopped:
		return "stopped: the counts are those of the part that was done"
	case r.Failed:
		return "failed: the counts are those of the part that was done"
	case r.Clean() && r.Found() == 0:
		return "clean"
	case r.Clean():
		return "clean: all that was found is fixed"
	}
	text := ""
	if left := r.Found() - r.Fixed; left > 0 {
		text = plural(int(left), "finding") + " left"
	}
	for _, name := range r.NotReady {
		if text != "" {
			text += "; "
		}
		text += "index " + name + " is not ready"
	}
	return text
}

// many gives "1 entry" or "3 entries".
func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
