package repair

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// Sweep collects what expired records have left: their entries, rows and notes. Writes do that by themselves, a few records
// at a time; a sweep does all of it, for an entity type that is hardly written any more or to see the memory free. A record
// that was written again or renewed in between is left alone: the script that collects holds again that it is gone. Where
// nothing is left of the entity type, its bookkeeping goes too, all but the catalog.
//
// In the report Records counts the expired records and Expired the entries that went. Errors: as Run; a sweep that is
// stopped can be started again at any time.
//
// Cost: two round trips per 100 expired records, whatever lives beside them.
func Sweep(ctx context.Context, c index.Opened, o Options) (Report, error) {
	return start(ctx, c, o, func(p *pass) error {
		p.sweeping = true
		return p.writable()
	})
}

// Sweeping is the phase of a sweep, counted in expired records.
const Sweeping Phase = "sweep"

// sweeps sweeps, and again where the partition has begun another life: somebody else has swept it empty, and it was written
// since.
func (p *pass) sweeps(ctx context.Context) error {
	for n := 1; ; n++ {
		err := p.sweep(ctx)
		if !errors.Is(err, lua.ErrNotEntered) || n == maxAttempts {
			return err
		}
		if err := p.m.Enter(ctx); err != nil {
			return err
		}
	}
}

// sweep collects until nothing is due that can be.
func (p *pass) sweep(ctx context.Context) error {
	p.phase(Sweeping, 0)
	// What is due but not gone stays, and is stepped over: the record was renewed by other means, or expires right now.
	stays := 0
	for {
		due, total, err := p.run.Due(ctx, p.part.Meta(), p.part.Manifest(), p.part.Expiry(), fixRecords, stays)
		if err != nil {
			return err
		}
		if len(due) == 0 {
			break
		}
		p.count(func(*Report) { p.progress.Total = max(p.progress.Total, p.progress.Done+total) })
		if err := p.throttle(ctx, len(due)); err != nil {
			return err
		}
		left, err := p.collect(ctx, due)
		if err != nil {
			return err
		}
		stays += left
		p.advance(len(due) - left)
	}
	p.phaseOver()
	_, err := p.m.Retire(ctx)
	return err
}

// collect takes away what records have left and tells how many of them are still there.
func (p *pass) collect(ctx context.Context, due []lua.DueRecord) (left int, err error) {
	var changes []index.Change
	for _, d := range due {
		k, err := p.part.Record(d.ID)
		if err != nil {
			return left, err
		}
		ch := index.Change{ID: d.ID, Key: k, Gone: true}
		if d.Row != "" {
			row, err := plan.ParseRow(d.Row)
			if err != nil {
				// A damaged row does not say what to remove: that is for Run.
				left++
				continue
			}
			ch.Assumed, ch.Remove = plan.Join(row.Entries), row.Entries
		}
		changes = append(changes, ch)
	}
	if len(changes) == 0 {
		return left, nil
	}
	statuses, err := p.m.Repair(ctx, "", changes)
	if err != nil {
		return left, err
	}
	for i, status := range statuses {
		switch status.Code {
		case lua.Written, lua.Repeated:
			p.count(func(r *Report) {
				r.Records++
				r.Expired += int64(len(changes[i].Remove))
			})
		case lua.Replan:
			// Written again and gone again since: the next round sees the new row.
		default:
			left++
		}
	}
	return left, nil
}
