package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestABenchmarkReportsEveryBarAndLeavesNoKeyBehind(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := &tool{t: t}
		flags := []string{"bench", "--redis", s.URL(), "--records", "400", "--rounds", "1", "--round", "2ms"}
		var results []map[string]any
		require.NoError(t, json.Unmarshal([]byte(c.fine(append(flags, "--json")...)), &results))
		bars := map[string]float64{
			"put new, 32 callers": 0.7, "put that changes a value, 32 callers": 1.2, "update": 1.4, "put many by 200": 0.8,
			"newest 20 with records": 0.85, "verify": 0.4, "memory": 1.25,
			"put that changes what others wrote": 1, "update of what others wrote": 1,
		}
		if s.Name == redistest.NameMini {
			delete(bars, "memory") // it does not tell
		}
		got := map[string]float64{}
		for _, r := range results {
			got[r["name"].(string)] = r["bar"].(float64)
			for _, field := range []string{"per_s", "baseline", "baseline_per_s", "ratio"} {
				require.Contains(t, r, field)
			}
		}
		require.Equal(t, bars, got)

		out := c.fine(flags...)
		require.Regexp(t, `\nput new, 32 callers +\d+ +\d+ +records/s +\d+\.\d\d +>= 0\.70 +(holds|missed) `, out)
		require.Empty(t, s.Keys(t))
	})
}

func TestABenchmarkOfTooFewRecordsIsRefused(t *testing.T) {
	c := &tool{t: t}
	c.refused(2, []string{"bench", "--redis", redistest.Mini(t).URL(), "--records", "1"}, "1 records: at least 200")
}
