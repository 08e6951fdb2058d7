package proof

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
)

// progress waits until so many writes were acknowledged since.
func (l *load) progress(since, more int64) {
	l.t.Helper()
	require.Eventually(l.t, func() bool { return l.t.Failed() || l.acked.Load() >= since+more }, time.Minute, time.Millisecond)
}

// TestAServerKilledUnderLoadComesBackWithEveryAcknowledgedWriteAndNoHalfOne kills a server that writes every command to its
// log before it answers. Before the writers can reach it again, each record is what was acknowledged or what was on its way,
// and the indexes say the same; then they go on, and repeat what they had no answer to.
func TestAServerKilledUnderLoadComesBackWithEveryAcknowledgedWriteAndNoHalfOne(t *testing.T) {
	s := redistest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	p := redistest.NewProxy(t, s)
	w := newWorld(t, s, p.Client(t, func(o *redis.UniversalOptions) { o.PoolSize = 20 }))
	var l *load
	kills := 0
	for seed := range seeds(t, 10, 50, 10) {
		if l == nil {
			l = startLoad(t, w.c, 8, false, seed)
			defer l.end()
		}
		l.progress(l.acked.Load(), 50+int64(seed%50))
		s.Kill()
		p.Refuse(true)
		s.Restart(t)
		l.check(w)
		p.Refuse(false)
		kills++
		if t.Failed() {
			return
		}
	}
	l.progress(l.acked.Load(), 50)
	l.end()
	l.check(w)
	t.Logf("%d kills, %d acknowledged writes, %d unknown", kills, l.acked.Load(), l.unknown.Load())
}

// TestAFailoverUnderLoadLeavesIndexesThatEqualTheRecords has the sentinels promote the replica, in turn at their command and
// after the primary was killed. Replication may lose the newest writes, never a part of one.
func TestAFailoverUnderLoadLeavesIndexesThatEqualTheRecords(t *testing.T) {
	set := redistest.Sentinels(t)
	rdb := set.Client(t)
	// The failover client reports its own retries too: what reaches the caller is what counts.
	c, err := index.Open(t.Context(), rdb, things, index.OpenOptions{AssumeEmpty: true, Retry: index.Retry{Budget: time.Minute}})
	require.NoError(t, err)
	l := startLoad(t, c, 6, true, 1)
	defer l.end()
	failovers := 0
	for seed := range seeds(t, 2, 10, 15) {
		l.progress(l.acked.Load(), 200)
		old := set.Primary()
		if failovers%2 == 0 {
			set.Failover(t)
		} else {
			old.Kill()
			set.Await(t, old)
			l.progress(l.acked.Load(), 50)
			old.Restart(t)
		}
		set.Settled(t)
		l.progress(l.acked.Load(), 50)
		l.end()
		set.Settled(t)
		w := &world{t: t, s: set.Primary(), direct: set.Primary().Client(t)}
		l.check(w)
		l.forget(w)
		failovers++
		if t.Failed() {
			return
		}
		l.start(seed + 1)
	}
	l.end()
	t.Logf("%d failovers, %d acknowledged writes, %d unknown", failovers, l.acked.Load(), l.unknown.Load())
}

// TestACacheOfScriptsThatIsEmptiedBetweenAnyTwoCallsIsNotNoticed flushes it all the time, and restarts the server in between.
func TestACacheOfScriptsThatIsEmptiedBetweenAnyTwoCallsIsNotNoticed(t *testing.T) {
	s := redistest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	w := newWorld(t, s, s.Client(t))
	ctx := t.Context()
	many := func(n int) (recs []thing) {
		for i := range n {
			recs = append(recs, thing{ID: string(rune('a'+i%26)) + strings.Repeat("x", i/26), Color: "c0", Group: "g0"})
		}
		return recs
	}
	for round := range 20 {
		require.NoError(t, w.direct.ScriptFlush(ctx).Err())
		_, err := w.c.PutMany(ctx, many(250)) // two calls
		require.NoError(t, err)
		require.NoError(t, w.direct.ScriptFlush(ctx).Err())
		_, err = w.c.Update(ctx, "a", func(x *thing) error { x.Count++; return nil })
		require.NoError(t, err)
		n, err := w.c.Count(ctx, byColor.Is("c0"))
		require.NoError(t, err)
		require.EqualValues(t, 250, n)
		if round%10 == 9 {
			s.Restart(t)
		}
	}
	x, _ := w.stored("a")
	require.Equal(t, 1, x.Count, "put again by each round")
	require.Empty(t, w.findings())
}
