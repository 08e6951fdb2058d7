package proof

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
)

// mutant is the write path without one of its safeguards.
type mutant struct {
	name string
	// old stands in the apply script exactly once and is replaced by new. Without it the client is changed by hook.
	old, new string
	hook     func(redis.UniversalClient)
	catch    catch
	runs     int // within which it must be caught
}

// catch is a test that a mutant must fail: it gives what is wrong with one run of a seed.
type catch struct {
	name  string
	start func(t *testing.T, m mutant) func(seed uint64) error
}

// apply makes a client run the mutant.
func (m mutant) apply(t testing.TB) func(redis.UniversalClient) {
	if m.hook != nil {
		return m.hook
	}
	sha, source := applyScript()
	require.Equal(t, 1, strings.Count(source, m.old), "%s: the script has changed, say anew what the safeguard is", m.name)
	sources := map[string]string{sha: strings.Replace(source, m.old, m.new, 1)}
	return func(rdb redis.UniversalClient) { redistest.Mutant(rdb, sources) }
}

func applyScript() (sha, source string) {
	for sha, source := range lua.Sources() {
		if strings.HasPrefix(source, "-- lockstep apply\n") {
			return sha, source
		}
	}
	panic("there is no apply script")
}

// The tests that mutants are given to.
var (
	byModel = programs("model", 60, writing, reading, incidents)
	byTrims = programs("model, puts and deletes", 150, []kind{put, put, put, remove})
	bySweep = catch{"fault sweep", func(t *testing.T, m mutant) func(uint64) error {
		w, p := sweepWorld(t, false)
		m.apply(t)(w.rdb)
		return func(seed uint64) error {
			w.fresh()
			p.Inject(redistest.Data, redistest.Every(1+int(seed%5), 5, redistest.Fault{Kind: redistest.CutAfter}))
			defer p.Inject(nil, nil)
			model := newModel()
			for i, o := range aProgram(seed) {
				r := w.run(o)
				if err := model.step(o, r, w.stored); err != nil {
					return fmt.Errorf("operation %d, %s: %w", i, o, err)
				}
				if err := knowable(o, r); err != nil {
					return fmt.Errorf("operation %d, %s: %w", i, o, err)
				}
			}
			return model.finish(w)
		}
	}}
)

// programs are random programs against the model.
func programs(name string, steps int, kinds ...[]kind) catch {
	return catch{name, func(t *testing.T, m mutant) func(uint64) error {
		s := redistest.Redis(t)
		rdb := s.Client(t)
		m.apply(t)(rdb)
		w := newWorld(t, s, rdb)
		return func(seed uint64) error {
			w.fresh()
			r := random(seed)
			choose := func(_ string, n int) int { return r.IntN(n) }
			return play(w, newModel(), someProgram(choose, steps, kinds...))
		}
	}}
}

// byHistory is concurrent callers under faults.
var byHistory = catch{"history", func(t *testing.T, m mutant) func(uint64) error {
	h := newHistorian(t, m.apply(t), patient)
	h.proxy.Inject(redistest.Data, strike(1))
	return h.run
}}

// byLostReplies is callers who put and delete one record, lose many replies, and take their time to repeat.
var byLostReplies = catch{"history, one record, lost replies", func(t *testing.T, m mutant) func(uint64) error {
	h := newHistorian(t, m.apply(t), index.Retry{MinBackoff: 2 * time.Millisecond, MaxBackoff: 2 * time.Millisecond})
	h.kinds, h.ids = []kind{put, put, remove, get}, 1
	h.proxy.Inject(redistest.Writes, losing(1))
	return h.run
}}

// byScene is a test of one scene, which needs no luck.
func byScene(scene func(t *testing.T, m mutant) error) catch {
	return catch{"scene", func(t *testing.T, m mutant) func(uint64) error {
		return func(uint64) error { return scene(t, m) }
	}}
}

// rewrite makes a client send another command in place of each call of the apply script. seen is the place of the counter
// that says that a call is a repeat.
func rewrite(change func(ctx context.Context, args []any, seen int) redis.Cmder) func(redis.UniversalClient) {
	sha, source := applyScript()
	return func(rdb redis.UniversalClient) { rdb.AddHook(rewriter{sha, source, change}) }
}

type rewriter struct {
	sha, source string
	change      func(ctx context.Context, args []any, seen int) redis.Cmder
}

func (h rewriter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h rewriter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h rewriter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if len(args) < 3 || args[1] != h.sha && args[1] != h.source {
			return next(ctx, cmd)
		}
		sent := h.change(ctx, args, args[2].(int)+5)
		err := next(ctx, sent)
		cmd.(interface{ SetVal(any) }).SetVal(sent.(interface{ Val() any }).Val())
		cmd.SetErr(sent.Err())
		return err
	}
}

// TestEachSafeguardIsMissedWhenItIsGone takes the safeguards of the write path out, one at a time.
func TestEachSafeguardIsMissedWhenItIsGone(t *testing.T) {
	if redistest.Race {
		t.Skip("make test runs this without the race detector, which has nothing to say about a server's script")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			attempt := m.catch.start(t, m)
			for n := 1; n <= m.runs; n++ {
				if err := attempt(uint64(n)); err != nil {
					first, _, _ := strings.Cut(err.Error(), "\n")
					t.Logf("SAFEGUARD | %s | %s | %d | %.160s", m.name, m.catch.name, n, first)
					return
				}
			}
			t.Errorf("not missed within %d runs of the %s test", m.runs, m.catch.name)
		})
	}
}
