package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func newLoadCommand(s *session) *cobra.Command {
	var skipBad bool
	cmd := &cobra.Command{
		Use:   "load FILE|-",
		Short: "Write the records of a file, one JSON record a line",
		Long: `Write every line of a file, or of standard input (-), as a record, together with its index entries. A record that exists
is replaced. Lines are stored byte for byte, without their line end; blank lines are skipped.

Records are written in batches of some hundred, each record atomically with its entries. A line that is no valid record stops the
command: everything before it is written, nothing of it or after it. A line whose unique value another record holds stops
it too; the rest of its batch is written then, and the message says up to which line. Loading a file again is safe.

With --skip-bad such lines are counted and the first ten shown; the others are written, and the exit code is 1.

A field of the schema that no record has is reported as a warning.`,
		Example: s.examples("load quakes.jsonl", "load - < quakes.jsonl", "load --skip-bad quakes.jsonl"),
		Args:    cobra.ExactArgs(1),
		RunE: s.run(func(ctx context.Context, args []string) error {
			return s.load(ctx, args[0], skipBad)
		}),
	}
	cmd.Flags().BoolVar(&skipBad, "skip-bad", false, "leave out lines that cannot be written, and go on")
	return cmd
}

// load runs the command on a file or, for "-", on standard input.
func (s *session) load(ctx context.Context, file string, skipBad bool) error {
	t, err := s.target()
	if err != nil {
		return err
	}
	input, size, done, err := s.input(ctx, file)
	if err != nil {
		return err
	}
	defer done()
	o, closeServer, err := s.open(ctx, t, writing)
	if err != nil {
		return err
	}
	defer closeServer()

	bar := s.newProgress(size)
	defer bar.close()
	l := &loader{into: o, batch: o.batch(), skip: skipBad, bar: bar, report: func(line int, err error) {
		bar.clear()
		s.fail(fmt.Errorf("line %d: %w", line, err))
	}}
	start := time.Now()
	err = l.run(ctx, newLines(input, maxLine))
	bar.close()
	if err != nil {
		return err
	}
	s.warnAbsent(t, l)
	return s.loaded(l, time.Since(start))
}

// input opens what is to be loaded. size is -1 where it is not known.
func (s *session) input(ctx context.Context, file string) (r io.Reader, size int64, done func(), err error) {
	if file != "-" {
		f, err := os.Open(file) //nolint:gosec // the user names the file
		if err != nil {
			return nil, 0, nil, err
		}
		st, err := f.Stat()
		if err == nil && st.IsDir() {
			err = fmt.Errorf("%s is a directory", file)
		}
		if err != nil {
			_ = f.Close() // it was only opened
			return nil, 0, nil, err
		}
		return f, sizeOf(st), func() { _ = f.Close() }, nil // only read
	}
	size = -1
	if f, ok := s.app.Stdin.(*os.File); ok {
		if st, err := f.Stat(); err == nil {
			size = sizeOf(st)
		}
	}
	return &interruptible{ctx: ctx, r: s.app.Stdin}, size, func() {}, nil
}

func sizeOf(st fs.FileInfo) int64 {
	if !st.Mode().IsRegular() {
		return -1
	}
	return st.Size()
}

// warnAbsent names the fields of a schema file that were in none of the records.
func (s *session) warnAbsent(t target, l *loader) {
	if t.schema == nil || l.loaded == 0 {
		return
	}
	for _, f := range t.schema.mentions() {
		if !f.seen.Load() {
			s.note("warning: ", fmt.Sprintf("%s:%d: %s: %s: no record has the field (index %s)",
				t.schema.file, f.line, f.word, f.name, f.index))
		}
	}
}

// loaded prints the result of a load that came to its end.
func (s *session) loaded(l *loader, took time.Duration) error {
	rate := float64(l.loaded) / max(took.Seconds(), 1e-6)
	var err error
	if s.json {
		err = s.value(struct {
			Loaded  int     `json:"loaded"`
			Bad     int     `json:"bad"`
			Seconds float64 `json:"seconds"`
			Rate    float64 `json:"records_per_second"`
		}{l.loaded, l.bad, took.Seconds(), rate})
	} else {
		text := fmt.Sprintf("loaded %s in %v (%.0f records/s)", plural(l.loaded, "record"), roundTime(took), rate)
		if l.bad > 0 {
			text += fmt.Sprintf(", left out %s", plural(l.bad, "bad line"))
		}
		err = s.line(text)
	}
	if err == nil && l.bad > 0 {
		if l.bad > maxReported {
			s.note("error: ", fmt.Sprintf("and %s not shown", plural(l.bad-maxReported, "bad line")))
		}
		return errReported
	}
	return err
}

// roundTime leaves a duration three digits or so.
func roundTime(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	default:
		return d.Round(time.Millisecond)
	}
}
