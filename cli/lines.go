package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line that is read. Records are limited further, by their declaration.
const maxLine = 64 << 20

// longLineError reports a line over the limit. It has been passed over.
type longLineError struct{ limit int }

func (e *longLineError) Error() string {
	return fmt.Sprintf("the line is longer than %d MiB", e.limit>>20)
}

// lines reads a text line by line. Lines of any length up to a limit come whole.
type lines struct {
	r     *bufio.Reader
	limit int
	line  int   // number of the line that next gave or failed at
	read  int64 // bytes read
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 256<<10), limit: limit}
}

// next gives the next line that is not blank, without its line end; the slice is the caller's. Errors: io.EOF,
// *longLineError (the next call goes on after it), and those of the reader.
func (l *lines) next() ([]byte, error) {
	for {
		l.line++
		line, long, err := l.whole()
		if l.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		switch {
		case err != nil:
			return nil, err
		case long:
			return nil, &longLineError{l.limit}
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		}
	}
}

// whole reads up to the next line end. io.EOF comes alone, after the last line.
func (l *lines) whole() (line []byte, long bool, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		l.read += int64(len(part))
		if len(line)+len(part) > l.limit {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && (len(line) > 0 || long):
			err = nil
		case err != nil:
			return nil, false, err
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		return bytes.TrimSuffix(line, []byte("\r")), long, err
	}
}

// interruptible is a reader whose Read ends with ctx. What it was reading from is not read again afterwards.
type interruptible struct {
	ctx context.Context
	r   io.Reader
	buf []byte
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	if len(i.buf) < len(p) {
		i.buf = make([]byte, len(p))
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	buf := i.buf[:len(p)]
	go func() {
		n, err := i.r.Read(buf)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return copy(p, buf[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}
