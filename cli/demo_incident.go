package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
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

// passResult is what one pass found, entry by entry.
type passResult struct {
	report repair.Report
	found  plannedDamage
	fixed  map[repair.Kind]int
}

// incident damages the indexes behind the library's back, finds what it did, and repairs it.
func (d *demo) incident() error {
	d.title("3  An incident behind the library's back")
	if err := d.harm(); err != nil {
		return err
	}
	before, err := d.pass("verify", 0, repair.Verify)
	if err != nil {
		return err
	}
	rate := 0
	if d.s.errTerminal {
		rate = 10_000 // slow enough to see the bar
	}
	mended, err := d.pass("repair", rate, repair.Run)
	if err != nil {
		return err
	}
	after, err := d.pass("verify", 0, repair.Verify)
	if err != nil {
		return err
	}
	g := grid{
		header: []string{"entries", "planned", "verify found", "of those planned", "repair fixed", "verify again"},
		right:  []int{1, 2, 3, 4, 5},
	}
	for _, k := range kinds(before.report) {
		planned, found := d.planned[k.kind], before.found[k.kind]
		if len(planned) == 0 && k.n == 0 {
			continue
		}
		known := 0
		for entry := range found {
			if planned[entry] {
				known++
			}
		}
		numbers := []int{len(planned), int(k.n), known, mended.fixed[k.kind], len(after.found[k.kind])}
		row := []string{string(k.kind)}
		for i, n := range numbers {
			want := len(planned)
			if i == len(numbers)-1 {
				want = 0
			}
			c := good
			if n != want {
				c = bad
			}
			g.mark(len(g.rows), i+1, c)
			row = append(row, fmt.Sprint(n))
		}
		g.rows = append(g.rows, row)
	}
	d.say("")
	return d.s.grid(g, "  ")
}

// pass runs one pass, says in a line what came of it, and notes every finding.
func (d *demo) pass(name string, rate int, run repairPass) (passResult, error) {
	result := passResult{found: plannedDamage{}, fixed: map[repair.Kind]int{}}
	text := name
	if rate > 0 {
		text += fmt.Sprintf(" --rate %d", rate)
	}
	d.command(text)
	if err := d.s.out.Flush(); err != nil { // before the bar
		return result, err
	}
	start := time.Now()
	options := repair.Options{Rate: rate, OnFinding: func(f repair.Finding) {
		result.found.add(f.Kind, at{f.Key, f.ID})
		if f.Fixed {
			result.fixed[f.Kind]++
		}
	}}
	r, err := underBar(d.ctx, d.s.newPhases(name), func(bar *phases) (repair.Report, error) {
		options.Progress = bar.at
		return run(d.ctx, d.quakes, options)
	})
	if err != nil {
		return result, err
	}
	result.report = r
	d.say("  %s, %s, %s in %v: %s", plural(int(r.Records), "record"), many(int(r.Entries), "entry", "entries"),
		plural(int(r.Found()), "finding"), roundTime(time.Since(start)), d.s.bold(verdict(r)))
	return result, nil
}

// harm does the damage with plain commands, and notes every entry that it touches. Each step works on earthquakes of its
// own, so that the kinds do not cover one another.
func (d *demo) harm() error {
	d.planned = plannedDamage{}
	held, err := d.entries()
	if err != nil {
		return err
	}
	recent, err := keyOf(maps.Keys(held), "recent", "")
	if err != nil {
		return err
	}
	automatic, err := keyOf(maps.Keys(held), "status", "automatic")
	if err != nil {
		return err
	}
	hawaii, err := keyOf(maps.Keys(held), "net", "hv")
	if err != nil {
		return err
	}
	free := d.untouched(held[hawaii]) // newest first
	take := func(n int) []string {
		ids := free[:n]
		free = free[n:]
		return ids
	}
	gone, lost, wrong, misplaced := take(12), take(40), take(25), take(30)

	pipe := d.rdb.Pipeline()
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

// keyOf finds the key of an index and a value among others.
func keyOf(keys iter.Seq[string], name, value string) (string, error) {
	for k := range keys {
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

// latest is the first earthquake of the file, which lists the latest first.
func latest() (line []byte, e event) {
	for line := range quakes.Lines() {
		if json.Unmarshal(line, &e) == nil {
			return line, e
		}
	}
	return nil, e
}
