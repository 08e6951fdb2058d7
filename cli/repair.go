package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/repair"
)

// passHelp is what verify, repair and build say about their output.
const passHelp = `The result is a table of counts and the first findings, with --json one object with all counts ("records", "entries",
"missing", "stale", "orphan", "misranked", "undecodable", "foreign", "fixed" and more) and the list "findings". Findings
are counted by entry, undecodable ones by record, foreign ones by key.

Readers and writers may go on meanwhile. --rate limits how much is looked at a second.

Exit codes, which add up: 0 clean; 1 findings are left, or an index is not ready; 2 could not run; 4 something was skipped;
8 stopped; 16 another run is active.`

// passFlags are those of verify, repair and build.
type passFlags struct {
	rate     int
	findings int
}

func (f *passFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.rate, "rate", 0, "look at no more than `N` records, rows and index members a second (0: no limit)")
	cmd.Flags().IntVar(&f.findings, "findings", 20, "show the first `N` findings")
}

// pass is one of the passes of package repair.
type pass func(context.Context, index.Opened, repair.Options) (repair.Report, error)

func newVerifyCommand(s *session) *cobra.Command {
	var f passFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Hold every index against the records and report what is wrong",
		Long: `Read every record and every index entry, and report what does not fit: entries that are missing, stale (for a value that
the record does not have), orphaned (without a record) or misranked (with a wrong score), records that do not decode, and
foreign keys. Each finding has been read again with its record unchanged. Nothing is changed.

` + passHelp,
		Example: s.examples("verify", "verify --rate 20000 --json"),
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	cmd.RunE = s.run(func(ctx context.Context, _ []string) error {
		return s.pass(ctx, "verify", reading, f, repair.Verify, "")
	})
	return cmd
}

func newRepairCommand(s *session) *cobra.Command {
	var f passFlags
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Put right what verify finds",
		Long: `Verify, and fix each finding in one guarded step on one record: an entry of a live record is never removed, and none is
added for a record that has changed meanwhile. A record that does not decode and a foreign key are reported and never
touched. Ranked indexes that lost their best are refilled, and indexes that were not ready are built.

` + passHelp,
		Example: s.examples("repair", "repair --rate 20000 --json"),
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	cmd.RunE = s.run(func(ctx context.Context, _ []string) error {
		return s.pass(ctx, "repair", writing, f, repair.Run, "")
	})
	return cmd
}

func newBuildCommand(s *session) *cobra.Command {
	var f passFlags
	cmd := &cobra.Command{
		Use:   "build INDEX",
		Short: "Fill an index that is new, and make it ready for queries",
		Long: `Enter every record in an index that was declared over existing data. Writes keep it up to date from the moment at which it
is declared; queries answer that it is not ready until the build is done.

` + passHelp,
		Example: s.examples("build strongest", "build strongest --rate 20000"),
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	cmd.RunE = s.run(func(ctx context.Context, args []string) error {
		build := func(ctx context.Context, o index.Opened, options repair.Options) (repair.Report, error) {
			return repair.Build(ctx, o, args[0], options)
		}
		return s.pass(ctx, "build", writing, f, build, args[0])
	})
	return cmd
}

// pass runs one pass and prints its report. ofIndex is the index that it is about, "" for all.
func (s *session) pass(ctx context.Context, name string, a access, f passFlags, run pass, ofIndex string) error {
	if f.rate < 0 {
		return fmt.Errorf("--rate %d is negative", f.rate)
	}
	if f.findings < 0 {
		return fmt.Errorf("--findings %d is negative", f.findings)
	}
	t, err := s.target()
	if err != nil {
		return err
	}
	if ofIndex != "" {
		if err := t.hasIndex(ofIndex); err != nil {
			return err
		}
	}
	o, done, err := s.open(ctx, t, a)
	if err != nil {
		return err
	}
	defer done()
	options := repair.Options{Rate: f.rate, MaxFindings: f.findings}
	if f.findings == 0 {
		options.MaxFindings = -1
	}
	report, err := s.runPass(ctx, name, o, options, run)
	code := report.ExitCode()
	if err != nil && code == 0 {
		code = repair.ExitFailed
	}
	if report.Started.IsZero() { // it never began
		return err
	}
	if perr := s.passed(name, report); perr != nil {
		return perr
	}
	if err != nil {
		s.fail(err)
	}
	if code == 0 {
		return nil
	}
	return exitWith(code)
}

// runPass runs one pass under a progress bar.
func (s *session) runPass(ctx context.Context, name string, o index.Opened, options repair.Options, run pass) (repair.Report, error) {
	bar := s.newPhases(name)
	defer bar.close()
	options.Progress = bar.at
	report, err := run(ctx, o, options)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted: %w", err)
	}
	return report, err
}

// passed prints the report of a pass.
func (s *session) passed(name string, r repair.Report) error {
	if s.json {
		if r.Findings == nil {
			r.Findings = []repair.Finding{}
		}
		if r.NotReady == nil {
			r.NotReady = []string{}
		}
		return s.value(r)
	}
	if err := s.line(fmt.Sprintf("%s %s: %s, %s in %v", name, r.Entity,
		plural(int(r.Records), "record"), many(int(r.Entries), "entry", "entries"), roundTime(r.Duration))); err != nil {
		return err
	}
	if err := s.grid(counts(r), ""); err != nil {
		return err
	}
	if err := s.findings(r); err != nil {
		return err
	}
	return s.line(verdict(r))
}

// counts is the table of a report: the kinds of findings, and what else was met.
func counts(r repair.Report) grid {
	g := grid{header: []string{"finding", "count"}, right: []int{1}}
	add := func(word string, n int64, always bool) {
		if n == 0 && !always {
			return
		}
		if n > 0 {
			g.mark(len(g.rows), 1, bright)
		}
		g.rows = append(g.rows, []string{word, fmt.Sprint(n)})
	}
	for _, k := range kinds(r) {
		add(string(k.kind), k.n, true)
	}
	add("fixed", r.Fixed, true)
	add("skipped", r.Skipped, false)
	add("refilled", r.Refilled, false)
	add("expired, not collected yet", r.Expired, false)
	add("manifest rows", r.Rows, false)
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
func (s *session) findings(r repair.Report) error {
	if len(r.Findings) == 0 {
		return nil
	}
	g := grid{header: []string{"kind", "index", "id", "key", "state"}}
	for _, f := range r.Findings {
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
	if more := r.Found() - int64(len(r.Findings)); more > 0 {
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
