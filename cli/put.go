package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
)

func newPutCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "put",
		Short: "Write records given as JSON on standard input",
		Long: `Write the record on standard input, together with its index entries, replacing the one that has its id. Several records
may follow one another; each may stretch over several lines. A record is stored byte for byte, from its first to its last
character.

If one of them is no valid record, nothing is written at all. Each record is written atomically with its entries; one whose
unique value another record holds is reported, the others are written, and the exit code is 1. For a file with many
records, use load.`,
		Example: s.examples(`put <<< '{"id": "ci37868143", "status": "reviewed"}'`, "put < record.json"),
		Args:    cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			t, err := s.target()
			if err != nil {
				return err
			}
			if s.app.isTerminal(s.app.Stdin) {
				s.note("", "type the record, then end it with Ctrl-D")
			}
			raw, err := readRecords(&interruptible{ctx: ctx, r: s.app.Stdin})
			if err != nil {
				return err
			}
			o, done, err := s.open(ctx, t, writing)
			if err != nil {
				return err
			}
			defer done()
			return s.put(ctx, o, raw)
		}),
	}
}

// readRecords reads JSON values that follow one another. An error means that nothing is to be written.
func readRecords(r io.Reader) ([][]byte, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	dec := json.NewDecoder(bytes.NewReader(text))
	var out [][]byte
	for {
		var one json.RawMessage
		err := dec.Decode(&one)
		switch {
		case errors.Is(err, io.EOF) && len(out) == 0:
			return nil, finding{errors.New("no record on standard input; nothing written")}
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			at := len(text)
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				at = min(max(int(syntax.Offset)-1, 0), at)
			}
			line := 1 + bytes.Count(text[:at], []byte("\n"))
			return nil, finding{fmt.Errorf("standard input, line %d: not JSON: %w; nothing written", line, err)}
		}
		out = append(out, one)
	}
}

func (s *session) put(ctx context.Context, o records, raw [][]byte) error {
	var wrong []error
	for i, b := range raw {
		if _, err := o.Inspect(b); err != nil {
			wrong = append(wrong, fmt.Errorf("record %d: %w; nothing written", i+1, err))
		}
	}
	if len(wrong) > 0 {
		return finding{errors.Join(wrong...)}
	}
	outcomes, err := o.PutEncoded(ctx, raw)
	if len(outcomes) != len(raw) && err != nil {
		return err
	}
	return s.outcomes(outcomes, "written", true)
}

// outcomes prints what became of each record. missing makes a record that was not applied no finding.
func (s *session) outcomes(outcomes []index.Outcome, verb string, missing bool) error {
	var result error
	for _, o := range outcomes {
		if o.Err != nil {
			s.fail(o.Err)
			if !ofData(o.Err) {
				return errFailed
			}
			result = errReported
			continue
		}
		if !o.Applied && !missing {
			result = errReported
		}
		if err := s.outcome(o, verb); err != nil {
			return err
		}
	}
	return result
}

func (s *session) outcome(o index.Outcome, verb string) error {
	if s.json {
		return s.value(map[string]any{"id": textOf(o.ID), verb: o.Applied})
	}
	if !o.Applied {
		verb = "not found"
	}
	return s.line(verb + " " + o.ID)
}
