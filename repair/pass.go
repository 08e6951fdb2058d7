package repair

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/pace"
	"github.com/lockstep-go/lockstep/internal/plan"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

// pass is one Verify, Run or Build.
//
// It reads index keys and manifest as they lie on the server, remembers a digest of each member and row, and holds the records
// against those: to look each entry up would cost the server several times as much. What does not agree, or has moved in
// between, is a suspect, and looked at closely.
type pass struct {
	m        index.Maintenance
	run      *lua.Runner
	rdb      redis.UniversalClient
	part     key.Partition
	space    key.Space
	o        Options
	fix      bool
	only     string // the index that Build is for, else ""
	declared map[string]declared
	limiter  *rate.Limiter
	sweeping bool
	seed     maphash.Seed
	ahead    time.Duration // the server's clock against ours

	fence string // of the build under way, else ""

	mu        sync.Mutex
	report    Report
	reported  map[uint64]struct{} // findings
	living    map[uint64]bool     // ids of records; true for those that the scan has given
	rows      map[uint64]uint64   // id -> what its row lists
	members   map[uint64]int32    // members of index keys with their scores -> place in seen
	seen      []seen
	judged    map[uint64]struct{} // members that have been looked at closely
	conflicts []*conflict
	blocked   map[string]bool // indexes that cannot become ready
	built     int64           // records written under the fence
	floors    map[string]*floor
	records   []recordKey
	found     int        // how many records the scan has given, at most maxKept
	expected  int64      // rows, and so about as many members of a ranked index
	early     *early     // nil where nothing is read early
	glances   [][]glance // of the records, where they were read early
	overflow  bool       // there are more records than maxKept
	keys      []*indexKey
	strangers []string // keys under the prefix that are none of ours
	progress  Progress
	told      time.Time
}

// declared is what a pass knows of a declared index.
type declared struct {
	generation int
	kind       plan.Kind
	bound      plan.Bound
}

// newPass prepares a pass over what c has declared.
func newPass(c index.Opened) *pass {
	m := c.Maintenance()
	p := &pass{
		m: m, run: m.Runner(), rdb: m.Client(), part: m.Partition(), space: m.Partition().Space(), seed: maphash.MakeSeed(),
		reported: map[uint64]struct{}{},
	}
	p.report.Entity, p.report.Started, p.report.NotReady = c.Declared().String(), time.Now(), []string{}
	p.report.Findings = []Finding{}
	return p
}

// configure takes the options in.
func (p *pass) configure(o Options) (err error) {
	p.o, err = o.withDefaults()
	if o.Rate > 0 {
		p.limiter = rate.NewLimiter(rate.Limit(o.Rate), batchRecords)
	}
	return err
}

// begin forgets what an attempt has learned, so that the next starts from nothing. What was reported stays.
func (p *pass) begin(c index.Opened) {
	indexes, bounds := p.m.Indexes(), p.m.Bounds()
	p.declared = make(map[string]declared, len(indexes))
	for _, d := range c.Declared().Definitions() {
		kind := plan.Set
		if d.Kind == "ranked" {
			kind = plan.Ranked
			if d.Bound.Lexical {
				kind = plan.Lexical
			}
		}
		p.declared[d.Name] = declared{indexes[d.Name], kind, bounds[d.Name]}
	}
	p.living, p.judged = map[uint64]bool{}, map[uint64]struct{}{}
	p.rows, p.members, p.seen = map[uint64]uint64{}, map[uint64]int32{}, nil
	p.conflicts, p.blocked, p.built = nil, map[string]bool{}, 0
	p.floors, p.keys, p.strangers, p.records, p.found, p.glances, p.overflow = map[string]*floor{}, nil, nil, nil, 0, nil, false
	p.report.Records, p.report.Entries = 0, 0
}

// mark is what a pass remembers of a pair of texts.
func (p *pass) mark(a, b string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return maphash.String(p.seed, a)*odd ^ maphash.String(p.seed, b)
}

// found is a finding with the member it is about, which tells two entries of one record in one index key apart.
type found struct {
	Finding
	member string
}

