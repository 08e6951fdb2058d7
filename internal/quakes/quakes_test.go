package quakes_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/quakes"
)

func TestEveryEarthquakeIsThereOnce(t *testing.T) {
	const published = 1707 // by the feed; a cut or merged file shows here

	seen := make(map[string]bool, published)
	for line := range quakes.Lines() {
		var event struct {
			ID string `json:"id"`
		}
		require.NoError(t, json.Unmarshal(line, &event), "line %d: %s", len(seen)+1, line)
		require.NotEmpty(t, event.ID, "line %d", len(seen)+1)
		require.False(t, seen[event.ID], "%s twice", event.ID)
		seen[event.ID] = true
	}
	require.Len(t, seen, published)
	require.Equal(t, published, quakes.Count())
}

func TestLinesStopsWhenTheCallerDoes(t *testing.T) {
	n := 0
	for range quakes.Lines() {
		n++
		if n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)
}

func TestALineThatIsChangedDoesNotChangeTheData(t *testing.T) {
	clear(slices.Collect(quakes.Lines())[0])
	require.True(t, json.Valid(slices.Collect(quakes.Lines())[0]))
}
