package ranked_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

const (
	sideBySide   = 200 // programs of one batch: their k-th steps are one call
	leastNumber  = 50_000
	programSteps = 9
)

// TestAPageThatSaysItIsCompleteEqualsASortOfTheLiveRecords runs random programs of puts, score changes and deletes, each in a
// group of its own, and holds every page against a sort. LOCKSTEP_SEED runs the programs of a failure again.
func TestAPageThatSaysItIsCompleteEqualsASortOfTheLiveRecords(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("LOCKSTEP_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("LOCKSTEP_SEED=%d", seed)
	server := redistest.Redis(t)
	rdb := server.Client(t, func(o *redis.UniversalOptions) { o.ReadTimeout = time.Minute })
	batchesEach, leastNumber := redistest.Full(20, 2), redistest.Full(leastNumber, leastNumber/10) // batches of each setup
	start := time.Now()
	var total tally
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(4)
	for place, s := range setups(true) {
		c, err := index.Open(ctx, rdb, index.Define("acme:arcade", fmt.Sprintf("score%d", place), index.Options[rec]{
			ID: func(r rec) string { return r.ID }, Version: 1, Lifetime: index.Forever, Codec: codec(ints),
			Indexes: []index.Index[rec]{s.index},
		}))
		require.NoError(t, err)
		key := fmt.Sprintf("acme:arcade:score%d:{score%d}:~rank.1:", place, place)
		for batch := range batchesEach {
			g.Go(func() error {
				b := &programs{setup: s, c: c, rdb: rdb, key: key, base: start, total: &total}
				for i := range sideBySide {
					number := (place*batchesEach+batch)*sideBySide + i
					b.list = append(b.list, newProgram(s, seed, number))
				}
				if err := b.run(ctx); err != nil {
					return fmt.Errorf("LOCKSTEP_SEED=%d, %s: %w", seed, s.name, err)
				}
				return nil
			})
		}
	}
	require.NoError(t, g.Wait())

	t.Logf("%d programs, %d pages, %d complete, in %v", total.programs.Load(), total.pages.Load(), total.complete.Load(),
		time.Since(start).Round(time.Second))
	var worse share
	for i, name := range temperNames {
		worse.all.Add(total.worse[i].all.Load())
		worse.flagged.Add(total.worse[i].flagged.Load())
		t.Logf("%s: pages that equal the sort, all trimmed records worse: %v; no trimmed record alive: %v", name,
			&total.worse[i], &total.gone[i])
	}
	t.Logf("pages that equal the sort, all trimmed records worse: %v", &worse)
	require.GreaterOrEqual(t, total.programs.Load(), int64(leastNumber))
	require.Greater(t, worse.all.Load(), int64(leastNumber)/10, "the programs hardly trim")
	for i := range total.worse {
		require.LessOrEqual(t, total.worse[i].percent(), 5.0, temperNames[i])
	}
}

// tally counts over all programs.
type tally struct {
	programs, pages, complete atomic.Int64
	// Full pages from the kept end that equal the sort: beside trimmed records that live, all of them worse; and beside none.
	worse, gone [tempers]share
}

// share is how many of some pages were flagged incomplete.
type share struct{ all, flagged atomic.Int64 }

func (s *share) String() string {
	return fmt.Sprintf("%d, flagged incomplete %.2f %%", s.all.Load(), s.percent())
}

func (s *share) percent() float64 {
	return 100 * float64(s.flagged.Load()) / float64(max(1, s.all.Load()))
}

func (s *share) add(complete bool) {
	s.all.Add(1)
	if !complete {
		s.flagged.Add(1)
	}
}

// program is one random program with what it has done.
type program struct {
	rng    *rand.Rand
	number int
	group  string
	names  []string
	temper int
	crowd  bool // all of its records are put at first, and the best of what is trimmed is written most
	live   map[string]rec
	done   []string // for a failure
}

// How the programs score: any number at any time; towards the kept end alone, as the best of a game; as instants of
// creation, which a record keeps.
const (
	anyhow = iota
	improving
	fixed
	tempers
)

var temperNames = [tempers]string{"any score", "improving scores", "fixed scores"}

var someNames = []string{
	"a", "B", "b", "aa", "é", "\xff", "\x00", "\xff\x00", "Z", "_", "A", "", " ", "1 2", "\n", "+",
}

func newProgram(s setup, seed uint64, number int) *program {
	p := &program{
		rng: rand.New(rand.NewPCG(seed, uint64(number))), number: number,
		group: fmt.Sprintf("g%d", number), live: map[string]rec{}, temper: number % tempers,
	}
	// About as many records as are kept: one fewer, as many, one more, as many as trims need, and many more than a floor names.
	sizes := []int{s.limit() - 1, s.limit(), s.limit() + 1, s.limit() + s.slack + 1, s.limit() + s.slack + 3, s.limit() + s.slack + 7}
	size := p.rng.IntN(len(sizes))
	n := max(1, sizes[size])
	for _, i := range p.rng.Perm(len(someNames))[:min(n, len(someNames))] {
		p.names = append(p.names, fmt.Sprintf("%d/%s", number, someNames[i]))
	}
	p.crowd = size == len(sizes)-1
	return p
}

// step draws what a program does next: up to two puts, or a delete. A crowd begins with all of its records.
func (p *program) step(s setup, base time.Time) (puts []rec, gone []string) {
	if p.crowd && len(p.done) == 0 {
		for _, id := range p.names {
			puts = append(puts, p.put(s, base, id))
		}
		return puts, nil
	}
	if p.rng.IntN(5) == 0 || p.crowd && p.rng.IntN(2) == 0 {
		id := p.pick(s)
		p.done = append(p.done, fmt.Sprintf("delete %q", id))
		delete(p.live, id)
		return nil, []string{id}
	}
	for range 1 + p.rng.IntN(2) {
		puts = append(puts, p.put(s, base, p.pick(s)))
	}
	return puts, nil
}

// pick draws a record to write.
func (p *program) pick(s setup) string {
	if p.crowd && p.rng.IntN(4) > 0 {
		ranks := s.sorted(p.live, time.Now(), ask{descending: !s.low, limit: s.limit() + 3})
		if outside := ranks[min(len(ranks), s.limit()-1):]; len(outside) > 0 {
			return outside[p.rng.IntN(len(outside))]
		}
	}
	return p.names[p.rng.IntN(len(p.names))]
}

// put draws a state of a record.
func (p *program) put(s setup, base time.Time, id string) rec {
	r := rec{id, p.group, s.values[p.rng.IntN(len(s.values))]}
	if s.times && r.Score != noScore {
		r.Score += base.UnixMicro()
	}
	if old, lives := p.live[id]; lives && (p.temper == fixed || p.temper == improving && (r.Score < old.Score) != s.low) {
		r.Score = old.Score
	}
	p.done = append(p.done, fmt.Sprintf("put %q %d", id, r.Score))
	p.live[id] = r
	return r
}

// ask draws a question.
func (p *program) ask(s setup, base time.Time) ask {
	a := ask{descending: p.rng.IntN(4) == 0 == s.low, limit: 1 + p.rng.IntN(s.limit())}
	number := func() *int64 {
		n := s.values[p.rng.IntN(len(s.values))]
		if n == noScore {
			return nil
		}
		if s.times {
			n += base.UnixMicro()
		}
		return &n
	}
	switch p.rng.IntN(6) {
	case 0:
		a.least = number()
	case 1:
		a.below = number()
	}
	return a
}

// programs are programs that run side by side in one index.
type programs struct {
	setup
	c     *index.Collection[rec]
	rdb   redis.UniversalClient
	key   string
	base  time.Time
	list  []*program
	total *tally
}

func (b *programs) run(ctx context.Context) error {
	checkAt := b.list[0].rng.IntN(programSteps - 1)
	for step := range programSteps {
		var puts []rec
		var gone []string
		for _, p := range b.list {
			r, d := p.step(b.setup, b.base)
			puts, gone = append(puts, r...), append(gone, d...)
		}
		if _, err := b.c.PutMany(ctx, puts); err != nil {
			return err
		}
		if _, err := b.c.DeleteMany(ctx, gone); err != nil {
			return err
		}
		if step == checkAt || step == programSteps-1 {
			if err := b.check(ctx); err != nil {
				return err
			}
		}
	}
	b.total.programs.Add(int64(len(b.list)))
	return nil
}

// check asks every program, twice each, and looks at what its key holds.
func (b *programs) check(ctx context.Context) error {
	pipe := b.rdb.Pipeline()
	members := make([]*redis.StringSliceCmd, len(b.list))
	for i, p := range b.list {
		members[i] = pipe.ZRange(ctx, b.key+p.group+":v1", 0, -1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for i, p := range b.list {
		if err := b.checkOne(ctx, p, members[i].Val()); err != nil {
			return fmt.Errorf("program %d: %w\nit did:\n  %s\nits key holds %q", p.number, err,
				strings.Join(p.done, "\n  "), members[i].Val())
		}
	}
	return nil
}

func (b *programs) checkOne(ctx context.Context, p *program, members []string) error {
	if b.keep > 0 && len(members) > b.keep+b.slack {
		return fmt.Errorf("the key holds %d members, %d and %d are allowed", len(members), b.keep, b.slack)
	}
	a := p.ask(b.setup, b.base)
	o, conditions := b.order(p.group, a)
	page, err := b.holds(ctx, p, members, a, o, conditions)
	if err != nil || page.Next == "" {
		return err
	}
	last := page.Items[len(page.Items)-1].ID
	a.after, a.afterNumber = last, p.live[last].Score
	_, err = b.holds(ctx, p, members, a, o.After(page.Next), conditions)
	return err
}

// errWrong is a page that promised more than it held.
var errWrong = errors.New("the page says that it is complete")

func (b *programs) holds(
	ctx context.Context, p *program, members []string, a ask, o index.Order[rec], conditions []index.Condition[rec],
) (page index.Page[rec], err error) {
	if page, err = b.c.Top(ctx, o, conditions...); err != nil {
		return page, err
	}
	now := time.Now()
	got, want := idsOf(page), b.sorted(p.live, now, a)
	equal := slices.Equal(got, want)
	b.total.pages.Add(1)
	if page.Complete {
		b.total.complete.Add(1)
		if !equal {
			return page, fmt.Errorf("%w: %v gave %q, the sort %q", errWrong, a, got, want)
		}
	}
	if !equal || len(got) < a.limit || a.descending == b.low || b.keep == 0 {
		return page, nil
	}
	// The page is full, from the kept end, and right: were trimmed records about?
	trimmed := 0
	for id, r := range p.live {
		if b.member(r, now) && !slices.ContainsFunc(members, func(m string) bool { return strings.HasSuffix(m, id) }) {
			trimmed++
		}
	}
	if trimmed > 0 {
		b.total.worse[p.temper].add(page.Complete)
	} else {
		b.total.gone[p.temper].add(page.Complete)
	}
	return page, nil
}
