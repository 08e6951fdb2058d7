package repair_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/membership"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// soon is a lifetime that a test waits for, and long enough for a few writes.
const soon = 200 * time.Millisecond

// clock is the clock of a server: of an embedded one the test moves it, a real one is waited for.
type clock struct {
	s   *redistest.Server
	now time.Time
}

func startClock(s *redistest.Server) *clock {
	c := &clock{s, time.Now()}
	if s.Mini != nil {
		s.Mini.ClockTTL(true)
		s.Mini.SetTime(c.now)
	}
	return c
}

// gone waits until keys have expired whose records were given the lifetime soon, or less.
func (c *clock) gone(t testing.TB, rdb redis.UniversalClient, keys ...string) {
	t.Helper()
	if c.s.Mini != nil {
		c.now = c.now.Add(soon + time.Millisecond)
		c.s.Mini.SetTime(c.now)
	}
	require.Eventually(t, func() bool {
		for _, k := range keys {
			if rdb.Exists(context.Background(), k).Val() != 0 {
				return false
			}
		}
		return true
	}, 5*time.Second, time.Millisecond)
}

// TestARecordIsInEveryIndexExactlyAsLongAsItLives has owners and ids with separators, and one record for each way to come by a
// lifetime or to lose it.
func TestARecordIsInEveryIndexExactlyAsLongAsItLives(t *testing.T) {
	byCode := membership.Unique("code", func(i item) (string, bool) { return i.ID + i.Color, true })
	e := index.Define("a:b", "item", index.Options[item]{
		ID: func(i item) string { return i.ID }, Version: 1, Lifetime: index.Forever,
		Indexes: []index.Index[item]{byColor, byCode, byTag, byWeight, bySerial},
	})
	const at = "a:b:item:{item}:"
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		clk := startClock(s)
		c, rdb := open(t, s, e)
		rec := func(id string) item {
			return item{ID: id, Color: "re:d", Tags: []string{"x", "y:z"}, Weight: 1, Serial: -1}
		}
		put := func(id string, o ...index.WriteOption) {
			t.Helper()
			require.NoError(t, c.Put(ctx, rec(id), o...))
		}
		put("c:never")
		put("c:later")
		_, err := c.Update(ctx, "c:later", func(*item) error { return nil }, index.Lives(soon))
		require.NoError(t, err)
		put("c:first", index.Lives(soon))
		put("c:stays", index.Lives(soon))
		put("c:stays")
		put("c:touched", index.Lives(soon))
		require.NoError(t, c.Touch(ctx, "c:touched", index.Lives(index.Forever)))
		lives, goes := []string{"c:never", "c:stays", "c:touched"}, []string{"c:first", "c:later"}
		all := func(want ...string) {
			t.Helper()
			for name, cond := range map[string]index.Condition[item]{
				"color": byColor.Is("re:d"), "tag": byTag.Is("y:z"), "weight": byWeight.AtLeast(1), "serial": bySerial.AtMost(0),
			} {
				var found, ids []string
				for i, err := range c.Find(ctx, cond) {
					require.NoError(t, err)
					found = append(found, i.ID)
				}
				require.ElementsMatch(t, want, found, "find by %s", name)
				for id, err := range c.IDs(ctx, cond) {
					require.NoError(t, err)
					ids = append(ids, id)
				}
				require.ElementsMatch(t, want, ids, "ids by %s", name)
				n, err := c.Count(ctx, cond)
				require.NoError(t, err)
				require.EqualValues(t, len(want), n, "count by %s", name)
			}
			page, err := c.Top(ctx, bySerial.Top(9))
			require.NoError(t, err)
			require.True(t, page.Complete)
			require.Len(t, page.Items, len(want))
			for _, id := range append(lives, goes...) {
				_, err := c.One(ctx, byCode.Is(id+"re:d"))
				if strings.Contains(strings.Join(want, " "), id) {
					require.NoError(t, err, id)
				} else {
					require.ErrorIs(t, err, index.ErrNotFound, id)
				}
			}
		}
		clk.gone(t, rdb, at+"c%3Afirst:v1", at+"c%3Alater:v1")
		all(lives...)
		for _, id := range goes {
			require.True(t, rdb.HExists(ctx, at+"~~manifest:v1", id).Val(), "what was written outlives the record, for whoever collects it")
		}
		require.ElementsMatch(t, goes, rdb.ZRange(ctx, at+"~~expiry:v1", 0, -1).Val(), "who lives for ever has no note")

		rep, err := repair.Sweep(ctx, c, repair.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 2, rep.Records)
		require.EqualValues(t, 2*6, rep.Expired)
		for k, entry := range redistest.Snapshot(t, rdb) {
			for _, id := range goes {
				require.NotContains(t, k+entry.String(), id)
				require.NotContains(t, k, strings.ReplaceAll(id, ":", "%3A"))
			}
		}
		all(lives...)
		clean(t, c, rdb)
		if s.Mini != nil {
			s.Mini.SetTime(time.Now().Add(50 * 365 * 24 * time.Hour))
			rep, err = repair.Sweep(ctx, c, repair.Options{})
			require.NoError(t, err)
			require.Zero(t, rep.Records)
			all(lives...)
		}
	})
}

