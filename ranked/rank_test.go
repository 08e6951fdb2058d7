package ranked_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/ranked"
)

// TestTheRankOfOneRecordIsOneMoreThanAllThatAreBetter holds ranks among many ties against a count by brute force, from both
// ends, over all records and within groups.
func TestTheRankOfOneRecordIsOneMoreThanAllThatAreBetter(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		by := ranked.New("rank", score[int64])
		exact := ranked.Exact("exact", score[int64])
		in := ranked.Within(group[int64], ranked.New("in", score[int64]))
		few := ranked.New("few", score[int64], ranked.Keep(10), ranked.Slack(0))
		st := open(t, s, ints, by, exact, in, few)
		random := rand.New(rand.NewPCG(7, 7))
		var all []entry[int64]
		for i := range 60 {
			all = append(all, entry[int64]{ID: fmt.Sprintf("r%02d", i), Group: []string{"x", "y"}[i%2], Score: random.Int64N(12) - 6})
		}
		_, err := st.PutMany(t.Context(), all)
		require.NoError(t, err)
		rank := func(better index.Cond[entry[int64]]) int64 {
			n, err := st.Count(t.Context(), better)
			require.NoError(t, err)
			return n + 1
		}
		incomplete := 0
		for _, rec := range all {
			above, below, within := int64(1), int64(1), int64(1)
			for _, other := range all {
				if other.Score > rec.Score {
					above++
					if other.Group == rec.Group {
						within++
					}
				}
				if other.Score < rec.Score {
					below++
				}
			}
			require.Equal(t, above, rank(by.Above(rec.Score)), rec)
			require.Equal(t, above, rank(exact.Above(rec.Score)), rec)
			require.Equal(t, below, rank(by.Below(rec.Score)), rec)
			require.Equal(t, below, rank(exact.Below(rec.Score)), rec)
			require.Equal(t, within, rank(in.Of(rec.Group).Above(rec.Score)), rec)

			// Of a bounded order the rank is right or said not to be known, and known of all that it holds.
			n, err := st.Count(t.Context(), few.Above(rec.Score))
			if above-1 > 10 {
				require.ErrorIs(t, err, index.ErrIncomplete, rec)
				incomplete++
				continue
			}
			require.NoError(t, err)
			require.Equal(t, above, n+1, rec)
		}
		require.NotZero(t, incomplete)
	})
}
