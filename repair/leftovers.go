package repair

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/lua"
)

// checkLeftovers looks for rows and members that no record has accounted for, and for what is none of Lockstep's.
func (p *pass) checkLeftovers(ctx context.Context) error {
	for _, m := range p.seen {
		if !m.used {
			p.keys[m.key].open = true
		}
	}
	rows, err := p.openRows(ctx)
	if err != nil {
		return err
	}
	open := slices.DeleteFunc(slices.Clone(p.keys), func(k *indexKey) bool { return !k.open })
	p.phase(Leftovers, int64(rows+len(open)))
	if rows > 0 {
		if err := p.checkManifest(ctx); err != nil {
			return err
		}
	}
	if err := p.checkKeys(ctx, open); err != nil {
		return err
	}
	if p.only == "" {
		if err := p.checkStrangers(ctx); err != nil {
			return err
		}
	}
	p.phaseOver()
	return nil
}

// openRows is how many rows no record has accounted for. Where rows are not read, their number tells whether to look.
func (p *pass) openRows(ctx context.Context) (int, error) {
	if p.only != "" {
		return 0, nil
	}
	if !p.fix {
		n, err := p.rowCount(ctx)
		if err != nil {
			return 0, err
		}
		if n == p.report.Records {
			return 0, nil
		}
		if err := p.readRows(ctx); err != nil {
			return 0, err
		}
		for id := range p.living {
			if _, ok := p.rows[id]; !ok {
				p.report.Rows++
			}
		}
	}
	rows := 0
	for id := range p.rows {
		if _, lives := p.living[id]; !lives {
			rows++
		}
	}
	return rows, nil
}

// checkManifest examines the rows whose record has not been met.
func (p *pass) checkManifest(ctx context.Context) error {
	var queue []*suspect
	err := p.scanManifest(ctx, func(id, _ string) {
		if _, lives := p.living[p.mark("", id)]; lives {
			return
		}
		if k, err := p.part.Record(id); err == nil {
			queue = append(queue, &suspect{id: id, key: k})
		}
	})
	if err != nil {
		return err
	}
	return p.examine(ctx, queue)
}

// checkKeys examines the members of index keys that no record has accounted for.
func (p *pass) checkKeys(ctx context.Context, open []*indexKey) error {
	known, err := p.knownNames(ctx)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for batch := range slices.Chunk(open, keyBatch) {
		g.Go(func() error {
			if err := p.checkKeyBatch(gctx, batch, known); err != nil {
				return err
			}
			p.advance(len(batch))
			return nil
		})
	}
	return g.Wait()
}

// knownNames are the indexes that the catalog has ever seen, with the newest generation of each.
func (p *pass) knownNames(ctx context.Context) (map[string]int, error) {
	fields, err := lua.Call(ctx, func() (map[string]string, error) { return p.rdb.HGetAll(ctx, p.space.Catalog()).Result() })
	if err != nil {
		return nil, p.readError(ctx, p.space.Catalog(), err)
	}
	known := map[string]int{}
	for field, value := range fields {
		if name, ok := strings.CutPrefix(field, "index:"); ok && !strings.Contains(name, ":") {
			known[name], _ = strconv.Atoi(value)
		}
	}
	return known, nil
}

// checkKeyBatch reads index keys and examines their open members.
func (p *pass) checkKeyBatch(ctx context.Context, batch []*indexKey, known map[string]int) error {
	types, err := p.typesOf(ctx, len(batch), func(i int) string { return batch[i].key })
	if err != nil {
		return err
	}
	var fits []*indexKey
	for i, k := range batch {
		switch kind := types[i]; {
		case kind == "none":
		case kind != "set" && kind != "zset", k.current && k.scored != (kind == "zset"):
			p.emit(found{Finding{Kind: Foreign, Index: k.parsed.Index, Key: k.key, Detail: "a " + kind}, ""})
		default:
			k.scored = kind == "zset"
			fits = append(fits, k)
		}
	}
	suspects := make([][]*suspect, len(fits))
	accepted := make([]bool, len(fits))
	err = p.readKeys(ctx, fits, func(i int, k *indexKey, m string, score float64) {
		mark := p.mark(k.body, m)
		if _, ok := p.judged[mark]; ok {
			accepted[i] = true
			return
		}
		if place, ok := p.members[mark^scoreMark(score)]; ok && p.seen[place].used {
			return
		}
		t, id := k.entry(m)
		if rec, err := p.part.Record(id); err == nil {
			suspects[i] = append(suspects[i], &suspect{id: id, key: rec, met: []plan.Token{t}})
		}
	})
	if err != nil {
		return err
	}
	var queue []*suspect
	for i, k := range fits {
		// An index that nobody has ever declared, and that no row names, is none of ours.
		if !k.current && known[k.parsed.Index] < k.parsed.Gen && !accepted[i] {
			if len(suspects[i]) > 0 {
				p.emit(found{Finding{Kind: Foreign, Index: k.parsed.Index, Key: k.key, Detail: "an index that nobody has declared"}, ""})
			}
			continue
		}
		queue = append(queue, suspects[i]...)
	}
	return p.examine(ctx, merge(queue))
}

// entry is what a member of the key stands for. Of an index that is no longer declared it is not known where the id begins;
// its members can only go, and go as they are.
func (k *indexKey) entry(m string) (t plan.Token, id string) {
	switch {
	case !k.scored:
		return plan.NewToken(plan.Set, k.body, ""), m
	case !k.current || k.d.kind == plan.Ranked:
		return plan.NewToken(plan.Ranked, k.body, ""), m
	}
	prefix, id := plan.Order{Kind: plan.Lexical, PrefixSize: k.d.bound.Prefix}.SplitMember(m)
	return plan.NewToken(plan.Lexical, k.body, prefix), id
}

// merge makes one suspect of those of one record.
func merge(all []*suspect) []*suspect {
	byID := make(map[string]*suspect, len(all))
	out := all[:0]
	for _, s := range all {
		if first := byID[s.id]; first != nil {
			first.met = append(first.met, s.met...)
			continue
		}
		byID[s.id] = s
		out = append(out, s)
	}
	return out
}

// checkStrangers reports the keys under the prefix that belong to nothing, if they are still there.
func (p *pass) checkStrangers(ctx context.Context) error {
	for batch := range slices.Chunk(p.strangers, keyBatch) {
		types, err := p.typesOf(ctx, len(batch), func(i int) string { return batch[i] })
		if err != nil {
			return err
		}
		for i, k := range batch {
			if types[i] != "none" {
				p.emit(found{Finding{Kind: Foreign, Key: k, Detail: "a " + types[i] + " at a key that belongs to nothing"}, ""})
			}
		}
	}
	return nil
}

// typesOf asks for the types of keys.
func (p *pass) typesOf(ctx context.Context, n int, k func(i int) string) ([]string, error) {
	cmds, err := p.ask(ctx, func(pipe redis.Pipeliner) {
		for i := range n {
			pipe.Type(ctx, k(i))
		}
	})
	if err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i, cmd := range cmds {
		out[i] = cmd.(*redis.StatusCmd).Val()
	}
	return out, nil
}
