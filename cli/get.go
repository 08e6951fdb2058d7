package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newGetCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID...",
		Short: "Print records by their ids",
		Long: `Print the records of some ids, in the order of the ids, each as it is stored. With --json each is one line of JSON; a
record that is no JSON is {"base64": "..."} there.

An id without a record is an error on standard error; the others are printed, and the exit code is 1.`,
		Example: s.examples("get ci37868143", "get ci37868143 us1000chhc --json"),
		Args:    cobra.MinimumNArgs(1),
		RunE: s.run(func(ctx context.Context, ids []string) error {
			t, err := s.target()
			if err != nil {
				return err
			}
			o, done, err := s.open(ctx, t, reading)
			if err != nil {
				return err
			}
			defer done()
			return s.get(ctx, o, ids)
		}),
	}
}

func (s *session) get(ctx context.Context, o records, ids []string) error {
	records, err := o.GetEncoded(ctx, ids)
	if err != nil {
		return judged(err)
	}
	var result error
	for i, r := range records {
		switch {
		case r.Err == nil:
			err = s.record(r.Record)
		case ofData(r.Err):
			s.fail(r.Err)
			result = errReported
		default:
			err = fmt.Errorf("id %q: %w", ids[i], r.Err)
		}
		if err != nil {
			return err
		}
	}
	return result
}