// TestARecordThatIsWrittenAgainWhileItsRemainsAreSweptKeepsItsEntries has it come back between the sweep's look and its work.
func TestARecordThatIsWrittenAgainWhileItsRemainsAreSweptKeepsItsEntries(t *testing.T) {
	for name, back := range map[string]func(*index.Collection[session], session) error{
		"for ever": func(c *index.Collection[session], s session) error {
			return c.Put(context.Background(), s, index.Lives(index.Forever))
		},
		"with a lifetime": func(c *index.Collection[session], s session) error { return c.Create(context.Background(), s) },
		"elsewhere": func(c *index.Collection[session], s session) error {
			s.User, s.Seen = "bob", 2
			return c.Put(context.Background(), s)
		},
		"and deleted": func(c *index.Collection[session], s session) error {
			if err := c.Put(context.Background(), s); err != nil {
				return err
			}
			return c.Delete(context.Background(), s.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				ctx := context.Background()
				clk := startClock(s)
				c, rdb := openSessions(t, s)
				slow := s.Client(t)
				sweeper, err := index.Open(ctx, slow, sessions)
				require.NoError(t, err)
				rec := session{ID: "a", User: "ann", Seen: 1}
				require.NoError(t, c.Put(ctx, rec, index.Lives(5*time.Millisecond)))
				clk.gone(t, rdb, sessionKey("a"))
				between(slow, t, "apply", func() { require.NoError(t, back(c, rec)) })
				_, err = repair.Sweep(ctx, sweeper, repair.Options{})
				require.NoError(t, err)
				left := len(s.Keys(t))
				if name == "and deleted" {
					require.Equal(t, 1, left, "the catalog")
					return
				}
				now, err := c.Get(ctx, "a")
				require.NoError(t, err)
				require.True(t, rdb.SIsMember(ctx, "acme:web:session:{session}:~user.1:"+now.User+":v1", "a").Val())
				require.EqualValues(t, now.Seen, rdb.ZScore(ctx, "acme:web:session:{session}:~seen.1:v1", "a").Val())
				rep, err := repair.Verify(ctx, c, repair.Options{})
				require.NoError(t, err)
				require.True(t, rep.Clean(), "%+v", rep)
			})
		})
	}
}

// TestSweepersOfSeveralProcessesLeaveAnEmptyStoreReady has each sweep away what the other has open, and both do it at once.
func TestSweepersOfSeveralProcessesLeaveAnEmptyStoreReady(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		clk := startClock(s)
		one, rdb := openSessions(t, s)
		two, slow := openSessions(t, s)
		rest := []string{"acme:web:session:~~catalog:v1"}
		sweep := func(c *index.Collection[session]) {
			t.Helper()
			_, err := repair.Sweep(ctx, c, repair.Options{})
			require.NoError(t, err)
			require.Equal(t, rest, s.Keys(t))
		}
		empty := func(c *index.Collection[session]) {
			t.Helper()
			n, err := c.Count(ctx, byUser.Is("ann"))
			require.NoError(t, err, "an empty store is whole")
			require.Zero(t, n)
		}
		write := func() {
			t.Helper()
			require.NoError(t, one.Put(ctx, session{ID: "a", User: "ann", Seen: 1}, index.Lives(5*time.Millisecond)))
			clk.gone(t, rdb, sessionKey("a"))
		}
		for range 3 {
			write()
			sweep(one)
			sweep(two)
			write()
			sweep(two)
			empty(one)
			sweep(one)
			empty(two)
			sweep(two)
		}
		// The second retires the partition between the first one's look and its work.
		write()
		looked := 0
		between(slow, t, "retire", func() {
			looked++
			between(slow, t, "retire", func() { looked++; sweep(one) })
		})
		sweep(two)
		require.Equal(t, 2, looked)
		empty(one)
	})
}

// TestASweepThatIsCutOffAnywhereLeavesNothingForEver loses each request of a sweep in turn, or the reply to it.
func TestASweepThatIsCutOffAnywhereLeavesNothingForEver(t *testing.T) {
	s := redistest.Redis(t)
	clk := startClock(s)
	p := redistest.NewProxy(t, s)
	ctx := context.Background()
	c, rdb := openSessions(t, s)
	rest := []string{"acme:web:session:~~catalog:v1"}
	for _, kind := range []redistest.FaultKind{redistest.CutBefore, redistest.CutAfter} {
		for k := 1; ; k++ {
			for i := range 3 {
				require.NoError(t, c.Put(ctx, session{ID: fmt.Sprint("s", i), User: "ann", Seen: 1}, index.Lives(time.Millisecond)))
			}
			clk.gone(t, rdb, sessionKey("s0"), sessionKey("s1"), sessionKey("s2"))
			cut, err := index.Open(ctx, p.Client(t), sessions, index.OpenOptions{Retry: index.Retry{Budget: -1}})
			require.NoError(t, err)
			p.Inject(nil, redistest.At(k, redistest.Fault{Kind: kind}))
			_, err = repair.Sweep(ctx, cut, repair.Options{})
			_, faults := p.Seen()
			p.Inject(nil, nil)
			if faults == 0 {
				require.NoError(t, err)
				require.Greater(t, k, 4, "a sweep has several requests")
				require.Equal(t, rest, s.Keys(t))
				break
			}
			_, err = repair.Sweep(ctx, c, repair.Options{})
			require.NoError(t, err)
			require.Equal(t, rest, s.Keys(t), "after a fault at request %d", k)
			n, err := c.Count(ctx, byUser.Is("ann"))
			require.NoError(t, err)
			require.Zero(t, n)
		}
	}
}

