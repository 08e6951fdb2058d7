package repair_test

import (
	"context"
	"fmt"
	"os"
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

// session is a record that expires.
type session struct {
	ID, User string
	Seen     int64
	Body     string
}

var (
	byUser = membership.New("user", func(s session) string { return s.User })
	bySeen = ranked.New("seen", func(s session) int64 { return s.Seen })

	sessions = index.Define("acme:web", "session", index.Options[session]{
		ID: func(s session) string { return s.ID }, Version: 1, Lifetime: time.Hour,
		Indexes: []index.Index[session]{byUser, bySeen},
	})
)

func openSessions(t testing.TB, s *redistest.Server) (*index.Collection[session], redis.UniversalClient) {
	t.Helper()
	rdb := s.Client(t)
	c, err := index.Open(context.Background(), rdb, sessions)
	require.NoError(t, err)
	return c, rdb
}

func sessionKey(id string) string { return "acme:web:session:{session}:" + id + ":v1" }

// outlive waits until a record has expired.
func outlive(t testing.TB, s *redistest.Server, rdb redis.UniversalClient, id string, d time.Duration) {
	t.Helper()
	if s.Mini != nil {
		s.Mini.SetTime(time.Now().Add(d + time.Millisecond))
		return
	}
	require.Eventually(t, func() bool { return rdb.Exists(context.Background(), sessionKey(id)).Val() == 0 }, d+5*time.Second, time.Millisecond)
}

func TestASweepLeavesNothingOfWhatHasExpired(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := context.Background()
		if s.Mini != nil {
			s.Mini.ClockTTL(true)
			s.Mini.SetTime(time.Now())
		}
		c, rdb := openSessions(t, s)
		redistest.Checked(rdb, lua.Sources)
		const n = 500
		short := 300 * time.Millisecond
		for i := range n {
			life := short
			if i%10 == 0 {
				life = time.Hour
			}
			require.NoError(t, c.Put(ctx, session{ID: fmt.Sprint("s", i), User: fmt.Sprint("u", i%10), Seen: int64(i)}, index.Lives(life)))
		}
		outlive(t, s, rdb, "s499", short)
		verified, err := repair.Verify(ctx, c, repair.Options{})
		require.NoError(t, err)
		require.True(t, verified.Clean(), "what has expired is no damage: %+v", verified)

		report, err := repair.Sweep(ctx, c, repair.Options{})
		require.NoError(t, err)
		require.Zero(t, report.ExitCode())
		count, err := c.Count(ctx, byUser.Is("u0"))
		require.NoError(t, err)
		require.EqualValues(t, n/10, count, "the long-lived are untouched")
		require.EqualValues(t, n/10, rdb.HLen(ctx, "acme:web:session:{session}:~~manifest:v1").Val())
		require.EqualValues(t, n/10, rdb.ZCard(ctx, "acme:web:session:{session}:~~expiry:v1").Val())

		for i := 0; i < n; i += 10 {
			require.NoError(t, c.Touch(ctx, fmt.Sprint("s", i), index.Lives(short)))
		}
		if s.Mini != nil {
			s.Mini.SetTime(time.Now().Add(2 * time.Second))
		} else {
			outlive(t, s, rdb, "s490", short)
		}
		nothing := func() {
			t.Helper()
			for u := range 10 {
				count, err := c.Count(ctx, byUser.Is(fmt.Sprint("u", u)))
				require.NoError(t, err)
				require.Zero(t, count)
				for id, err := range c.IDs(ctx, byUser.Is(fmt.Sprint("u", u))) {
					require.NoError(t, err)
					require.Fail(t, "an expired record is found", id)
				}
			}
			count, err := c.Count(ctx, bySeen.AtLeast(0))
			require.NoError(t, err)
			require.Zero(t, count)
		}
		nothing()
		_, err = repair.Sweep(ctx, c, repair.Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"acme:web:session:~~catalog:v1"}, s.Keys(t))
		nothing()

		require.NoError(t, c.Put(ctx, session{ID: "again", User: "u1", Seen: 1}), "the open collection goes on")
		count, err = c.Count(ctx, byUser.Is("u1"))
		require.NoError(t, err)
		require.EqualValues(t, 1, count)
		verified, err = repair.Verify(ctx, c, repair.Options{})
		require.NoError(t, err)
		require.True(t, verified.Clean())
	})
}

