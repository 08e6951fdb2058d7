package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
)

// valueHelp is what find and count say about INDEX=VALUE.
const valueHelp = `INDEX=VALUE is split at its first "=". Without a declared type VALUE stands for everything that it can mean: 1 finds the
number 1 and the text "1", true the truth value and the text. Normalisers of the index, such as fold, apply to VALUE too.`

func newFindCommand(s *session) *cobra.Command {
	var limit int
	var ids bool
	cmd := &cobra.Command{
		Use:   "find INDEX=VALUE",
		Short: "Print the records that have a value",
		Long: `Print the records that have a value in an index, in no order, each as it is stored. With --json each is one line of JSON; a
record that is no JSON is {"base64": "..."} there. With --ids only the ids, one a line, as JSON texts with --json (needed
where ids hold line ends).

` + valueHelp + `

Finding nothing is no error.`,
		Example: s.examples("find status=automatic --limit 3", "find net=ci --ids", "find source=us --json"),
		Args:    cobra.ExactArgs(1),
		RunE: s.run(func(ctx context.Context, args []string) error {
			if limit < 0 {
				return fmt.Errorf("--limit %d is negative", limit)
			}
			o, name, value, done, err := s.query(ctx, args[0])
			if err != nil {
				return err
			}
			defer done()
			if ids {
				return s.findIDs(ctx, o, name, value, limit)
			}
			return s.find(ctx, o, name, value, limit)
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "print at most `N` (0: all)")
	cmd.Flags().BoolVar(&ids, "ids", false, "print ids only")
	return cmd
}

func newCountCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "count INDEX=VALUE",
		Short: "Count the records that have a value",
		Long: `Print how many records have a value in an index, without those that have expired.

` + valueHelp,
		Example: s.examples("count status=automatic", "count net=ci --json"),
		Args:    cobra.ExactArgs(1),
		RunE: s.run(func(ctx context.Context, args []string) error {
			o, name, value, done, err := s.query(ctx, args[0])
			if err != nil {
				return err
			}
			defer done()
			n, err := o.CountOf(ctx, name, value)
			if err != nil {
				return ofQuery(err)
			}
			if s.json {
				return s.value(map[string]any{"index": name, "value": textOf(value), "count": n})
			}
			return s.line(fmt.Sprint(n))
		}),
	}
}

// query opens the entity type for a condition.
func (s *session) query(ctx context.Context, arg string) (o records, name, value string, done func(), err error) {
	done = func() {}
	t, err := s.target()
	if err != nil {
		return nil, "", "", done, err
	}
	if name, value, err = t.condition(arg); err != nil {
		return nil, "", "", done, err
	}
	o, done, err = s.open(ctx, t, reading)
	return o, name, value, done, err
}

func (s *session) find(ctx context.Context, o records, name, value string, limit int) error {
	n := 0
	for e, err := range o.FindEncoded(ctx, name, value) {
		if err != nil {
			return ofQuery(err)
		}
		if err := s.record(e.Bytes); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	return nil
}

func (s *session) findIDs(ctx context.Context, o records, name, value string, limit int) error {
	n := 0
	for id, err := range o.FindIDs(ctx, name, value) {
		if err != nil {
			return ofQuery(err)
		}
		if err := s.id(id); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	return nil
}

// ofQuery judges the error of a query: a record that does not decode is a finding, a value that cannot be is wrong usage.
func ofQuery(err error) error {
	switch {
	case errors.Is(err, index.ErrUndecodable):
		return finding{err}
	case errors.Is(err, opaque.ErrSuspect):
		return fmt.Errorf("%w: what was found is right, more may be missing (verify says what, repair restores it)", err)
	}
	return err
}