// emit takes findings into the report, each once.
func (p *pass) emit(all ...found) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range all {
		if !p.once("finding "+f.Key, f.member) {
			continue
		}
		switch f.Kind {
		case Missing:
			p.report.Missing++
		case Stale:
			p.report.Stale++
		case Orphan:
			p.report.Orphan++
		case Misranked:
			p.report.Misranked++
		case Undecodable:
			p.report.Undecodable++
		case Foreign:
			p.report.Foreign++
		}
		if f.Fixed {
			p.report.Fixed++
		}
		if errors.Is(f.Err, index.ErrConflict) {
			p.report.Skipped++
			p.report.conflicts++
		}
		if f.Kind == Missing && p.only != "" && f.Err == nil {
			continue // what a build is for is no news
		}
		if len(p.report.Findings) < p.o.MaxFindings {
			p.report.Findings = append(p.report.Findings, f.Finding)
		} else {
			p.report.Truncated++
		}
		if p.o.OnFinding != nil {
			p.o.OnFinding(f.Finding)
		}
	}
}

// once reports whether a pair has not been met before. The caller holds mu.
func (p *pass) once(a, b string) bool {
	h := p.mark(a, b)
	if _, ok := p.reported[h]; ok {
		return false
	}
	p.reported[h] = struct{}{}
	return true
}

// count changes the report under the lock.
func (p *pass) count(fn func(r *Report)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn(&p.report)
}

// tellEvery is how often progress is told at most.
const tellEvery = 100 * time.Millisecond

// phase begins a phase, or ends the last.
func (p *pass) phase(name Phase, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress = Progress{Phase: name, Total: total}
	p.told = time.Time{}
}

// advance notes that so much more is done.
func (p *pass) advance(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.Done += int64(n)
	p.progress.Total = max(p.progress.Total, p.progress.Done)
	if p.o.Progress != nil && time.Since(p.told) >= tellEvery {
		p.tell()
	}
}

// phaseOver tells the end of a phase, whose total is known then.
func (p *pass) phaseOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.Total = p.progress.Done
	if p.o.Progress != nil {
		p.tell()
	}
}

func (p *pass) tell() {
	p.told = time.Now()
	p.progress.Found = p.report.Found()
	p.o.Progress(p.progress)
}

// throttle waits until n more may be looked at.
func (p *pass) throttle(ctx context.Context, n int) error { return pace.Wait(ctx, p.limiter, n) }

// ask runs reads until the server has answered, the retry budget is spent or ctx is over. A server's own refusal, such as
// a wrong type, is an answer: it is in the commands.
func (p *pass) ask(ctx context.Context, fn func(redis.Pipeliner)) ([]redis.Cmder, error) {
	retry := p.run.Retry()
	deadline := time.Now().Add(retry.Budget)
	for n := 1; ; n++ {
		pipe := p.rdb.Pipeline()
		fn(pipe)
		cmds, err := lua.Call(ctx, func() ([]redis.Cmder, error) { return pipe.Exec(ctx) })
		var refusal error
		for _, cmd := range cmds {
			if cause := cmd.Err(); cause != nil && !errors.Is(cause, redis.Nil) && !wrongType(cause) {
				refusal = lua.Judge(cause)
				break
			}
		}
		if refusal == nil && (err == nil || errors.Is(err, redis.Nil) || wrongType(err)) {
			return cmds, nil
		}
		if refusal == nil {
			refusal = lua.Judge(err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(refusal, lua.ErrUnavailable) || time.Now().After(deadline) {
			return nil, refusal
		}
		if err := retry.Pause(ctx, n); err != nil {
			return nil, err
		}
	}
}

// wrongType reports the server's refusal of a command on a key of another type.
func wrongType(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "WRONGTYPE")
}

// mustBe is the error for a bookkeeping key that holds something else.
func (p *pass) mustBe(ctx context.Context, k string) error {
	found, err := lua.Call(ctx, func() (string, error) { return p.rdb.Type(ctx, k).Result() })
	if err != nil {
		return lua.Judge(err)
	}
	return &lua.KeyTypeError{Key: k, Found: found}
}

// indexOf is the name of the index that a token belongs to.
func indexOf(t plan.Token) string { return nameIn(t.Body()) }

// nameIn is the name of the index in a body.
func nameIn(body string) string {
	name, _, _ := strings.Cut(body, ".")
	return name
}

// current reports whether a body is one of a declared index in the generation in force.
func (p *pass) current(body string) (declared, bool) {
	head, _, _ := strings.Cut(body, ":")
	name, generation, _ := strings.Cut(head, ".")
	d, ok := p.declared[name]
	return d, ok && generation == fmt.Sprint(d.generation)
}
