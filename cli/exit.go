package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
)

// The exit codes.
const (
	exitFine    = 0
	exitFinding = 1
	exitFailed  = 2
)

// finding is an error that the data is to blame for.
type finding struct{ err error }

func (f finding) Error() string { return f.err.Error() }
func (f finding) Unwrap() error { return f.err }

// What ends a command whose errors are printed already: findings, or a failure.
var (
	errReported = finding{errors.New("findings")}
	errFailed   = errors.New("failed")
)

// exitWith ends a command whose errors are printed already with an exit code of its own.
type exitWith int

func (e exitWith) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ofData reports an error that is about one record rather than about the server or the declaration.
func ofData(err error) bool {
	for _, cause := range []error{
		index.ErrNotFound, index.ErrExists, index.ErrConflict, index.ErrInvalid, index.ErrTooLarge, index.ErrUndecodable,
		index.ErrKeyType, index.ErrContended, opaque.ErrBadKey,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// judged marks an error about data as a finding.
func judged(err error) error {
	if err != nil && ofData(err) {
		return finding{err}
	}
	return err
}

// report prints the error that ended a run and gives the exit code.
func (s *session) report(err error) int {
	if err == nil {
		return exitFine
	}
	var code exitWith
	if errors.As(err, &code) {
		return int(code)
	}
	var f finding
	isFinding := errors.As(err, &f)
	if !errors.Is(err, errReported.err) && !errors.Is(err, errFailed) {
		if !s.started {
			err = fmt.Errorf("%w", firstLine{err})
		}
		s.fail(err)
	}
	if isFinding {
		return exitFinding
	}
	return exitFailed
}

// firstLine cuts what a flag parser appends to its error.
type firstLine struct{ error }

func (f firstLine) Error() string {
	line, _, _ := strings.Cut(f.error.Error(), "\n")
	return line
}

// fail prints an error, each of its lines as one.
func (s *session) fail(err error) {
	_ = s.out.Flush() // what came before it is seen before it; an error stays in the writer
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if s.json {
			b, jerr := json.Marshal(map[string]string{"error": line})
			if jerr == nil {
				s.err(string(b))
			}
			continue
		}
		s.note("error: ", line)
	}
}

// note prints one line on standard error.
func (s *session) note(kind, text string) {
	if s.errTerminal {
		text = printable(text)
	}
	s.err(kind + strings.ReplaceAll(text, "\n", "; "))
}

// err prints one line on standard error. Where even that fails, nobody is left to tell.
func (s *session) err(line string) { _, _ = io.WriteString(s.app.Stderr, line+"\n") }
