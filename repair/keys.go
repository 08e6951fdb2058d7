package repair

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

// indexKey is an index key met by the scan.
type indexKey struct {
	key    string
	parsed key.Parsed
}

// keyBatch is how many index keys are read in one round trip.
const keyBatch = 100

// checkKeys goes over the index keys and looks for members that no record has accounted for, and for what is none of ours.
func (p *pass) checkKeys(ctx context.Context) error {
	known, err := p.knownNames(ctx)
	if err != nil {
		return err
	}
	p.phase(Indexes, int64(len(p.keys)))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for batch := range slices.Chunk(p.keys, keyBatch) {
		g.Go(func() error {
			if err := p.checkKeyBatch(gctx, batch, known); err != nil {
				return err
			}
			p.advance(len(batch))
			return nil
		})
	}
	if err := g.Wait(); err != nil {
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

// knownNames are the indexes that the catalog has ever seen, with the newest generation of each.
func (p *pass) knownNames(ctx context.Context) (map[string]int, error) {
	fields, err := p.rdb.HGetAll(ctx, p.space.Catalog()).Result()
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

// content is one index key as it is read.
type content struct {
	indexKey
	body     string
	d        declared
	current  bool
	kind     string // type of the key
	page     redis.Cmder
	suspects []*suspect
	accepted bool // a member is an entry that some record has accounted for
}

// checkKeyBatch reads index keys, the first page of each in one round trip.
func (p *pass) checkKeyBatch(ctx context.Context, batch []indexKey, known map[string]int) error {
	all := make([]*content, 0, len(batch))
	types, err := p.ask(ctx, func(pipe redis.Pipeliner) {
		for _, k := range batch {
			pipe.Type(ctx, k.key)
		}
	})
	if err != nil {
		return err
	}
	for i, k := range batch {
		c := &content{indexKey: k, kind: types[i].(*redis.StatusCmd).Val()}
		var value *key.Value
		if k.parsed.HasValue {
			value = &k.parsed.Value
		}
		if c.body, err = p.space.RankedBody(k.parsed.Index, k.parsed.Gen, value); err != nil {
			return err
		}
		c.d, c.current = p.current(c.body)
		fits := c.kind == "set" || c.kind == "zset"
		if c.current {
			fits = (c.kind == "set") == (c.d.kind == plan.Set) && fits
		}
		switch {
		case c.kind == "none":
		case !fits:
			p.emit(found{Finding{Kind: Foreign, Index: k.parsed.Index, Key: k.key, Detail: "a " + c.kind}, ""})
		default:
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err = p.ask(ctx, func(pipe redis.Pipeliner) {
		for _, c := range all {
			c.page = scanPage(ctx, pipe, c, 0)
		}
	})
	if err != nil {
		return err
	}
	var queue []*suspect
	for _, c := range all {
		if err := p.readKey(ctx, c, known); err != nil {
			return err
		}
		queue = append(queue, c.suspects...)
		if len(queue) >= lookRecords {
			if err := p.examine(ctx, merge(queue)); err != nil {
				return err
			}
			queue = nil
		}
	}
	return p.examine(ctx, merge(queue))
}

// scanPage asks for a page of members.
func scanPage(ctx context.Context, rdb redis.Cmdable, c *content, cursor uint64) redis.Cmder {
	if c.kind == "set" {
		return rdb.SScan(ctx, c.key, cursor, "", scanCount)
	}
	return rdb.ZScan(ctx, c.key, cursor, "", scanCount)
}

// readKey goes over the members of one key, page by page, and gathers those that nothing has accounted for.
func (p *pass) readKey(ctx context.Context, c *content, known map[string]int) error {
	step := 1
	if c.kind == "zset" {
		step = 2 // member, score
	}
	leftover := c.current || known[c.parsed.Index] >= c.parsed.Gen
	for {
		members, next, err := c.page.(*redis.ScanCmd).Result()
		if wrongType(err) {
			return nil // overwritten since it was met
		}
		if err != nil {
			return lua.Judge(err)
		}
		if err := p.throttle(ctx, len(members)/step); err != nil {
			return err
		}
		p.mu.Lock()
		for i := 0; i < len(members); i += step {
			if _, ok := p.settled[p.mark(c.body, members[i])]; ok {
				c.accepted = true
				continue
			}
			t, id := c.entry(members[i])
			k, err := p.part.Record(id)
			if err != nil {
				continue
			}
			c.suspects = append(c.suspects, &suspect{id: id, key: k, met: []plan.Token{t}})
		}
		p.mu.Unlock()
		if !leftover && !c.accepted {
			// Nobody has ever declared it, and no row names it.
			p.emit(found{Finding{Kind: Foreign, Index: c.parsed.Index, Key: c.key, Detail: "an index that nobody has declared"}, ""})
			c.suspects = nil
			return nil
		}
		if next == 0 {
			return nil
		}
		if len(c.suspects) >= lookRecords {
			if err := p.examine(ctx, merge(c.suspects)); err != nil {
				return err
			}
			c.suspects = nil
		}
		cmds, err := p.ask(ctx, func(pipe redis.Pipeliner) { scanPage(ctx, pipe, c, next) })
		if err != nil {
			return err
		}
		c.page = cmds[0]
	}
}

// entry is what a member of the key stands for. Of an index that is no longer declared it is not known where the id begins;
// its members can only go, and go as they are.
func (c *content) entry(m string) (t plan.Token, id string) {
	switch {
	case c.kind == "set":
		return plan.NewToken(plan.Set, c.body, ""), m
	case !c.current || c.d.kind == plan.Ranked:
		return plan.NewToken(plan.Ranked, c.body, ""), m
	}
	prefix, id := plan.Order{Kind: plan.Lexical, PrefixSize: c.d.bound.Prefix}.SplitMember(m)
	return plan.NewToken(plan.Lexical, c.body, prefix), id
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
		types, err := p.ask(ctx, func(pipe redis.Pipeliner) {
			for _, k := range batch {
				pipe.Type(ctx, k)
			}
		})
		if err != nil {
			return err
		}
		for i, k := range batch {
			if kind := types[i].(*redis.StatusCmd).Val(); kind != "none" {
				p.emit(found{Finding{Kind: Foreign, Key: k, Detail: "a " + kind + " at a key that belongs to nothing"}, ""})
			}
		}
	}
	return nil
}
