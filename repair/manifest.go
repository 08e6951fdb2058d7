package repair

import (
	"context"

	"github.com/lockstep-go/lockstep/lua"
)

// checkManifest looks for rows whose record is not there.
func (p *pass) checkManifest(ctx context.Context) error {
	manifest := p.part.Manifest()
	total, err := p.rdb.HLen(ctx, manifest).Result()
	if err != nil {
		return p.readError(ctx, manifest, err)
	}
	p.phase(Manifest, total)
	var queue []*suspect
	for cursor := uint64(0); ; {
		fields, next, err := p.rdb.HScan(ctx, manifest, cursor, "", scanCount).Result()
		if err != nil {
			return p.readError(ctx, manifest, err)
		}
		p.mu.Lock()
		for i := 0; i+1 < len(fields); i += 2 {
			id := fields[i]
			if _, lives := p.living[p.mark("", id)]; lives {
				continue
			}
			k, err := p.part.Record(id)
			if err != nil {
				continue // no id of ours: no key can be made of it
			}
			queue = append(queue, &suspect{id: id, key: k})
		}
		p.mu.Unlock()
		if err := p.throttle(ctx, len(fields)/2); err != nil {
			return err
		}
		if len(queue) >= lookRecords || next == 0 {
			if err := p.examine(ctx, queue); err != nil {
				return err
			}
			queue = nil
		}
		p.advance(len(fields) / 2)
		if cursor = next; cursor == 0 {
			break
		}
	}
	p.phaseOver()
	return nil
}

// readError names what is wrong with a bookkeeping key that could not be read.
func (p *pass) readError(ctx context.Context, k string, err error) error {
	if wrongType(err) {
		return p.mustBe(ctx, k)
	}
	return lua.Judge(err)
}
