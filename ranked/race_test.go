package ranked_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// TestAfterARaceOfWritersTheOrderIsWhatTheRecordsSay lets eight writers change scores, move records between groups and delete
// them by every path, on twenty ids, beside a repair, and then holds every key against the records, by keys written out by
// hand.
func TestAfterARaceOfWritersTheOrderIsWhatTheRecordsSay(t *testing.T) {
	const keep, slack = 4, 2
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64], ranked.Keep(keep), ranked.Slack(slack))
		in := ranked.Within(group[int64], ranked.New("in", score[int64], ranked.Keep(keep), ranked.Slack(slack), ranked.LowestFirst()))
		exact := ranked.Exact("exact", score[int64])
		st := open(t, s, ints, by, in, exact)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		var writers sync.WaitGroup
		failed := make(chan error, 8)
		for w := range 8 {
			writers.Go(func() { failed <- scramble(st, rand.New(rand.NewPCG(seed, uint64(w)))) })
		}
		repaired := make(chan error, 1)
		done := make(chan struct{})
		go func() { repaired <- keepRepairing(st, done) }()
		writers.Wait()
		close(done)
		require.NoError(t, <-repaired)
		for range 8 {
			require.NoError(t, <-failed)
		}

		live := map[string]entry[int64]{}
		for i := range 20 {
			rec, err := st.Get(t.Context(), fmt.Sprintf("r%02d", i))
			if !errors.Is(err, index.ErrNotFound) {
				require.NoError(t, err)
				live[rec.ID] = rec
			}
		}
		shot := redistest.Snapshot(t, st.rdb)
		require.Equal(t, len(live), len(shot[at+"~~manifest:v1"].Elements))
		floors := shot[at+"~~floor:v1"].Elements
		held(t, live, shot[at+"~rank.1:v1"].Elements, floors["rank.1"], false, keep+slack)
		for _, g := range []string{"x", "y"} {
			part := map[string]entry[int64]{}
			for id, rec := range live {
				if rec.Group == g {
					part[id] = rec
				}
			}
			held(t, part, shot[at+"~in.1:"+g+":v1"].Elements, floors["in.1:"+g], true, keep+slack)
		}
		sorted := make([]entry[int64], 0, len(live))
		for _, rec := range live {
			sorted = append(sorted, rec)
		}
		slices.SortFunc(sorted, before)
		if len(sorted) > 0 {
			require.Equal(t, recordIDs(sorted), st.whole(exact.Bottom(20)))
		}
		require.Len(t, shot[at+"~exact.1:v1"].Elements, len(live))
	})
}

// keepRepairing lets one repair follow the other until done: they take trimmed entries back, and write floors anew.
func keepRepairing(st store[int64], done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return nil
		default:
		}
		report, err := repair.Run(st.t.Context(), st.Collection, repair.Options{})
		if err != nil {
			return err
		}
		if len(report.Findings) > 0 {
			return fmt.Errorf("a false finding: %v", report.Findings)
		}
	}
}

// scramble writes at random for a while. What the others change meanwhile is no error.
func scramble(st store[int64], rng *rand.Rand) error {
	ctx := st.t.Context()
	rec := func() entry[int64] {
		return entry[int64]{ID: fmt.Sprintf("r%02d", rng.IntN(20)), Group: []string{"x", "y"}[rng.IntN(2)], Score: int64(rng.IntN(7) - 3)}
	}
	for range 60 {
		var err error
		r := rec()
		switch rng.IntN(7) {
		case 0:
			err = st.Delete(ctx, r.ID)
		case 1:
			_, err = st.DeleteMany(ctx, []string{r.ID, rec().ID})
		case 2:
			_, err = st.PutMany(ctx, []entry[int64]{r, rec(), rec(), r})
		case 3:
			_, err = st.Update(ctx, r.ID, func(old *entry[int64]) error { old.Score++; return nil })
		case 4:
			err = st.Create(ctx, r)
		default:
			err = st.Put(ctx, r)
		}
		if err != nil && !errors.Is(err, index.ErrNotFound) && !errors.Is(err, index.ErrExists) {
			return err
		}
	}
	return nil
}

func before(a, b entry[int64]) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.ID, b.ID))
}

// held says that a ranked key holds live records alone, with their scores, and that its floor covers every other one: it
// names the record, or its last pair stands for others and the record is no better.
func held(t *testing.T, live map[string]entry[int64], members map[string]string, floor string, low bool, most int) {
	t.Helper()
	require.LessOrEqual(t, len(members), most)
	for id, got := range members {
		rec, lives := live[id]
		require.True(t, lives, "%q has no record", id)
		require.Equal(t, fmt.Sprint(rec.Score), got, "%q", id)
	}
	listed, more := pairsIn(t, floor)
	for id, rec := range live {
		if _, ok := members[id]; ok {
			continue
		}
		covered := slices.Contains(listed, entry[int64]{ID: id, Score: rec.Score})
		if !covered && more {
			last := listed[len(listed)-1]
			covered = before(rec, last) == 0 || (before(rec, last) < 0) != low
		}
		require.True(t, covered, "%q (%d) is outside, and the floor %q knows nothing of it", id, rec.Score, floor)
	}
}

func TestAKeyNeverHoldsMoreThanItKeepsAndItsSlack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []struct {
			options []ranked.Option
			most    int
		}{
			{[]ranked.Option{ranked.Keep(1), ranked.Slack(0)}, 1},
			{[]ranked.Option{ranked.Keep(5), ranked.Slack(3)}, 8},
			{[]ranked.Option{ranked.Keep(20)}, 22}, // a tenth by default
			{[]ranked.Option{ranked.Slack(2), ranked.Keep(5), ranked.LowestFirst()}, 7},
		} {
			for name, by := range map[string]*ranked.Index[entry[int64], int64]{
				"rank": ranked.New("rank", score[int64], c.options...), "exact": ranked.Exact("exact", score[int64], c.options...),
			} {
				s.Flush(t)
				st := open(t, s, ints, by)
				largest := 0
				for i := range 40 {
					st.put(entry[int64]{ID: fmt.Sprint(i), Score: int64(i * 7 % 11)})
					largest = max(largest, st.size("~"+name+".1"))
				}
				require.Equal(t, c.most, largest)
				recs := make([]entry[int64], 500)
				for i := range recs {
					recs[i] = entry[int64]{ID: fmt.Sprint(i), Score: int64(i * 7 % 101)}
				}
				_, err := st.PutMany(t.Context(), recs)
				require.NoError(t, err)
				require.LessOrEqual(t, st.size("~"+name+".1"), c.most)
			}
		}
	})
}

func TestAWriteOfABoundedOrderCostsOneRoundTrip(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64], ranked.Keep(2), ranked.Slack(0))
		st := open(t, s, ints, by)
		st.put(entry[int64]{ID: "0"})
		count := redistest.Count(st.rdb)
		for i := range 5 {
			st.put(entry[int64]{ID: fmt.Sprint(i), Score: int64(i)}) // new ones, and the trims that they cause
			st.put(entry[int64]{ID: fmt.Sprint(i), Score: int64(-i)})
		}
		require.Equal(t, 10, count.Trips(), "another score in New needs no second trip")
		count.Reset()
		st.page(by.Top(2))
		require.Equal(t, 2, count.Trips())
		for _, c := range []string{"keys", "scan", "zscan"} {
			require.Zero(t, count.Commands()[c])
		}
	})
}
