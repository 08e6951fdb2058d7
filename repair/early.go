package repair

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/lua"
)

// glance is a record as it was read while the keyspace was still being scanned: what is enough to find it in order.
type glance struct {
	recordKey
	marks []uint64 // of its entries
	wrong bool     // it was no record, or not to be understood
}

// early reads records and members while the scan for their keys goes on, so that the server looks for keys while records are
// decoded. It serves verification alone: a fix is decided by records that are read after the rows, and under a rate nothing
// should be read in vain. A record of which an entry was trimmed, or has left its window, would have to be read again, so it
// takes indexes that hold every record.
type early struct {
	p       *pass
	batch   []recordKey
	records chan []recordKey
	placed  int // of the keys of the pass
	keys    chan []*indexKey
	g       *errgroup.Group
	ctx     context.Context //nolint:containedctx // of the scan
}

// earlyKeys is how many index keys are read together early: few, so that large ones begin soon.
const earlyKeys = 10

// newEarly begins to read, or gives nil where it is of no use.
func (p *pass) newEarly(ctx context.Context) (*early, error) {
	if p.fix || p.limiter != nil {
		return nil, nil
	}
	for _, d := range p.declared {
		if d.bound.Keep != 0 || d.bound.MaxAge != 0 {
			return nil, nil
		}
	}
	if err := p.expectMembers(ctx); err != nil {
		return nil, err
	}
	e := &early{p: p, records: make(chan []recordKey, workers), keys: make(chan []*indexKey, workers)}
	e.g, e.ctx = errgroup.WithContext(ctx)
	for range workers {
		e.g.Go(func() error {
			for batch := range e.records {
				if err := e.read(batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	e.g.Go(func() error {
		for batch := range e.keys {
			if err := p.readKeys(e.ctx, batch, p.member); err != nil {
				return err
			}
		}
		return nil
	})
	return e, nil
}

// take takes the index keys that the scan has found since.
func (e *early) take() error {
	found := e.p.keys[e.placed:]
	current, err := e.p.placeAll(found, e.placed)
	if err != nil {
		return err
	}
	e.placed += len(found)
	for batch := range slices.Chunk(current, earlyKeys) {
		select {
		case e.keys <- batch:
		case <-e.ctx.Done():
			return context.Cause(e.ctx)
		}
	}
	return nil
}

// add takes the key of a record.
func (e *early) add(rec recordKey) error {
	if e.batch = append(e.batch, rec); len(e.batch) < batchRecords {
		return nil
	}
	return e.flush()
}

func (e *early) flush() error {
	if len(e.batch) == 0 {
		return nil
	}
	select {
	case e.records <- e.batch:
		e.batch = make([]recordKey, 0, batchRecords)
		return nil
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
}

// end waits until everything is read. failed is what ended the scan, if something did.
func (e *early) end(failed error) error {
	if failed == nil {
		failed = e.flush()
	}
	close(e.records)
	close(e.keys)
	if err := e.g.Wait(); err != nil {
		return err
	}
	return failed
}

func (e *early) read(batch []recordKey) error {
	p := e.p
	values, err := p.values(e.ctx, batch)
	if err != nil {
		return err
	}
	glances := make([]glance, len(batch))
	for i, rec := range batch {
		value, there := values[i].(string)
		s := p.expect(rec, value, there)
		glances[i] = glance{rec, s.marks, s.wrong}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.glances = append(p.glances, glances)
	return nil
}

// values are the values at the keys of records: a string each, nil where there is no string.
func (p *pass) values(ctx context.Context, batch []recordKey) ([]any, error) {
	keys := make([]string, len(batch))
	for i, rec := range batch {
		keys[i] = rec.key
	}
	cmds, err := p.ask(ctx, func(pipe redis.Pipeliner) { pipe.MGet(ctx, keys...) })
	if err != nil {
		return nil, err
	}
	values, err := cmds[0].(*redis.SliceCmd).Result()
	if err != nil {
		return nil, lua.Judge(err)
	}
	return values, nil
}

// agreeing takes the records in that were read early and whose entries have all been read since, and gives the others.
func (p *pass) agreeing() (rest []recordKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, batch := range p.glances {
		for i := range batch {
			if g := &batch[i]; !p.agrees(g) {
				rest = append(rest, g.recordKey)
			}
		}
	}
	p.glances = nil
	return rest
}

// agrees takes a record in if nothing is wrong with it. The caller holds mu.
func (p *pass) agrees(g *glance) bool {
	if g.wrong {
		return false
	}
	id := p.mark("", g.id)
	if p.living[id] {
		return true // SCAN may give a key twice
	}
	for _, h := range g.marks {
		if _, ok := p.members[h]; !ok {
			return false
		}
	}
	for _, h := range g.marks {
		p.seen[p.members[h]].used = true
	}
	p.living[id] = true
	p.report.Records++
	p.report.Entries += int64(len(g.marks))
	p.progress.Done++
	return true
}
