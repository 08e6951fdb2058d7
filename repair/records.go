package repair

import (
	"context"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/internal/plan"
)

// batchRecords is how many records are read in one round trip.
const batchRecords = 200

// checkRecords holds every record against the rows and the members that were read.
func (p *pass) checkRecords(ctx context.Context) error {
	p.phase(Records, int64(p.found))
	p.living = make(map[uint64]bool, p.found)
	if p.glances != nil {
		p.records = p.agreeing()
	}
	size := batchRecords
	if p.limiter != nil {
		size = min(size, max(1, p.o.Rate/10))
	}
	batches := make(chan []recordKey, workers)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(batches)
		var batch []recordKey
		flush := func() error {
			if err := p.throttle(gctx, len(batch)); err != nil {
				return err
			}
			select {
			case batches <- batch:
				batch = nil
				return nil
			case <-gctx.Done():
				return context.Cause(gctx)
			}
		}
		err := p.eachRecord(gctx, func(rec recordKey) error {
			if batch = append(batch, rec); len(batch) < size {
				return nil
			}
			return flush()
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		return flush()
	})
	for range workers {
		g.Go(func() error {
			for batch := range batches {
				if err := p.checkBatch(gctx, batch); err != nil {
					return err
				}
				p.advance(len(batch))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.phaseOver()
	return nil
}

// eachRecord gives the keys of all records.
func (p *pass) eachRecord(ctx context.Context, give func(recordKey) error) error {
	if p.overflow {
		return p.scan(ctx, give, false)
	}
	for _, rec := range p.records {
		if err := give(rec); err != nil {
			return err
		}
	}
	return nil
}

// scanned is a record of a batch with what it should have.
type scanned struct {
	recordKey
	entries []plan.Placed
	marks   []uint64 // of the entries, aligned
	row     uint64
	there   bool // its key holds a string
	wrong   bool // something does not agree
}

// checkBatch reads records and holds them against what was read before. What agrees is in order: each part of it was true
// when it was read. What does not is a suspect, and examined.
func (p *pass) checkBatch(ctx context.Context, batch []recordKey) error {
	values, err := p.values(ctx, batch)
	if err != nil {
		return err
	}
	now := time.Now().Add(p.ahead - time.Second) // in doubt inside the window: a suspect is held against the server's clock
	records := make([]scanned, len(batch))
	for i, rec := range batch {
		value, there := values[i].(string)
		records[i] = p.expect(rec, value, there)
	}

	var queue []*suspect
	p.mu.Lock()
	for i := range records {
		rec := &records[i]
		if rec.there {
			id := p.mark("", rec.id)
			if p.living[id] {
				continue // SCAN may give a key twice
			}
			p.living[id] = true
			p.report.Records++
			rec.wrong = rec.wrong || p.fix && p.rows[id] != rec.row
		}
		for j, e := range rec.entries {
			if p.only != "" && e.Index != p.only {
				continue
			}
			p.report.Entries++
			if !p.account(rec, e, rec.marks[j], now) {
				rec.wrong = true
			}
		}
		if rec.wrong {
			queue = append(queue, &suspect{id: rec.id, key: rec.key, digested: rec.digested})
		}
	}
	p.mu.Unlock()
	return p.examine(ctx, queue)
}

// expect derives what a record should have.
func (p *pass) expect(rec recordKey, value string, there bool) scanned {
	s := scanned{recordKey: rec, there: there}
	if !there {
		s.wrong = true // gone since, or no string: a look tells
		return s
	}
	id := rec.id
	if rec.digested {
		id = ""
	}
	own, entries, err := p.m.Expected(id, []byte(value))
	if err != nil || own != "" && own != rec.id || rec.digested {
		s.wrong = true
		s.entries = entries
		if err != nil {
			s.entries = nil
		}
	} else {
		s.entries = entries
	}
	if p.fix {
		s.row = p.mark("row", plan.Join(plan.Tokens(s.entries)))
	}
	s.marks = make([]uint64, len(s.entries))
	for i, e := range s.entries {
		score := 0.0
		if e.Token.Kind() == plan.Ranked {
			score, _ = strconv.ParseFloat(e.Score, 64) // as an encoder writes it
		}
		s.marks[i] = p.mark(e.Token.Body(), member(e.Token, rec.id)) ^ scoreMark(score)
	}
	return s
}

// account reports whether an entry is in order as far as was read. The caller holds mu.
func (p *pass) account(rec *scanned, e plan.Placed, h uint64, now time.Time) bool {
	if place, ok := p.members[h]; ok {
		p.seen[place].used = p.seen[place].used || !rec.wrong
		return true
	}
	d := p.declared[e.Index]
	if d.kind == plan.Set {
		return false
	}
	if aged(d.bound, e.Score, now) {
		return true
	}
	f := p.floors[e.Token.Body()]
	if f == nil || !trimmed(d.bound, e, rec.id, f.mark) {
		return false
	}
	f.offer(candidate{e, rec.id, rec.key})
	return true
}
