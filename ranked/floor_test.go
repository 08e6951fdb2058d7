package ranked_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
	"github.com/lockstep-go/lockstep/repair"
)

// TestTheFloorNamesWhatIsOutside follows one key through trims: ten records, of which two are kept.
func TestTheFloorNamesWhatIsOutside(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, by := range map[string]*ranked.Index[entry[int64], int64]{
			"rank":  ranked.New("rank", score[int64], ranked.Keep(2), ranked.Slack(0)),
			"exact": ranked.Exact("exact", score[int64], ranked.Keep(2), ranked.Slack(0)),
		} {
			s.Flush(t)
			st := open(t, s, ints, by)
			put := func(n, to int64) { st.put(entry[int64]{ID: fmt.Sprintf("r%d", n), Score: to}) }
			expect := func(complete bool, ids ...string) {
				t.Helper()
				p := st.page(by.Top(2))
				require.Equal(t, ids, idsOf(p), name)
				require.Equal(t, complete, p.Complete, name)
			}
			listed := func() (ids []string) {
				f, err := st.rdb.HGet(t.Context(), at+"~~floor:v1", name+".1").Result()
				if err == redis.Nil { //nolint:errorlint // as the client documents it
					return nil
				}
				require.NoError(t, err)
				return listedIn(t, f)
			}

			for n := range int64(5) {
				put(n, n)
			}
			expect(true, "r4", "r3")
			require.Equal(t, []string{"r2", "r1", "r0"}, listed())

			// What was trimmed and falls, or goes, does not stand in the way of what is better than the rest.
			put(2, -5)
			require.NoError(t, st.Delete(t.Context(), "r4"))
			expect(false, "r3")
			put(5, 2)
			expect(true, "r3", "r5")
			require.NoError(t, st.Delete(t.Context(), "r1"))
			require.Equal(t, []string{"r0", "r2"}, listed())

			// Nothing is outside any more.
			require.NoError(t, st.Delete(t.Context(), "r0"))
			require.NoError(t, st.Delete(t.Context(), "r2"))
			require.NoError(t, st.Delete(t.Context(), "r3"))
			expect(true, "r5")
			require.Nil(t, listed())

			// More than it names: the last one stands for the others, and stays.
			batch := make([]entry[int64], 0, 10)
			for n := range int64(10) {
				batch = append(batch, entry[int64]{ID: fmt.Sprintf("r%d", n), Score: n})
			}
			_, err := st.PutMany(t.Context(), batch)
			require.NoError(t, err)
			require.Equal(t, []string{"r7", "r6", "r5", "r4", "+"}, listed())
			for _, n := range []int64{9, 7, 6, 5, 4} {
				require.NoError(t, st.Delete(t.Context(), fmt.Sprintf("r%d", n)))
			}
			require.Equal(t, []string{"r4", "+"}, listed())
			expect(false, "r8")

			// A repair takes back what there is room for, and knows of each that is left.
			report, err := repair.Run(t.Context(), st.Collection, repair.Options{})
			require.NoError(t, err)
			require.EqualValues(t, 1, report.Refilled)
			require.Empty(t, report.Findings)
			expect(true, "r8", "r3")
			require.Equal(t, []string{"r2", "r1", "r0"}, listed())
		}
	})
}

// TestAWriteThatIsRefusedLeavesTheFloorAsItIs refuses one record of a batch that has others with it.
func TestAWriteThatIsRefusedLeavesTheFloorAsItIs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64], ranked.Keep(2), ranked.Slack(0))
		st := open(t, s, ints, by)
		for n := range int64(5) {
			st.put(entry[int64]{ID: fmt.Sprintf("r%d", n), Score: n})
		}
		floor := func() string { return st.rdb.HGet(t.Context(), at+"~~floor:v1", "rank.1").Val() }
		before := floor()
		require.ErrorIs(t, st.Create(t.Context(), entry[int64]{ID: "r2", Score: 9}), index.ErrExists)
		require.Equal(t, before, floor())

		// The record's key is of another type: neither it nor its entry is written.
		require.NoError(t, st.rdb.Del(t.Context(), at+"r2:v1").Err())
		require.NoError(t, st.rdb.LPush(t.Context(), at+"r2:v1", "x").Err())
		outcomes, err := st.PutMany(t.Context(), []entry[int64]{{ID: "r2", Score: -3}, {ID: "r1", Score: -3}})
		require.ErrorIs(t, err, index.ErrKeyType)
		require.ErrorIs(t, outcomes[0].Err, index.ErrKeyType)
		require.NoError(t, outcomes[1].Err)
		require.Equal(t, []string{"r2", "r0", "r1"}, listedIn(t, floor()))
	})
}

// TestADamagedFloorStopsNoWrite writes what no floor looks like where the floors are.
func TestADamagedFloorStopsNoWrite(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64], ranked.Keep(2), ranked.Slack(0))
		for _, damage := range []string{"", "x", "7", "7+", "7 ", "7 r2", "7 2 99 r2", "7 2 -1 r2", "+ 2 2 r2", "7 x 2 r2", "7 2 2 r2 1", "7 nan 2 r2"} {
			s.Flush(t)
			st := open(t, s, ints, by)
			for n := range int64(5) {
				st.put(entry[int64]{ID: fmt.Sprintf("r%d", n), Score: n})
			}
			require.NoError(t, st.rdb.HSet(t.Context(), at+"~~floor:v1", "rank.1", damage).Err())
			st.page(by.Top(2))
			st.put(entry[int64]{ID: "r2", Score: -1}, entry[int64]{ID: "r7", Score: 7})
			require.NoError(t, st.Delete(t.Context(), "r1"))
			_, err := repair.Run(t.Context(), st.Collection, repair.Options{})
			require.NoError(t, err, "%q", damage)
			report, err := repair.Verify(t.Context(), st.Collection, repair.Options{})
			require.NoError(t, err, "%q", damage)
			require.Zero(t, report.ExitCode(), "%q", damage)
			p := st.page(by.Top(2))
			require.Equal(t, []string{"r7", "r4"}, idsOf(p), "%q", damage)
		}
	})
}

// pairsIn are the pairs of a floor, the best first, and whether the last of them stands for others too. The ids of these tests
// are short: an exact order has its score before the id.
func pairsIn(t *testing.T, floor string) (pairs []entry[int64], more bool) {
	t.Helper()
	head, rest, found := strings.Cut(floor, " ")
	for found {
		score, text, ok := strings.Cut(rest, " ")
		digits, text, sized := strings.Cut(text, " ")
		require.True(t, ok && sized, "%q", floor)
		number, err := strconv.ParseInt(score, 10, 64)
		require.NoError(t, err, "%q", floor)
		size, err := strconv.Atoi(digits)
		require.NoError(t, err, "%q", floor)
		id := text[:size]
		if size > 8 {
			id = id[8:]
		}
		pairs = append(pairs, entry[int64]{ID: id, Score: number})
		if rest = text[size:]; rest == "" {
			break
		}
		require.Equal(t, byte(' '), rest[0])
		rest = rest[1:]
	}
	return pairs, strings.HasSuffix(head, "+")
}

// listedIn are the ids of the pairs of a floor, and "+" where the last stands for others.
func listedIn(t *testing.T, floor string) (ids []string) {
	t.Helper()
	pairs, more := pairsIn(t, floor)
	for _, p := range pairs {
		ids = append(ids, p.ID)
	}
	if more {
		ids = append(ids, "+")
	}
	return ids
}
