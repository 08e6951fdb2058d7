package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lockstep-go/lockstep/index"
)

const (
	loadBatch      = 600     // records that go out together on Redis: whole calls of the library, which take 200
	loadBatchBytes = 4 << 20 // or this many bytes of them
	maxReported    = 10      // bad lines that are shown
)

// loader writes lines as records, in batches.
type loader struct {
	into   records
	batch  int  // records that go out together
	skip   bool // go on after a bad line
	bar    *progress
	report func(line int, err error) // of a bad line that is left out

	loaded int // records written
	bad    int // lines left out

	raw   [][]byte // the batch, so far
	lines []int    // aligned with raw
	bytes int
}

// run writes every line. Its error says how far it came.
func (l *loader) run(ctx context.Context, in *lines) error {
	for {
		raw, err := in.next()
		if err == io.EOF { //nolint:errorlint // a reader's end is the bare value
			return l.flush(ctx)
		}
		var long *longLineError
		if err != nil && !errors.As(err, &long) {
			if ferr := l.flush(context.WithoutCancel(ctx)); ferr != nil {
				return ferr
			}
			if ctx.Err() != nil {
				return l.interrupted(in.line)
			}
			return fmt.Errorf("line %d: %w (stopped; %s loaded)", in.line, err, plural(l.loaded, "record"))
		}
		if err == nil {
			_, err = l.into.Inspect(raw)
		}
		if err != nil {
			if err := l.refuse(ctx, in.line, err); err != nil {
				return err
			}
			continue
		}
		l.raw, l.lines = append(l.raw, raw), append(l.lines, in.line)
		l.bytes += len(raw)
		if len(l.raw) == l.batch || l.bytes >= loadBatchBytes {
			if err := l.flush(ctx); err != nil {
				return err
			}
			l.bar.at(in.read, l.loaded)
		}
	}
}

// refuse deals with a line that is no record: without skip what came before it is written, and that is the end.
func (l *loader) refuse(ctx context.Context, line int, cause error) error {
	if l.skip {
		l.leaveOut(line, cause)
		return nil
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	return finding{fmt.Errorf("line %d: %w (stopped: %s before it loaded, nothing of it or after it)",
		line, cause, plural(l.loaded, "record"))}
}

func (l *loader) leaveOut(line int, cause error) {
	l.bad++
	if l.bad <= maxReported {
		l.report(line, cause)
	}
}

// flush writes the batch.
func (l *loader) flush(ctx context.Context) error {
	if len(l.raw) == 0 {
		return nil
	}
	raw, lines := l.raw, l.lines
	l.raw, l.lines, l.bytes = nil, nil, 0
	outcomes, err := l.into.PutEncoded(ctx, raw)
	if len(outcomes) != len(raw) && err != nil {
		return err
	}
	var refused, failed, unknown []int // positions in the batch
	for i, o := range outcomes {
		switch {
		case o.Err == nil:
			l.loaded++
		case ofData(o.Err):
			refused = append(refused, i)
		default:
			failed = append(failed, i)
			if errors.Is(o.Err, index.ErrUnknown) {
				unknown = append(unknown, i)
			}
		}
	}
	if len(failed) > 0 {
		first := failed[0]
		doubt := ""
		if len(unknown) > 0 {
			doubt = fmt.Sprintf("; whether lines %d to %d are written is unknown", lines[unknown[0]], lines[unknown[len(unknown)-1]])
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted before line %d: %s loaded%s", lines[first], plural(l.loaded, "record"), doubt)
		}
		return fmt.Errorf("line %d: %w (stopped: %s loaded%s)", lines[first], outcomes[first].Err, plural(l.loaded, "record"), doubt)
	}
	if len(refused) == 0 {
		return nil
	}
	if l.skip {
		for _, i := range refused {
			l.leaveOut(lines[i], outcomes[i].Err)
		}
		return nil
	}
	first := refused[0]
	more := ""
	if len(refused) > 1 {
		more = fmt.Sprintf(" and %s refused like it", plural(len(refused)-1, "line"))
	}
	return finding{fmt.Errorf("line %d: %w (stopped: %s loaded, up to line %d without it%s)",
		lines[first], outcomes[first].Err, plural(l.loaded, "record"), lines[len(lines)-1], more)}
}

// interrupted says how far a load came that was told to stop while it read.
func (l *loader) interrupted(line int) error {
	return fmt.Errorf("interrupted at line %d: %s loaded, all before it", line, plural(l.loaded, "record"))
}
