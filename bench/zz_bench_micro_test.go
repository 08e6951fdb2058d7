package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func cpu() float64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Sec+r.Stime.Sec)*1e6 + float64(r.Utime.Usec+r.Stime.Usec)
}

func TestMicro(t *testing.T) {
	url := os.Getenv("MICRO_URL")
	if url == "" {
		t.Skip()
	}
	o, _ := redis.ParseURL(url)
	rdb := redis.NewClient(o)
	ctx := context.Background()
	w, err := Open(ctx, rdb, fmt.Sprintf("micro%d", os.Getpid()), 100000)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(ctx)
	d := 1500 * time.Millisecond
	side := os.Getenv("MICRO_SIDE")
	rounds := 5
	for _, c := range w.Cases() {
		if c.whole || !strings.Contains(c.Name, os.Getenv("MICRO_CASE")) {
			continue
		}
		for r := 0; r < rounds; r++ {
			for i, do := range []func(context.Context) (int, error){c.Ours, c.Theirs} {
				if side != "" && side != []string{"ours", "theirs"}[i] {
					continue
				}
				before := cpu()
				tn, err := w.turn(ctx, c, do, d)
				if err != nil {
					t.Fatal(err)
				}
				cl := (cpu() - before) / (tn.rate * d.Seconds())
				fmt.Printf("%-40s %s %7.0f/s wall %5.1f server %5.1f client %5.1f\n", c.Name, []string{"ours  ", "theirs"}[i], tn.rate, 1e6/tn.rate, tn.micros, cl)
			}
		}
	}
}
