package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/quakes"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/repair"
)

// at is one entry: an index key, and the id in it.
type at struct{ key, id string }

// plannedDamage is what the incident did, entry by entry.
type plannedDamage map[repair.Kind]map[at]bool

func (p plannedDamage) add(k repair.Kind, entry at) {
	if p[k] == nil {
		p[k] = map[at]bool{}
	}
	p[k][entry] = true
}

// incident damages the indexes behind the library's back, finds what it did, and repairs it.
func (d *demo) incident() error {
	d.title("3  An incident behind the library's back")
	if err := d.harm(); err != nil {
		return err
	}
	before, err := d.pass("verify", repair.Verify)
	if err != nil {
		return err
	}
	fixed, err := d.pass("repair", repair.Run)
	if err != nil {
		return err
	}
	after, err := d.pass("verify", repair.Verify)
	if err != nil {
		return err
	}
	g := grid{header: []string{"entries", "planned", "verify found", "repair fixed", "verify again"}, right: []int{1, 2, 3, 4}}
	again := kinds(after)
	mended := kinds(fixed)
	for i, k := range kinds(before) {
		planned := int64(len(d.planned[k.kind]))
		row := []string{string(k.kind), fmt.Sprint(planned), fmt.Sprint(k.n), fmt.Sprint(mended[i].n), fmt.Sprint(again[i].n)}
		for column, n := range []int64{0, k.n - planned, 0, again[i].n} {
			if c := good; column%2 == 1 {
				if n != 0 {
					c = bad
				}
				g.mark(len(g.rows), column+1, c)
			}
		}
		g.rows = append(g.rows, row)
	}
	d.say("")
	return d.s.grid(g, "  ")
}

// pass runs one pass and says in a line what came of it.
func (d *demo) pass(name string, run pass) (repair.Report, error) {
	start := time.Now()
	d.command(name)
	r, err := d.s.runPass(d.ctx, name, d.quakes, passFlags{}, run)
	if err != nil {
		return r, err
	}
	d.say("  %s, %s, %s in %v: %s", plural(int(r.Records), "record"), many(int(r.Entries), "entry", "entries"),
		plural(int(r.Found()), "finding"), roundTime(time.Since(start)), d.s.bold(verdict(r)))
	return r, nil
}

// harm does the damage with plain commands, and notes every entry that it touches. Each step works on earthquakes of its
// own, so that the kinds do not cover one another.
func (d *demo) harm() error {
	d.planned = plannedDamage{}
	held, err := d.entries()
	if err != nil {
		return err
	}
	recent, err := d.keyOf(held, "recent", "")
	if err != nil {
		return err
	}
	automatic, err := d.keyOf(held, "status", "automatic")
	if err != nil {
		return err
	}
	hawaii, err := d.keyOf(held, "net", "hv")
	if err != nil {
		return err
	}
	free := d.untouched(held[hawaii]) // newest first
	take := func(n int) []string {
		ids := free[:n]
		free = free[n:]
		return ids
	}
	pipe := d.rdb.Pipeline()
	var gone, lost, wrong, misplaced []string
	for _, step := range []struct {
		ids *[]string
		n   int
	}{{&gone, 12}, {&lost, 40}, {&wrong, 25}, {&misplaced, 30}} {
		*step.ids = take(step.n)
	}

	for _, id := range gone { // the record alone: what names it stays
		k, err := d.quakes.RecordKey(id)
		if err != nil {
			return err
		}
		pipe.Del(d.ctx, k)
		for entry, members := range held {
			if _, in := members[id]; in {
				d.planned.add(repair.Orphan, at{entry, id})
			}
		}
	}
	for _, id := range lost {
		pipe.ZRem(d.ctx, recent, id)
		d.planned.add(repair.Missing, at{recent, id})
	}
	pipe.Del(d.ctx, hawaii)
	for id := range held[hawaii] {
		d.planned.add(repair.Missing, at{hawaii, id})
	}
	for i := range 15 { // ids that no record has
		ghost := fmt.Sprintf("ghost-%02d", i)
		pipe.SAdd(d.ctx, automatic, ghost)
		pipe.ZAdd(d.ctx, recent, redis.Z{Score: float64(time.Now().UnixMicro() + int64(i)), Member: ghost})
		d.planned.add(repair.Orphan, at{automatic, ghost})
		d.planned.add(repair.Orphan, at{recent, ghost})
	}
	for _, id := range wrong {
		pipe.ZIncrBy(d.ctx, recent, float64(time.Hour.Microseconds()), id)
		d.planned.add(repair.Misranked, at{recent, id})
	}
	for _, id := range misplaced { // in the set of a second status
		if _, in := held[automatic][id]; !in {
			pipe.SAdd(d.ctx, automatic, id)
			d.planned.add(repair.Stale, at{automatic, id})
		}
	}
	if _, err := pipe.Exec(d.ctx); err != nil {
		return err
	}
	d.say("  %d records deleted with DEL, %d members of recent with ZREM, the set of net=hv (%d) with DEL;",
		len(gone), len(lost), len(held[hawaii]))
	d.say("  15 ghosts added to status=automatic and to recent, %d ids to a status they do not have; %d scores raised.",
		len(d.planned[repair.Stale]), len(wrong))
	return nil
}

// entries reads every index key of the earthquakes: key -> ids.
func (d *demo) entries() (map[string]map[string]bool, error) {
	all, err := d.scan(d.ctx, d.target.Space().Prefix())
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]bool{}
	for _, k := range all {
		p, err := key.Parse(k)
		if err != nil {
			return nil, err
		}
		if p.Kind != key.KindIndex {
			continue
		}
		ids, err := members(d.ctx, d.rdb, k)
		if err != nil {
			return nil, err
		}
		out[k] = map[string]bool{}
		for _, id := range ids {
			out[k][id] = true
		}
	}
	return out, nil
}

func members(ctx context.Context, rdb redis.UniversalClient, k string) ([]string, error) {
	kind, err := rdb.Type(ctx, k).Result()
	if err != nil {
		return nil, err
	}
	if kind == "set" {
		return rdb.SMembers(ctx, k).Result()
	}
	return rdb.ZRange(ctx, k, 0, -1).Result()
}

// keyOf finds the key of an index and a value among those that exist.
func (d *demo) keyOf(held map[string]map[string]bool, name, value string) (string, error) {
	for k := range held {
		p, err := key.Parse(k)
		if err != nil {
			return "", err
		}
		if p.Index == name && (value == "" || p.Value.String() == value) {
			return k, nil
		}
	}
	return "", fmt.Errorf("there is no key of %s=%s", name, value)
}

// untouched are the ids of the reviewed earthquakes that except does not hold, newest first.
func (d *demo) untouched(except map[string]bool) []string {
	changed, _ := oneToReview()
	var out []string
	for line := range quakes.Lines() {
		var e event
		if json.Unmarshal(line, &e) == nil && e.Status == "reviewed" && !except[e.ID] && string(line) != string(changed) {
			out = append(out, e.ID)
		}
	}
	return out
}

// newest are the ids of the first n earthquakes of the file, which lists the latest first.
func newest(n int) []string {
	var ids []string
	for line := range quakes.Lines() {
		var e event
		if len(ids) == n || json.Unmarshal(line, &e) != nil {
			break
		}
		ids = append(ids, e.ID)
	}
	return ids
}
