package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

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

// verifyKVHelp is what verify and repair say about opaque stores.
const verifyKVHelp = `With --kv findings are also "pending" (a write that never finished), "outdated" (a record of an older declaration) and
"conflict" (a unique value that another record holds). "young" counts what may belong to a write of the last seconds, and is
left alone. "lost" says why the indexes are suspect: the server was restarted, flushed, or has evicted data.`

// repairKVHelp is what repair alone says.
const repairKVHelp = `Indexes that are suspect are so until repair has looked at every record. The index of all ids may have lost some itself
then: give all ids (--ids-from), or vouch for it (--trust; on a Redis every key is listed besides). An index that is new is
built: first repair waits, a minute or so after it was declared, until no writer of the older declaration can be at work.`

// passFlags are those of verify, repair, build and sweep.
type passFlags struct {
	rate     int
	findings int

	// Of repair with --kv.
	trust bool
	ids   iter.Seq2[string, error] // nil if not given
}

func (f *passFlags) addRate(cmd *cobra.Command, what string) {
	cmd.Flags().IntVar(&f.rate, "rate", 0, "look at no more than `N` "+what+" a second (0: no limit)")
}

func (f *passFlags) add(cmd *cobra.Command) {
	f.addRate(cmd, "records, rows and index entries")
	cmd.Flags().IntVar(&f.findings, "findings", 20, "show the first `N` findings")
}

// pass goes over the store once, as the flags say, and moves a bar.
type pass func(context.Context, passFlags, *phases) (passReport, error)

func newVerifyCommand(s *session) *cobra.Command {
	var f passFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Hold every index against the records and report what is wrong",
		Long: `Read every record and every index entry, and report what does not fit: entries that are missing, stale (for a value that
the record does not have), orphaned (without a record) or misranked (with a wrong score), records that do not decode, and
foreign keys. Each finding has been read again with its record unchanged. Nothing is changed.

` + passHelp + `

` + verifyKVHelp,
		Example: s.examples("verify", "verify --rate 20000 --json"),
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	cmd.RunE = s.run(func(ctx context.Context, _ []string) error {
		return s.pass(ctx, "verify", f, func(t target) (pass, func(), error) {
			o, done, err := s.open(ctx, t, reading)
			if err != nil {
				return nil, done, err
			}
			return o.verify, done, nil
		})
	})
	return cmd
}

func newRepairCommand(s *session) *cobra.Command {
	var f passFlags
	var idsFrom string
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Put right what verify finds",
		Long: `Verify, and fix each finding in one guarded step on one record: an entry of a live record is never removed, and none is
added for a record that has changed meanwhile. A record that does not decode and a foreign key are reported and never
touched. Ranked indexes that lost their best are refilled, and indexes that were not ready are built.

` + passHelp + `

` + verifyKVHelp + `

` + repairKVHelp,
		Example: s.examples("repair", "repair --rate 20000 --json", "--kv memcache://localhost repair --ids-from ids.txt"),
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.trust, "trust", false, "with --kv: the index of all ids is whole although the store has lost data")
	cmd.Flags().StringVar(&idsFrom, "ids-from", "", "with --kv: `FILE` of the ids of all records, one a line")
	cmd.RunE = s.run(func(ctx context.Context, _ []string) error {
		if s.kv == "" && (f.trust || idsFrom != "") {
			return errors.New("--trust and --ids-from are for a store given by --kv")
		}
		if idsFrom != "" {
			ids, err := os.Open(idsFrom) //nolint:gosec // the user names the file
			if err != nil {
				return err
			}
			defer ids.Close()
			f.ids = idsIn(ids)
		}
		return s.pass(ctx, "repair", f, func(t target) (pass, func(), error) {
			o, done, err := s.open(ctx, t, writing)
			if err != nil {
				return nil, done, err
			}
			return o.repair, done, nil
		})
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
		return s.pass(ctx, "build", f, func(t target) (pass, func(), error) {
			if err := t.hasIndex(args[0]); err != nil {
				return nil, nil, err
			}
			o, done, err := s.openIndexed(ctx, t, writing)
			if err != nil {
				return nil, done, err
			}
			return o.pass(func(ctx context.Context, o index.Opened, options repair.Options) (repair.Report, error) {
				return repair.Build(ctx, o, args[0], options)
			}, reportOf), done, nil
		})
	})
	return cmd
}

// idsIn gives the ids of a text, one a line. It reads the text once.
func idsIn(r io.Reader) iter.Seq2[string, error] {
	in := newLines(r, maxLine)
	return func(yield func(string, error) bool) {
		for {
			id, err := in.next()
			if err == io.EOF { //nolint:errorlint // a reader's end is the bare value
				return
			}
			if !yield(string(id), err) || err != nil {
				return
			}
		}
	}
}

// pass opens the entity type, runs one pass and prints its report.
func (s *session) pass(ctx context.Context, name string, f passFlags, open func(target) (pass, func(), error)) error {
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
	run, done, err := open(t)
	if err != nil {
		return err
	}
	defer done()
	report, err := underBar(ctx, s.newPhases(name), func(bar *phases) (passReport, error) { return run(ctx, f, bar) })
	code := report.code
	if err != nil && code == 0 {
		code = repair.ExitFailed
	}
	if !report.began {
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

// underBar runs a pass under a progress bar.
func underBar[R any](ctx context.Context, bar *phases, run func(*phases) (R, error)) (R, error) {
	defer bar.close()
	report, err := run(bar)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted: %w", err)
	}
	return report, err
}
