package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/repair"
)

// onKV is a store of opaque values, with membership indexes.
type onKV struct{ *opaque.Store }

// batch is one: records are put one after another anyway, so a load stops at the line that fails.
func (onKV) batch() int { return 1 }

func (o onKV) verify(ctx context.Context, f passFlags, bar *phases) (passReport, error) {
	return o.pass(ctx, o.Verify, f, bar)
}

func (o onKV) repair(ctx context.Context, f passFlags, bar *phases) (passReport, error) {
	return o.pass(ctx, o.Run, f, bar)
}

func (o onKV) pass(
	ctx context.Context, run func(context.Context, opaque.RunOptions) (*opaque.Report, error), f passFlags, bar *phases,
) (passReport, error) {
	bar.records(0)
	started := time.Now()
	r, err := run(ctx, opaque.RunOptions{Rate: f.rate, Trust: f.trust, IDs: f.ids, Progress: bar.records})
	if r == nil {
		return passReport{}, err
	}
	k := kvReport{Report: repair.Report{
		Entity: o.Declared().String(), Started: started, Duration: time.Since(started),
		Stopped: err != nil && ctx.Err() != nil, Failed: err != nil && ctx.Err() == nil,
	}}
	k.take(r, f.findings)
	return k.ready(), err
}

// kvReport is the report of a pass over opaque values: that of package repair, and what only such a store has.
type kvReport struct {
	repair.Report
	Pending  int    `json:"pending"`  // reservations of creates that never finished
	Outdated int    `json:"outdated"` // records written under an older declaration
	Conflict int    `json:"conflict"` // unique values that another live record holds; counted in Skipped too
	Young    int    `json:"young"`    // what may belong to a write under way, left alone
	Lost     string `json:"lost"`     // why the indexes are suspect, "" if they are not
}

// take fills the report in, with the first findings.
func (k *kvReport) take(r *opaque.Report, findings int) {
	count := func(kind opaque.FindingKind) int64 { return int64(r.Counts[kind]) }
	k.Records, k.Entries = int64(r.Records), int64(r.Entries)
	k.Missing, k.Stale, k.Orphan = count(opaque.Missing), count(opaque.Stale), count(opaque.Orphan)
	k.Undecodable = count(opaque.Undecodable)
	k.Pending, k.Outdated, k.Conflict = r.Counts[opaque.Pending], r.Counts[opaque.Outdated], r.Counts[opaque.Conflict]
	k.Skipped = int64(k.Conflict)
	for _, n := range r.Fixed {
		k.Fixed += int64(n)
	}
	k.Young, k.Lost = r.Young, r.Lost
	k.NotReady = append([]string{}, r.NotReady...)
	k.Findings = []repair.Finding{}
	for _, f := range r.Findings[:min(findings, len(r.Findings))] {
		k.Findings = append(k.Findings, k.finding(f))
	}
	k.Truncated = k.found() - int64(len(k.Findings))
}

func (k *kvReport) finding(f opaque.Finding) repair.Finding {
	out := repair.Finding{Kind: repair.Kind(f.Kind), Index: f.Index, ID: f.ID, Key: f.Key, Fixed: f.Fixed}
	if f.Kind == opaque.Conflict {
		out.Err = &index.ConflictError{Entity: k.Entity, ID: f.ID, Index: f.Index, Value: f.Value, Holder: f.Holder}
	}
	return out
}

// found is the number of findings of all kinds.
func (k *kvReport) found() int64 { return k.Found() + int64(k.Pending+k.Outdated+k.Conflict) }

// left is how many findings are neither fixed nor skipped.
func (k *kvReport) left() int64 { return k.found() - k.Fixed - k.Skipped }

// ready makes the report ready for printing.
func (k *kvReport) ready() passReport {
	return passReport{
		object: k, began: true, about: about(k.Report), findings: k.Findings, found: k.found(), verdict: k.verdict(),
		code: k.exitCode(),
		counts: countGrid([]kindCount{
			{repair.Missing, k.Missing},
			{repair.Stale, k.Stale},
			{repair.Orphan, k.Orphan},
			{repair.Kind(opaque.Pending), int64(k.Pending)},
			{repair.Kind(opaque.Outdated), int64(k.Outdated)},
			{repair.Kind(opaque.Conflict), int64(k.Conflict)},
			{repair.Undecodable, k.Undecodable},
			{"fixed", k.Fixed},
		}, kindCount{"young, left alone", int64(k.Young)}),
	}
}

// exitCode is as that of package repair; indexes that are suspect count as not ready.
func (k *kvReport) exitCode() int {
	code := 0
	ended := !k.Stopped && !k.Failed
	if k.left() > 0 || ended && k.Lost != "" || ended && len(k.NotReady) > 0 && k.Skipped == 0 {
		code += repair.ExitFindings
	}
	if k.Failed {
		code += repair.ExitFailed
	}
	if k.Skipped > 0 {
		code += repair.ExitSkipped
	}
	if k.Stopped {
		code += repair.ExitStopped
	}
	return code
}

// verdict says in one line how the pass ended.
func (k *kvReport) verdict() string {
	if k.Stopped || k.Failed {
		return verdict(k.Report)
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if left := k.left() + k.Skipped; left > 0 {
		add("%s left", plural(int(left), "finding"))
	}
	for _, name := range k.NotReady {
		add("index %s is not ready", name)
	}
	if k.Lost != "" {
		add("the indexes are suspect, the store has lost data: %s (repair --help says how to clear it)", k.Lost)
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case k.found() > 0:
		return "clean: all that was found is fixed"
	}
	return "clean"
}
