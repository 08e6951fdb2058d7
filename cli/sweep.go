package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/repair"
)

func newSweepCommand(s *session) *cobra.Command {
	var f passFlags
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Collect what expired records have left",
		Long: `Remove the index entries of records whose lifetime has ended. No query shows them; writes collect them a few at a time, and
a sweep does all of it: for an entity type that is hardly written any more, or to see the memory free. A record that was
written again meanwhile is left alone. Where nothing is left of the entity type, its bookkeeping goes too.

The result is a line with the expired records and the entries that went; with --json one object: "entity", "records" (that
had expired), "expired" (entries that went), "started", "duration_ns", "stopped", "failed".

Readers and writers may go on meanwhile. --rate limits how many expired records are collected a second. A sweep that was
stopped can be started again.

Exit codes, which add up: 0 swept; 2 could not run; 8 stopped.`,
		Example: s.examples("sweep", "sweep --rate 5000 --json"),
		Args:    cobra.NoArgs,
	}
	f.addRate(cmd, "expired records")
	cmd.RunE = s.run(func(ctx context.Context, _ []string) error {
		return s.pass(ctx, "sweep", f, func(t target) (pass, func(), error) {
			o, done, err := s.openIndexed(ctx, t, writing)
			if err != nil {
				return nil, done, err
			}
			return o.pass(repair.Sweep, sweptOf), done, nil
		})
	})
	return cmd
}

// swept is what sweep prints with --json: the figures that a sweep has, by their names in every report.
type swept struct {
	Entity   string        `json:"entity"`
	Records  int64         `json:"records"`
	Expired  int64         `json:"expired"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Stopped  bool          `json:"stopped"`
	Failed   bool          `json:"failed"`
}

// sweptOf makes the report of a sweep ready for printing.
func sweptOf(r repair.Report) passReport {
	p := passReport{
		object: swept{r.Entity, r.Records, r.Expired, r.Started, r.Duration, r.Stopped, r.Failed},
		began:  !r.Started.IsZero(), code: r.ExitCode(),
		about: fmt.Sprintf("%s: %s, %s collected in %v", r.Entity,
			plural(int(r.Records), "expired record"), many(int(r.Expired), "entry", "entries"), roundTime(r.Duration)),
	}
	if !r.Clean() {
		p.verdict = verdict(r)
	}
	return p
}
