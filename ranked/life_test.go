package ranked_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
)

func TestEveryWayToWriteMovesTheRecordToItsNewPlace(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by, exact := ranked.New("rank", score[int64]), ranked.Exact("exact", score[int64])
		in := ranked.Within(group[int64], ranked.Exact("in", score[int64]))
		ctx := t.Context()
		for name, write := range map[string]func(store[int64], entry[int64]) error{
			"put":     func(st store[int64], e entry[int64]) error { return st.Put(ctx, e) },
			"replace": func(st store[int64], e entry[int64]) error { return st.Replace(ctx, e) },
			"update": func(st store[int64], e entry[int64]) error {
				_, err := st.Update(ctx, e.ID, func(old *entry[int64]) error { *old = e; return nil })
				return err
			},
			"with token": func(st store[int64], e entry[int64]) error {
				snap, err := st.Read(ctx, e.ID)
				if err != nil {
					return err
				}
				return st.Put(ctx, e, index.IfToken(snap.Token))
			},
			"batch": func(st store[int64], e entry[int64]) error {
				_, err := st.PutMany(ctx, []entry[int64]{{ID: "z", Group: "z", Score: -9}, e})
				return err
			},
			"twice in a batch": func(st store[int64], e entry[int64]) error {
				_, err := st.PutMany(ctx, []entry[int64]{{ID: e.ID, Group: "q", Score: -9}, {ID: "z", Group: "z", Score: -9}, e})
				return err
			},
			"delete and create": func(st store[int64], e entry[int64]) error {
				return errors.Join(st.Delete(ctx, e.ID), st.Create(ctx, e))
			},
		} {
			s.Flush(t)
			st := open(t, s, ints, by, exact, in)
			st.put(entry[int64]{ID: "z", Group: "z", Score: -9}, entry[int64]{ID: "m", Group: "x", Score: 1}, entry[int64]{ID: "n", Group: "x", Score: 5})
			require.NoError(t, write(st, entry[int64]{ID: "m", Group: "y", Score: 9}), name)
			want := []string{"m", "n", "z"}
			require.Equal(t, want, st.whole(by.Top(9)), name)
			require.Equal(t, want, st.whole(exact.Top(9)), name)
			require.Equal(t, []string{"n"}, st.whole(in.Of("x").Top(9)), name)
			require.Equal(t, []string{"m"}, st.whole(in.Of("y").Top(9)), name)
			require.Equal(t, 3, st.size("~exact.1"), "%s: the old place is gone", name)
			require.Zero(t, st.size("~in.1:q"), name)

			require.NoError(t, st.Delete(ctx, "m"))
			for k, e := range redistest.Snapshot(t, st.rdb) {
				for member := range e.Elements {
					require.False(t, member == "m" || len(member) == 9 && member[8] == 'm', "%s: %q still names m", name, k)
				}
			}
		}
	})
}

// A record is on its page at every moment while it is saved, and no page gives a record outside what was asked.
func TestAReaderNeitherMissesARecordThatIsSavedNorGetsOneOutsideTheRange(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64], ranked.Keep(5), ranked.Slack(0))
		in := ranked.Within(group[int64], ranked.Exact("in", score[int64]))
		st := open(t, s, ints, by, in)
		for _, id := range []string{"a", "b", "c"} {
			st.put(entry[int64]{ID: id, Group: "x", Score: 5})
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var writer sync.WaitGroup
		var failed error
		writer.Go(func() {
			for i := 0; ctx.Err() == nil && failed == nil; i++ {
				// "b" always scores 5 or 6; "c" changes its group and its score.
				err := errors.Join(st.Put(t.Context(), entry[int64]{ID: "b", Group: "x", Score: int64(5 + i%2)}),
					st.Put(t.Context(), entry[int64]{ID: "c", Group: []string{"x", "y"}[i%2], Score: int64(i % 9)}))
				failed = err
			}
		})
		for range 300 {
			p := st.page(by.Top(5))
			require.Len(t, p.Items, 3)
			require.True(t, p.Complete)
			for _, item := range st.page(in.Of("x").Top(9), in.Of("x").AtLeast(5)).Items {
				require.Equal(t, "x", item.Record.Group)
				require.GreaterOrEqual(t, item.Record.Score, int64(5))
			}
		}
		stop()
		writer.Wait()
		require.NoError(t, failed)
	})
}

