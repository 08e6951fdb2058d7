package cli

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/lockstep-go/lockstep/repair"
)

// progress is the bar of a long command on standard error, nothing where that is no terminal.
type progress struct {
	bar   *progressbar.ProgressBar
	bytes bool // counts bytes, of a known total; else records
	shut  bool
}

// newProgress begins a bar over size bytes, or a count of records where the size is not known (-1).
func (s *session) newProgress(size int64) *progress {
	p := &progress{bytes: size >= 0}
	if !s.errTerminal {
		return p
	}
	o := []progressbar.Option{
		progressbar.OptionSetWriter(s.app.Stderr),
		progressbar.OptionSetDescription("loading"),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // no goroutine
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionUseANSICodes(true),
	}
	if p.bytes {
		o = append(o, progressbar.OptionShowBytes(true), progressbar.OptionSetPredictTime(true))
	} else {
		size = -1
		o = append(o, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("records"))
	}
	p.bar = progressbar.NewOptions64(size, o...)
	return p
}

// at moves the bar.
func (p *progress) at(bytes int64, records int) {
	if p == nil || p.bar == nil || p.shut {
		return
	}
	p.bar.Describe(fmt.Sprintf("%d records", records))
	if p.bytes {
		_ = p.bar.Set64(bytes)
		return
	}
	_ = p.bar.Set(records)
}

// clear makes room for a line of text; the bar comes back when it moves.
func (p *progress) clear() {
	if p != nil && p.bar != nil && !p.shut {
		_ = p.bar.Clear()
	}
}

// close takes the bar away.
func (p *progress) close() {
	if p != nil && p.bar != nil && !p.shut {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
		p.shut = true
	}
}

// phases is the bar of a pass on standard error, one after another for its phases; nothing where that is no terminal.
type phases struct {
	s    *session
	name string
	now  repair.Phase
	bar  *progressbar.ProgressBar
}

func (s *session) newPhases(name string) *phases { return &phases{s: s, name: name} }

// at moves the bar of a pass of package repair.
func (p *phases) at(pr repair.Progress) {
	text := fmt.Sprintf("%s %s, %d found", p.name, pr.Phase, pr.Found)
	if pr.Phase == repair.Sweeping { // which finds nothing
		text = p.name
	}
	p.move(pr.Phase, pr.Done, pr.Total, text)
}

// records moves the bar of a pass that only says how many records it has looked at.
func (p *phases) records(n int) {
	p.move(repair.Records, int64(n), 0, fmt.Sprintf("%s %s", p.name, repair.Records))
}

// move moves the bar of a phase; total is 0 where it is not known.
func (p *phases) move(phase repair.Phase, done, total int64, text string) {
	if !p.s.errTerminal {
		return
	}
	if phase != p.now || p.bar == nil {
		p.close()
		p.now = phase
		limit := total
		if limit <= 0 {
			limit = -1
		}
		p.bar = progressbar.NewOptions64(limit,
			progressbar.OptionSetWriter(p.s.app.Stderr),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetSpinnerChangeInterval(0), // no goroutine
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionShowCount(),
		)
	}
	p.bar.Describe(text)
	if total > 0 {
		p.bar.ChangeMax64(max(total, done)) // an estimate while others write
	}
	_ = p.bar.Set64(done)
}

// close takes the bar away.
func (p *phases) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
		p.bar = nil
	}
}
