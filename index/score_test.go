package index_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
)

func TestAScoreConvertsToWhatItsIndexWasMadeOf(t *testing.T) {
	when := time.Date(2026, 1, 1, 12, 0, 0, 123_456_789, time.FixedZone("", 3600))
	for _, c := range []struct {
		score  index.Score
		text   string
		number float64
		whole  int64
		ok     bool
	}{
		{index.ScoreOfInt(math.MaxInt64), "9223372036854775807", math.MaxInt64, math.MaxInt64, true},
		{index.ScoreOfInt(math.MinInt64), "-9223372036854775808", math.MinInt64, math.MinInt64, true},
		{index.ScoreOfUint(math.MaxInt64), "9223372036854775807", math.MaxInt64, math.MaxInt64, true},
		{index.ScoreOfFloat(1 << 53), "9007199254740992", 1 << 53, 1 << 53, true},
		{index.ScoreOfFloat(-7), "-7", -7, -7, true},
		{index.ScoreOfFloat(math.Copysign(0, -1)), "0", 0, 0, true},
		{index.ScoreOfTime(when), "2026-01-01T11:00:00.123456789Z", float64(when.UnixMicro()), when.UnixMicro(), true},
	} {
		require.Equal(t, c.text, c.score.String())
		require.InDelta(t, c.number, c.score.Float64(), 0)
		n, ok := c.score.Int64()
		require.Equal(t, c.ok, ok, c.text)
		require.Equal(t, c.whole, n)
	}
	for text, score := range map[string]index.Score{
		"18446744073709551615": index.ScoreOfUint(math.MaxUint64), "9223372036854775808": index.ScoreOfUint(1 << 63),
		"0.1": index.ScoreOfFloat(0.1), "1e+300": index.ScoreOfFloat(1e300), "5e-324": index.ScoreOfFloat(5e-324),
		"+Inf": index.ScoreOfFloat(math.Inf(1)), "-Inf": index.ScoreOfFloat(math.Inf(-1)), "a\x00b": index.ScoreOfText("a\x00b"),
	} {
		require.Equal(t, text, score.String())
		_, ok := score.Int64()
		require.False(t, ok, "%s is no int64", text)
		require.True(t, score.Time().IsZero())
	}
	require.True(t, when.Equal(index.ScoreOfTime(when).Time()))
	require.Equal(t, time.UTC, index.ScoreOfTime(when).Time().Location())
	b, err := json.Marshal(map[string]index.Score{"score": index.ScoreOfInt(math.MaxInt64)})
	require.NoError(t, err)
	require.JSONEq(t, `{"score":"9223372036854775807"}`, string(b))
}