func TestAListThatLostItsBestAfterTrimmingSaysSoAndShowsTheRest(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64], ranked.Keep(3), ranked.Slack(0))
		st := open(t, s, ints, by)
		for i := range 5 {
			st.put(entry[int64]{ID: fmt.Sprint(i), Score: int64(i)})
		}
		require.Equal(t, []string{"4", "3", "2"}, st.whole(by.Top(3)))
		require.NoError(t, st.Delete(t.Context(), "4"))
		p := st.page(by.Top(3))
		require.Equal(t, []string{"3", "2"}, idsOf(p))
		require.False(t, p.Complete, "record 1 lives and belongs here")
		require.Empty(t, p.Next)
		require.Equal(t, []string{"3", "2"}, st.whole(by.Top(2)), "a shorter page is still whole")
		st.put(entry[int64]{ID: "1", Score: 1})
		require.Equal(t, []string{"3", "2", "1"}, st.whole(by.Top(3)), "written again, it is back")
	})
}

func TestAWindowHidesWhatIsTooOldAndTrimmingByAgeRaisesNoFloor(t *testing.T) {
	s := redistest.Mini(t)
	s.Mini.ClockTTL(true)
	now := time.Date(2026, 5, 1, 10, 15, 0, 0, time.UTC)
	clock := func(d time.Duration) time.Time {
		now = now.Add(d)
		s.Mini.SetTime(now)
		return now
	}
	seen := ranked.New("seen", score[time.Time], ranked.MaxAge(time.Hour), ranked.Keep(2), ranked.Slack(0))
	st := open(t, s, times, seen)
	st.put(entry[time.Time]{ID: "a", Score: clock(0)})
	st.put(entry[time.Time]{ID: "b", Score: clock(time.Minute)})
	require.Equal(t, []string{"b", "a"}, st.whole(seen.Newest(2)))
	clock(59 * time.Minute) // a is exactly an hour old
	require.Equal(t, []string{"b", "a"}, st.whole(seen.Newest(2)))
	clock(time.Microsecond)
	require.Equal(t, []string{"b"}, st.whole(seen.Newest(2)), "hidden before any write removes it")
	n, err := st.Count(t.Context(), seen.AtLeast(now.Add(-24*time.Hour)))
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.Equal(t, 2, st.size("~seen.1"))
	st.put(entry[time.Time]{ID: "c", Score: now})
	require.Equal(t, 2, st.size("~seen.1"), "the write has removed it, and trimmed nothing else")
	require.Equal(t, []string{"c", "b"}, st.whole(seen.Newest(2)))
	require.Equal(t, []string{"b", "c"}, st.whole(seen.Oldest(2)), "nothing was trimmed by rank, so the other end is whole too")
	// By rank b is trimmed now. Once it is out of the window, the page is whole again.
	st.put(entry[time.Time]{ID: "d", Score: now})
	require.Equal(t, []string{"d", "c"}, st.whole(seen.Newest(2)))
	require.NoError(t, st.Delete(t.Context(), "d"))
	require.False(t, st.page(seen.Newest(2)).Complete)
	clock(2 * time.Minute)
	require.Equal(t, []string{"c"}, st.whole(seen.Newest(2)))
}

func TestAWindowOfDaysKeepsWhatIsYoungerThanADay(t *testing.T) {
	s := redistest.Mini(t)
	s.Mini.ClockTTL(true)
	daily := ranked.New("daily", score[time.Time], ranked.MaxAge(24*time.Hour), ranked.Unit(24*time.Hour))
	st := open(t, s, times, daily)
	evening := time.Date(2026, 5, 1, 18, 0, 0, 0, time.UTC)
	s.Mini.SetTime(evening)
	st.put(entry[time.Time]{ID: "a", Score: evening})
	for _, after := range []time.Duration{6*time.Hour + time.Minute, 23 * time.Hour} {
		s.Mini.SetTime(evening.Add(after))
		st.put(entry[time.Time]{ID: "b", Score: evening.Add(after)})
		require.Equal(t, []string{"b", "a"}, st.whole(daily.Newest(5)), "%v later", after)
	}
	s.Mini.SetTime(evening.Add(30*time.Hour + time.Minute)) // two midnights
	require.Equal(t, []string{"b"}, st.whole(daily.Newest(5)))
}

