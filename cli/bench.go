package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/bench"
)

// benchFlags are those of bench.
type benchFlags struct {
	records, rounds int
	round           time.Duration
}

// benchPool is how many connections a benchmark may open: more than it has callers.
const benchPool = 64

func newBenchCommand(s *session) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the library against hand-written commands on a server",
		Long: `Measure puts, changes, updates, batches, pages and a verification against what one writes by hand with the same client, on
the same server, in the same run: both sides take turns in short rounds, and the round with the median ratio counts. Records
are 220 bytes of JSON with one membership and one ranked index. It takes under a minute; a bar is what the library promises.

The server is under full load meanwhile, and holds two times --records for a while: use one that nobody needs. Every key is
under an owner of its own with a random name, and is removed at the end, also after an error or Ctrl-C. LOCKSTEP_REDIS is
not looked at.

With --json the output is a list of {"name", "per_s", "baseline", "baseline_per_s", "ratio", "bar", "unit", "at_most",
"server_us", "baseline_server_us"}: the last two are the server's processor time for a record in microseconds. For memory
per_s and baseline_per_s are bytes for a record, and the bar is a limit that the ratio should not pass.`,
		Example: s.examples("bench --redis redis://localhost:6379", "bench --redis redis://localhost:6379 --json"),
		Args:    cobra.NoArgs,
		RunE:    s.run(func(ctx context.Context, _ []string) error { return s.bench(ctx, f) }),
	}
	cmd.Flags().IntVar(&f.records, "records", 100_000, "`N` records that each side begins with")
	cmd.Flags().IntVar(&f.rounds, "rounds", 9, "how often the sides take turns")
	cmd.Flags().DurationVar(&f.round, "round", 200*time.Millisecond, "how long one side has in a round")
	return cmd
}

func (s *session) bench(ctx context.Context, f benchFlags) (err error) {
	switch {
	case s.redis == "":
		return errors.New("which server? give --redis URL: a benchmark loads it fully")
	case f.rounds < 1:
		return fmt.Errorf("--rounds %d: at least 1", f.rounds)
	case f.round <= 0:
		return fmt.Errorf("--round %v: must be over zero", f.round)
	}
	srv, err := s.server()
	if err != nil {
		return err
	}
	srv.pool = benchPool
	rdb, err := srv.connect(ctx)
	if err != nil {
		return err
	}
	defer rdb.Close()
	say := func(text string) {
		if s.errTerminal {
			s.err(text)
		}
	}
	say(fmt.Sprintf("filling both sides with %s", plural(f.records, "record")))
	w, err := bench.Open(ctx, rdb, "lockstep:bench-"+randomHex(), f.records)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(ctx)) }()
	results, err := w.Run(ctx, bench.Options{
		Rounds: f.rounds, Round: f.round,
		Progress: func(name string, done, total int) { say(fmt.Sprintf("%d/%d %s", done+1, total, name)) },
	})
	if err != nil {
		return err
	}
	return s.benched(results)
}

// benched prints the results.
func (s *session) benched(results []bench.Result) error {
	if s.json {
		return s.value(results)
	}
	g := grid{
		header: []string{"", "Lockstep", "by hand", "unit", "ratio", "bar", "", "server µs", "by hand", "by hand it is"},
		right:  []int{1, 2, 4, 5, 7, 8},
	}
	micros := func(n float64) string {
		if n == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", n)
	}
	for _, r := range results {
		sign, verdict, c := ">=", "holds", good
		if r.AtMost {
			sign = "<="
		}
		if !r.Holds() {
			verdict, c = "missed", bad
		}
		g.mark(len(g.rows), 6, c)
		g.rows = append(g.rows, []string{
			r.Name, fmt.Sprintf("%.0f", r.PerS), fmt.Sprintf("%.0f", r.BaselinePerS), r.Unit, fmt.Sprintf("%.2f", r.Ratio),
			fmt.Sprintf("%s %.2f", sign, r.Bar), verdict, micros(r.ServerMicros), micros(r.BaselineServerMicros), r.Baseline,
		})
	}
	return s.grid(g, "")
}