func TestRecordsThatExpireWhileTheyAreVerifiedAreNoFinding(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		startClock(s)
		c, _ := open(t, s, define(time.Hour, byColor, byCode, byTag, byWeight, bySerial,
			ranked.New("best", func(i item) float64 { return i.Weight }, ranked.Keep(9), ranked.Slack(2))))
		fill(t, c, 50)
		done := make(chan struct{})
		var writer sync.WaitGroup
		defer func() { close(done); writer.Wait() }()
		writer.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				rec := numbered(50 + n%150)
				rec.Code = ""
				if s.Mini != nil {
					s.Mini.SetTime(time.Now())
				}
				if err := c.Put(ctx, rec, index.Lives(time.Duration(1+n%25)*time.Millisecond)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		met, passes := int64(0), 0
		for begin := time.Now(); time.Since(begin) < 300*time.Millisecond; passes++ {
			check := repair.Verify
			if passes%3 == 2 {
				check = repair.Run
			}
			rep, err := check(ctx, c, repair.Options{})
			require.NoError(t, err)
			require.Empty(t, rep.Findings)
			require.Zero(t, rep.ExitCode())
			met += rep.Expired
		}
		require.Positive(t, met, "nothing expired")
		t.Logf("%d passes met %d entries of expired records", passes, met)
	})
}

// TestTheClockOfTheClientMattersToNoLifetime has a server an hour ahead of its client, and one an hour behind.
func TestTheClockOfTheClientMattersToNoLifetime(t *testing.T) {
	recent := ranked.New("recent", func(i item) time.Time { return time.UnixMicro(i.Serial) }, ranked.MaxAge(10*time.Minute))
	for name, skew := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Mini(t)
			ctx := context.Background()
			s.Mini.ClockTTL(true)
			now := time.Now().Add(skew)
			s.Mini.SetTime(now)
			c, rdb := open(t, s, define(5*time.Minute, byColor, byCode, recent))
			redistest.Checked(rdb, lua.Sources)
			rec := func(id string, at time.Time) item {
				return item{ID: id, Color: "red", Code: id, Serial: at.UnixMicro()}
			}
			require.NoError(t, c.Put(ctx, rec("declared", now)))
			require.NoError(t, c.Put(ctx, rec("given", now), index.Lives(time.Minute)))
			require.NoError(t, c.Put(ctx, rec("until", now), index.Until(now.Add(2*time.Minute))))
			require.NoError(t, c.Put(ctx, rec("past", now)))
			require.NoError(t, c.Put(ctx, rec("past", now), index.Until(now.Add(-time.Minute))), "a delete, whatever the client thinks of it")
			require.NoError(t, c.Put(ctx, rec("stays", now), index.Lives(index.Forever)))
			left := func(after time.Duration, want ...string) {
				t.Helper()
				s.Mini.SetTime(now.Add(after))
				var found []string
				for id, err := range c.IDs(ctx, byColor.Is("red")) {
					require.NoError(t, err)
					found = append(found, id)
				}
				require.ElementsMatch(t, want, found, "after %v", after)
				n, err := c.Count(ctx, byColor.Is("red"))
				require.NoError(t, err)
				require.EqualValues(t, len(want), n)
				page, err := c.Top(ctx, recent.Newest(9))
				require.NoError(t, err)
				require.Len(t, page.Items, len(want), "after %v", after)
				rep := verify(t, c)
				require.Zero(t, rep.ExitCode(), "%+v", rep)
			}
			left(0, "declared", "given", "until", "stays")
			left(time.Minute-time.Millisecond, "declared", "given", "until", "stays")
			left(time.Minute+time.Millisecond, "declared", "until", "stays")
			left(2*time.Minute+time.Millisecond, "declared", "stays")
			rep, err := repair.Sweep(ctx, c, repair.Options{})
			require.NoError(t, err)
			require.EqualValues(t, 2, rep.Records)
			left(5*time.Minute+time.Millisecond, "stays")
			require.NoError(t, c.Create(ctx, rec("declared", now), index.Lives(index.Forever)), "its unique value is free")
			left(10*time.Minute, "declared", "stays")
			s.Mini.SetTime(now.Add(10*time.Minute + time.Second))
			page, err := c.Top(ctx, recent.Newest(9))
			require.NoError(t, err)
			require.Empty(t, page.Items, "the window is the server's too")
			require.Zero(t, verify(t, c).ExitCode())
		})
	}
}
