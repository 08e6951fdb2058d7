package opaque_test

import (
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/opaque"
)

// schedules is how many worlds the ordinary run tries, and how many with LOCKSTEP_SOAK set.
const (
	schedules     = 200_000
	schedulesRace = 1_000 // under the race detector, which sees nothing here: tasks take turns
	schedulesSoak = 5_000_000
)

func TestNoScheduleLosesAnEntryOrLetsTwoRecordsHoldOneValue(t *testing.T) {
	if text := os.Getenv("LOCKSTEP_SIM_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		require.Empty(t, simulate(seed, simConfig{}, t.Logf))
		return
	}
	n := schedules
	switch {
	case os.Getenv("LOCKSTEP_SOAK") != "":
		n = schedulesSoak
	case redistest.Race:
		n = schedulesRace
	case testing.Short():
		n = schedules / 10
	}
	start := time.Now()
	for first := 0; first < n; first += schedules {
		seed, wrong, _ := search(uint64(first), uint64(min(schedules, n-first)), simConfig{})
		require.Empty(t, wrong, "replay with LOCKSTEP_SIM_SEED=%d", seed)
		t.Logf("%d schedules in %v", min(first+schedules, n), time.Since(start).Round(time.Millisecond))
	}
}

// search tries the seeds from first on until one shows a violation, or n have been tried.
func search(first, n uint64, cfg simConfig) (seed uint64, wrong string, tried uint64) {
	var next, count atomic.Uint64
	next.Store(first)
	var stop atomic.Bool
	var mu sync.Mutex
	var wg sync.WaitGroup
	// Worlds are small and short-lived.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !stop.Load() {
				s := next.Add(1) - 1
				if s >= first+n {
					return
				}
				text := simulate(s, cfg, nil)
				count.Add(1)
				if text == "" {
					continue
				}
				stop.Store(true)
				mu.Lock()
				if wrong == "" || s < seed {
					seed, wrong = s, text
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return seed, wrong, count.Load()
}

// Without a safeguard the simulator has to find the damage; else neither the safeguard nor the simulator is worth anything.
func TestTheSimulatorFindsTheDamageOfEverySafeguardThatIsTakenAway(t *testing.T) {
	// Where only a rare schedule shows the damage, the search begins shortly before it, and in full with LOCKSTEP_SOAK set.
	begin := map[string]uint64{"fresh write ids": 20_000, "repeat only the undone": 20_000}
	if os.Getenv("LOCKSTEP_SOAK") != "" {
		begin = nil
	}
	try := func(name string, cfg simConfig) {
		t.Run(name, func(t *testing.T) {
			seed, wrong, tried := search(begin[name], schedules, cfg)
			require.NotEmpty(t, wrong, "%d schedules found nothing", tried)
			t.Logf("schedule %d: %s", seed, wrong)
		})
	}
	if redistest.Race {
		t.Skip("under the race detector this takes minutes and sees nothing more: tasks take turns")
	}
	for _, name := range slices.Sorted(maps.Keys(opaque.Safeguards)) {
		try(name, simConfig{without: opaque.Safeguards[name]})
	}
	try("tokens of one life", simConfig{bare: true})
}
