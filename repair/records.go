package repair

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// scanned is a record of a batch.
type scanned struct {
	*suspect
	there bool // its key holds a string
	wrong bool // something does not agree
}

// lookup asks one index key about the members that records of a batch should be.
type lookup struct {
	key     string
	d       declared
	entries []plan.Placed
	of      []*scanned
	members []any
	got     *redis.Cmd
	floor   lua.FloorMark
}

// checkBatch holds records against their rows and entries, by plain reads that are not of one instant. What agrees is in
// order: each part of it was true while it was looked at. What does not is a suspect, and examined.
func (p *pass) checkBatch(ctx context.Context, batch []recordKey) error {
	records, err := p.load(ctx, batch)
	if err != nil {
		return err
	}
	lookups, err := p.plan(records)
	if err != nil {
		return err
	}
	if err := p.fetch(ctx, lookups); err != nil {
		return err
	}
	now := time.Now().Add(p.ahead - time.Second) // in doubt inside the window: a suspect is held against the server's clock
	var settled []uint64
	for body, l := range lookups {
		answers, _ := l.got.Slice()
		for i, e := range l.entries {
			rec := l.of[i]
			switch {
			case len(answers) != len(l.entries):
				rec.wrong = true // something else sits at the key
			case isMember(e, answers[i]):
				settled = append(settled, p.mark(body, l.members[i].(string)))
			case answers[i] != nil, aged(l.d.bound, e.Score, now):
				rec.wrong = answers[i] != nil
			case trimmed(l.d.bound, e, rec.id, l.floor):
				p.offer(e, rec.id, rec.key)
			default:
				rec.wrong = true
			}
		}
	}
	p.mu.Lock()
	var queue []*suspect
	for _, rec := range records {
		if rec.there {
			p.report.Records++
			p.living[p.mark("", rec.id)] = struct{}{}
			for _, e := range rec.view.expected {
				if p.only == "" || e.Index == p.only {
					p.report.Entries++
				}
			}
		}
		if rec.wrong {
			queue = append(queue, rec.suspect)
		}
	}
	for _, h := range settled {
		p.settled[h] = struct{}{}
	}
	p.mu.Unlock()
	return p.examine(ctx, queue)
}

// load reads records and their rows, and derives what they ask for.
func (p *pass) load(ctx context.Context, batch []recordKey) ([]*scanned, error) {
	keys, ids := make([]string, len(batch)), make([]string, len(batch))
	for i, rec := range batch {
		keys[i], ids[i] = rec.key, rec.id
	}
	cmds, err := p.ask(ctx, func(pipe redis.Pipeliner) {
		pipe.MGet(ctx, keys...)
		pipe.HMGet(ctx, p.part.Manifest(), ids...)
	})
	if err != nil {
		return nil, err
	}
	values := cmds[0].(*redis.SliceCmd).Val()
	rows, err := cmds[1].(*redis.SliceCmd).Result()
	if wrongType(err) {
		return nil, p.mustBe(ctx, p.part.Manifest())
	}
	out := make([]*scanned, len(batch))
	for i, rec := range batch {
		s := &scanned{suspect: &suspect{id: rec.id, key: rec.key, digested: rec.digested}}
		out[i] = s
		value, there := values[i].(string)
		if s.there = there; !there {
			s.wrong = true // gone since, or no string: a look tells
			continue
		}
		row, hasRow := rows[i].(string)
		if rec.digested {
			s.id, row, hasRow = "", "", false // the row is that of the id, which is in the record
		}
		s.view = p.view(s.suspect, "string", value, row, hasRow)
		s.wrong = s.view.err != nil || s.view.own != "" && s.view.own != s.id || !s.rowIs(p.rowOf(s.suspect, nil, false))
	}
	return out, nil
}

// plan groups the entries of records in order so far by their keys.
func (p *pass) plan(records []*scanned) (map[string]*lookup, error) {
	lookups := map[string]*lookup{}
	for _, rec := range records {
		if rec.wrong {
			continue // a look asks for all of it
		}
		for _, e := range rec.view.expected {
			if p.only != "" && e.Index != p.only {
				continue
			}
			body := e.Token.Body()
			l := lookups[body]
			if l == nil {
				k, err := p.part.Entry(body)
				if err != nil {
					return nil, err
				}
				l = &lookup{key: k, d: p.declared[e.Index]}
				lookups[body] = l
			}
			l.entries = append(l.entries, e)
			l.of = append(l.of, rec)
			l.members = append(l.members, member(e.Token, rec.id))
		}
	}
	return lookups, nil
}

// fetch asks the index keys, and the floors of those that have one.
func (p *pass) fetch(ctx context.Context, lookups map[string]*lookup) error {
	if len(lookups) == 0 {
		return nil
	}
	var bounded []string
	for body, l := range lookups {
		if l.d.bound.Keep > 0 {
			bounded = append(bounded, body)
		}
	}
	var floors *redis.SliceCmd
	_, err := p.ask(ctx, func(pipe redis.Pipeliner) {
		for _, l := range lookups {
			command := "zmscore"
			if l.d.kind == plan.Set {
				command = "smismember"
			}
			l.got = pipe.Do(ctx, append([]any{command, l.key}, l.members...)...)
		}
		if len(bounded) > 0 {
			floors = pipe.HMGet(ctx, p.part.Floor(), bounded...)
		}
	})
	if err != nil || floors == nil {
		return err
	}
	raw, err := floors.Result()
	if wrongType(err) {
		return p.mustBe(ctx, p.part.Floor())
	}
	for i, body := range bounded {
		if text, ok := raw[i].(string); ok {
			lookups[body].floor = lua.ParseFloor(text)
		}
	}
	return nil
}

// isMember reads the answer of SMISMEMBER or ZMSCORE: whether an entry is there, with its score.
func isMember(e plan.Placed, answer any) bool {
	switch got := answer.(type) {
	case int64:
		return got == 1
	case float64: // a score under RESP3
		return sameScore(e, strconv.FormatFloat(got, 'g', -1, 64))
	case string:
		return sameScore(e, got)
	}
	return false
}
