package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newDeleteCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete records and every index entry of theirs",
		Long: `Delete records by their ids, each in one step with every index entry that was written for it. The result is a line for
each id: deleted or not found. If one was not found, the exit code is 1.`,
		Example: s.examples("delete ci37868143", "delete ci37868143 ci37868135 --json"),
		Args:    cobra.MinimumNArgs(1),
		RunE: s.run(func(ctx context.Context, ids []string) error {
			t, err := s.target()
			if err != nil {
				return err
			}
			o, done, err := s.open(ctx, t, writing)
			if err != nil {
				return err
			}
			defer done()
			outcomes, err := o.DeleteMany(ctx, ids)
			if len(outcomes) != len(ids) && err != nil {
				return err
			}
			return s.outcomes(outcomes, "deleted", false)
		}),
	}
}
