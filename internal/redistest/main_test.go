package redistest

import (
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is what a helper did to the test that it was given.
type outcome struct {
	failed, skipped bool
	text            string
}

// recorder is a test that may fail without failing its parent.
type recorder struct {
	testing.TB
	outcome
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.text += fmt.Sprintf(format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.skipped = true
	r.text += fmt.Sprint(args...)
	runtime.Goexit()
}

// record runs fn on a recorder that shares t's directory and cleanups.
func record(t *testing.T, fn func(t testing.TB)) outcome {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(r)
	}()
	<-done
	return r.outcome
}