// TestChurnWithoutASweepKeepsTheIndexesAsSmallAsWhatLives is the most reported fault of libraries of this kind.
func TestChurnWithoutASweepKeepsTheIndexesAsSmallAsWhatLives(t *testing.T) {
	total, alive := 20_000, 1_000
	if os.Getenv("LOCKSTEP_LONG") == "1" {
		total, alive = 200_000, 10_000
	}
	s := redistest.Redis(t)
	ctx := context.Background()
	c, rdb := openSessions(t, s)
	for i := 0; i < alive; i += 200 {
		batch := make([]session, 200)
		for j := range batch {
			batch[j] = session{ID: fmt.Sprint("live", i+j), User: fmt.Sprint("u", j%10), Seen: int64(i + j)}
		}
		_, err := c.PutMany(ctx, batch)
		require.NoError(t, err)
	}
	const constant = 600 // what expires within the reach of the writes on their way
	worst := int64(0)
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range next {
				err := c.Put(ctx, session{ID: fmt.Sprint("short", i), User: fmt.Sprint("u", i%10), Seen: int64(i)}, index.Lives(time.Duration(1+i%30)*time.Millisecond))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range total {
		next <- i
		if i%500 == 0 {
			worst = max(worst,
				rdb.HLen(ctx, "acme:web:session:{session}:~~manifest:v1").Val(),
				rdb.ZCard(ctx, "acme:web:session:{session}:~~expiry:v1").Val(),
				rdb.ZCard(ctx, "acme:web:session:{session}:~seen.1:v1").Val())
		}
	}
	close(next)
	wg.Wait()
	t.Logf("%d short-lived through %d live: at most %d rows, notes or members", total, alive, worst)
	require.LessOrEqual(t, worst, int64(alive+alive/20+constant))
	require.Eventually(t, func() bool {
		report, err := repair.Sweep(ctx, c, repair.Options{})
		return err == nil && report.ExitCode() == 0 && rdb.HLen(ctx, "acme:web:session:{session}:~~manifest:v1").Val() == int64(alive)
	}, 5*time.Second, 5*time.Millisecond)
	verified, err := repair.Verify(ctx, c, repair.Options{})
	require.NoError(t, err)
	require.True(t, verified.Clean())
}

func TestASweeperNeverHarmsARecordThatIsWrittenAgainRenewedOrMadeToStay(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	c, rdb := openSessions(t, s)
	sweeper, err := index.Open(ctx, s.Client(t), sessions)
	require.NoError(t, err)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if _, err := repair.Sweep(ctx, sweeper, repair.Options{}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	const ids = 37 // so many that most have expired when their turn comes again
	rounds := 2_500
	if os.Getenv("LOCKSTEP_LONG") == "1" {
		rounds = 10_000
	}
	for i := range rounds {
		id := fmt.Sprint("s", i%ids)
		// Two lives of an id have the same entries: only that it lives tells them apart.
		rec := session{ID: id, User: fmt.Sprint("u", i/(2*ids)%2), Seen: int64(i)}
		var err error
		switch i % 5 {
		case 0:
			err = c.Put(ctx, rec, index.Lives(time.Millisecond))
		case 1:
			err = c.Put(ctx, rec, index.Lives(index.Forever))
		case 2:
			err = c.Delete(ctx, id)
		case 3:
			err = c.Put(ctx, rec, index.Lives(2*time.Millisecond))
		default:
			if err = c.Touch(ctx, id, index.Lives(3*time.Millisecond)); err != nil {
				err = nil // it may be gone
			}
		}
		require.NoError(t, err)
		if i%13 == 12 {
			// Before a later write puts right what the sweeper has done wrong.
			verified, err := repair.Verify(ctx, c, repair.Options{})
			require.NoError(t, err)
			require.Empty(t, verified.Findings, "round %d", i)
		}
	}
	for i := range ids {
		require.NoError(t, c.Put(ctx, session{ID: fmt.Sprint("s", i), User: "end", Seen: int64(i)}))
	}
	close(done)
	wg.Wait()
	n, err := c.Count(ctx, byUser.Is("end"))
	require.NoError(t, err)
	require.EqualValues(t, ids, n)
	verified, err := repair.Verify(ctx, c, repair.Options{})
	require.NoError(t, err)
	require.True(t, verified.Clean(), "%+v", verified)
	require.EqualValues(t, ids, rdb.HLen(ctx, "acme:web:session:{session}:~~manifest:v1").Val())
}

func TestTheCostOfASweepGrowsWithTheExpiredAndNotWithAll(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	c, rdb := openSessions(t, s)
	_, err := repair.Sweep(ctx, c, repair.Options{}) // the server knows the scripts from here on
	require.NoError(t, err)
	counter := redistest.Count(rdb)
	trips := map[int]int{}
	live := 0
	for _, size := range []int{1_000, 10_000} {
		for ; live < size; live += 200 {
			batch := make([]session, 200)
			for j := range batch {
				batch[j] = session{ID: fmt.Sprint("live", live+j), User: "u", Seen: int64(j)}
			}
			_, err := c.PutMany(ctx, batch)
			require.NoError(t, err)
		}
		for i := range 300 {
			require.NoError(t, c.Put(ctx, session{ID: fmt.Sprint("e", i), User: "x", Seen: 1}, index.Lives(time.Minute)))
		}
		for i := range 300 {
			require.NoError(t, rdb.ZAdd(ctx, "acme:web:session:{session}:~~expiry:v1", redis.Z{Score: 1, Member: fmt.Sprint("e", i)}).Err())
			require.NoError(t, rdb.Del(ctx, sessionKey(fmt.Sprint("e", i))).Err())
		}
		counter.Reset()
		report, err := repair.Sweep(ctx, c, repair.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 300, report.Records)
		require.EqualValues(t, 600, report.Expired)
		trips[size] = counter.Trips()
	}
	require.Equal(t, trips[1_000], trips[10_000])
}

// TestEvictedRecordsLeaveNothingForEver lets a full server throw records away before their time. Their entries go when their
// time has come.
func TestEvictedRecordsLeaveNothingForEver(t *testing.T) {
	s := redistest.Redis(t)
	ctx := context.Background()
	c, rdb := openSessions(t, s)
	require.NoError(t, rdb.ConfigSet(ctx, "maxmemory-policy", "volatile-lru").Err())
	var used int64
	_, err := fmt.Sscanf(infoLine(rdb.Info(ctx, "memory").Val(), "used_memory:"), "%d", &used)
	require.NoError(t, err)
	require.NoError(t, rdb.ConfigSet(ctx, "maxmemory", fmt.Sprint(used+5<<20)).Err())
	length := 4 * time.Second
	if os.Getenv("LOCKSTEP_LONG") == "1" {
		length = 30 * time.Second
	}
	const life = 500 * time.Millisecond
	written, worst := 0, int64(0)
	pad := strings.Repeat("x", 20_000) // so long that a slow machine fills the memory too
	for until := time.Now().Add(length); time.Now().Before(until); written++ {
		require.NoError(t, c.Put(ctx, session{ID: fmt.Sprint("s", written), User: fmt.Sprint("u", written%10), Seen: int64(written), Body: pad}, index.Lives(life)))
		if written%500 == 0 {
			worst = max(worst, rdb.ZCard(ctx, "acme:web:session:{session}:~seen.1:v1").Val())
		}
	}
	var evicted int64
	_, err = fmt.Sscanf(infoLine(rdb.Info(ctx, "stats").Val(), "evicted_keys:"), "%d", &evicted)
	require.NoError(t, err)
	t.Logf("%d written, %d evicted, at most %d members at once", written, evicted, worst)
	require.Positive(t, evicted, "the server must have been full")
	require.Less(t, worst, int64(written)/2, "the index grows with what lives, not with what was written")
	require.Eventually(t, func() bool {
		_, err := repair.Sweep(ctx, c, repair.Options{})
		return err == nil && len(s.Keys(t)) == 1
	}, 10*time.Second, 20*time.Millisecond)
}

// infoLine is what follows a field of INFO.
func infoLine(info, field string) string {
	_, rest, _ := strings.Cut(info, field)
	line, _, _ := strings.Cut(rest, "\r\n")
	return line
}