func TestShortLivedRecordsDoNotPushOutThoseThatLive(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		if s.Mini != nil {
			s.Mini.ClockTTL(true)
			s.Mini.SetTime(time.Now())
		}
		by, exact := ranked.New("rank", score[int64], ranked.Keep(3), ranked.Slack(0)), ranked.Exact("exact", score[int64], ranked.Keep(3), ranked.Slack(0))
		st := openEntity(t, s, declare(ints, index.Forever, by, exact))
		for _, id := range []string{"x", "y"} {
			require.NoError(t, st.Put(t.Context(), entry[int64]{ID: id, Score: 100}, index.Lives(5*time.Millisecond)))
		}
		if s.Mini != nil {
			s.Mini.SetTime(time.Now().Add(time.Second))
		}
		require.Eventually(t, func() bool { return st.rdb.Exists(t.Context(), at+"x:v1", at+"y:v1").Val() == 0 }, 5*time.Second, 2*time.Millisecond)
		for i := range 3 {
			st.put(entry[int64]{ID: fmt.Sprint(i), Score: int64(i)})
		}
		require.Equal(t, []string{"2", "1", "0"}, st.whole(by.Top(3)))
		require.Equal(t, []string{"2", "1", "0"}, st.whole(exact.Top(3)))
	})
}

// TestARecordThatExpiredAndIsPutWithWhatIsLeftOfItsLifetimeLivesForEver keeps a lifetime that is over: the note of its end must
// not hide the new record, nor take it out of its order.
func TestARecordThatExpiredAndIsPutWithWhatIsLeftOfItsLifetimeLivesForEver(t *testing.T) {
	s := redistest.Redis(t)
	by := ranked.New("rank", score[int64], ranked.Keep(2), ranked.Slack(0))
	st := open(t, s, ints, by)
	ctx := t.Context()
	for _, write := range []func(entry[int64], ...index.WriteOption) error{
		func(rec entry[int64], o ...index.WriteOption) error { return st.Put(ctx, rec, o...) },
		func(rec entry[int64], o ...index.WriteOption) error { return st.Create(ctx, rec, o...) },
	} {
		s.Flush(t)
		require.NoError(t, st.Put(ctx, entry[int64]{ID: "a", Score: 1}, index.Lives(20*time.Millisecond)))
		st.put(entry[int64]{ID: "b", Score: 2})
		require.Eventually(t, func() bool { return st.rdb.Exists(ctx, at+"a:v1").Val() == 0 }, 5*time.Second, time.Millisecond)
		require.NoError(t, write(entry[int64]{ID: "a", Score: 9}, index.KeepLifetime()))
		require.Equal(t, []string{"a", "b"}, st.whole(by.Top(2)))
		st.put(entry[int64]{ID: "c", Score: 3}, entry[int64]{ID: "d", Score: 4})
		require.Equal(t, []string{"a", "d"}, st.whole(by.Top(2)))
		require.Zero(t, st.rdb.Exists(ctx, at+"~~expiry:v1").Val())
	}

	// The same of one that was persisted by hand: an update is a write.
	s.Flush(t)
	require.NoError(t, st.Put(ctx, entry[int64]{ID: "a", Score: 9}, index.Lives(200*time.Millisecond)))
	require.NoError(t, st.rdb.Persist(ctx, at+"a:v1").Err())
	time.Sleep(250 * time.Millisecond)
	require.Empty(t, idsOf(st.page(by.Top(2))), "hidden until it is written")
	_, err := st.Update(ctx, "a", func(*entry[int64]) error { return nil })
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, st.whole(by.Top(2)))
}
