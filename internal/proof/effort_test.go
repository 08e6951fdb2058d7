package proof

import (
	"flag"
	"io"
	"iter"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	redis.SetLogger(quiet{log.New(io.Discard, "", 0)}) // every cut connection would be a line
	goleak.VerifyTestMain(m)
}

// soaking is how long all of it may take, 0 for the short form.
func soaking(t testing.TB) time.Duration {
	text := os.Getenv("SOAK_MINUTES")
	if text == "" {
		return 0
	}
	minutes, err := strconv.ParseFloat(text, 64)
	if err != nil || minutes <= 0 {
		t.Fatalf("SOAK_MINUTES=%s", text)
	}
	return time.Duration(minutes * float64(time.Minute))
}

// seeds gives the seeds of the rounds of a test: short of them in the short form; in soak at least long, and more until the
// test's share of the minutes, in hundredths, is over. A failure says how to begin with its seed.
func seeds(t *testing.T, short, long, share int) iter.Seq[uint64] {
	t.Helper()
	base := rand.Uint64() >> 16
	if text := os.Getenv("PROOF_SEED"); text != "" {
		var err error
		if base, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("PROOF_SEED=%s", text)
		}
	}
	least, until := short, time.Now()
	if soak := soaking(t); soak > 0 {
		least, until = long, until.Add(soak*time.Duration(share)/100)
	}
	return func(yield func(uint64) bool) {
		seed, rounds := base, 0
		defer func() {
			if t.Failed() {
				t.Logf("again: PROOF_SEED=%d go test -run '^%s$' ./internal/proof", seed, t.Name())
			} else {
				t.Logf("%d rounds from seed %d", rounds, base)
			}
		}()
		for rounds < least || time.Now().Before(until) {
			if !yield(seed) {
				return
			}
			rounds++
			seed++
		}
	}
}

// random is a source of choices that a seed repeats.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }
