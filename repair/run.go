package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/lua"
)

// Verify holds every index of c against its records and reports what is wrong, each entry once. It changes nothing, and
// works while others write: what it reports has been read twice with the record, its row and its bytes unchanged. What a
// write moves in between is not reported.
//
// What belongs to an index that is no longer declared is stale, or an orphan. Entries that a bounded ranked index has trimmed,
// or that are older than its window, are not missing; those of expired records are not orphans.
//
// Errors: index.ErrSchema if a newer declaration has been opened on the store, whose entries c does not know; the context's;
// those of the store. The report holds what was found up to there, and its ExitCode says how it ended.
//
// Cost: the keyspace is scanned once, and each record and member of an index key is read once, in batches; where no index is
// bounded and no rate is set, while the scan goes on. One more round trip for each 100 records that look wrong. Memory:
// about 150 bytes for each record and 50 for each entry. (The scrubbers of FoundationDB's record layer go in the same two
// directions.)
func Verify(ctx context.Context, c index.Opened, o Options) (Report, error) {
	return start(ctx, c, o, func(*pass) error { return nil })
}

// Run verifies as Verify does, and fixes what it finds: a finding is reported when its fate is known. Each fix is atomic on
// one record and does nothing if the record has moved since it was judged. Undecodable records and foreign values are never
// touched, nor are entries of which that cannot be told. A unique value that two records ask for stays with its holder: the
// other record is reported with an *index.ConflictError, and skipped.
//
// Run also writes lost rows again, collects what expired records have left, takes trimmed entries back where better ones are
// gone, and builds the indexes that are not ready, as after the loss of index keys, manifest or meta. Where it builds, writers
// of older declarations are refused with index.ErrSchema from then on. Only one build goes on at a time: the later one takes
// over, the earlier ends with ErrActive. A Run that is killed can be started again at any time; nothing is half done.
//
// Errors: as Verify, ErrActive, ErrUnsteady, index.ErrReadOnly. Cost: beside that of Verify one round trip per 100 records
// to fix.
func Run(ctx context.Context, c index.Opened, o Options) (Report, error) {
	return start(ctx, c, o, func(p *pass) error {
		p.fix = true
		return p.writable()
	})
}

// Build makes one index ready: one that is new, or whose definition has changed. Until it is, queries on it answer
// index.ErrNotReady, never a short list. The other indexes stay as they are. Writers of older declarations, which do not
// maintain the index, are refused with index.ErrSchema as soon as Build begins; all others go on. Where two records ask for
// one value of a unique index, it does not become ready: the report names them (*index.ConflictError).
//
// Otherwise as Run. The missing entries of the index are counted, and not listed.
func Build(ctx context.Context, c index.Opened, name string, o Options) (Report, error) {
	return start(ctx, c, o, func(p *pass) error {
		p.fix, p.only = true, name
		for _, d := range c.Declared().Definitions() {
			if d.Name == name {
				return p.writable()
			}
		}
		return fmt.Errorf("%w: %s has no index %q", index.ErrInvalid, c.Declared(), name)
	})
}

func (p *pass) writable() error {
	if p.m.ReadOnly() {
		return index.ErrReadOnly
	}
	return nil
}

// start makes a pass and says in the report how it ended.
func start(ctx context.Context, c index.Opened, o Options, set func(*pass) error) (Report, error) {
	p := newPass(c)
	err := p.whole(ctx, c, o, set)
	p.report.Duration = time.Since(p.report.Started)
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p.report.Stopped = true
	case errors.Is(err, lua.ErrFenced):
		p.report.Active = true
		err = fmt.Errorf("%w: %w", ErrActive, err)
	default:
		p.report.Failed = true
	}
	if err != nil {
		err = fmt.Errorf("repair %s: %w", p.report.Entity, err)
	}
	return p.report, err
}

func (p *pass) whole(ctx context.Context, c index.Opened, o Options, set func(*pass) error) error {
	if err := p.configure(o); err != nil {
		return err
	}
	if err := set(p); err != nil {
		return err
	}
	if p.sweeping {
		return p.sweeps(ctx)
	}
	if err := p.attempts(ctx, c); err != nil {
		return err
	}
	states, err := p.states(ctx)
	if err != nil {
		return err
	}
	p.report.NotReady = states.unready
	if p.only != "" {
		p.report.NotReady = only(states.unready, p.only)
	}
	return nil
}

// over goes over everything once.
func (p *pass) over(ctx context.Context) error {
	now, err := lua.Call(ctx, func() (time.Time, error) { return p.rdb.Time(ctx).Result() })
	if err != nil {
		return lua.Judge(err)
	}
	p.ahead = time.Until(now)
	if err := p.readFloors(ctx); err != nil { // before the first record: see floor
		return err
	}
	for _, phase := range []func(context.Context) error{p.findKeys, p.readEntries, p.checkRecords, p.checkLeftovers} {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	if !p.fix {
		return nil
	}
	if err := p.decideConflicts(ctx); err != nil {
		return err
	}
	return p.refill(ctx)
}
