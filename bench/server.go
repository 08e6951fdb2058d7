package bench

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/primaries"
)

const scanCount = 1000

// info sums the numbers of some fields of INFO over the servers; ok is false where one does not tell them.
func info(ctx context.Context, rdb redis.UniversalClient, section string, fields ...string) (sum float64, ok bool) {
	found := 0
	servers := 0
	err := primaries.Each(ctx, rdb, func(ctx context.Context, node redis.Cmdable) error {
		servers++
		text, err := node.Info(ctx, section).Result()
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if !slices.Contains(fields, name) {
				continue
			}
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			sum += n
			found++
		}
		return nil
	})
	return sum, err == nil && found == servers*len(fields)
}

// processor is the time that the server has spent, in microseconds.
func processor(ctx context.Context, rdb redis.UniversalClient) (float64, bool) {
	s, ok := info(ctx, rdb, "cpu", "used_cpu_user", "used_cpu_sys")
	return s * 1e6, ok
}

// dataset is how many bytes the data of the server takes.
func dataset(ctx context.Context, rdb redis.UniversalClient) (float64, bool) {
	return info(ctx, rdb, "memory", "used_memory_dataset")
}

// removeTime bounds the removal of the keys, which also runs after Ctrl-C.
const removeTime = 60 * time.Second

// remove takes every key with a prefix away.
func remove(ctx context.Context, rdb redis.UniversalClient, prefix string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	again := false
	for range 2 { // a second look: a write that was cut off may still have arrived
		again = false
		err := primaries.Each(ctx, rdb, func(ctx context.Context, node redis.Cmdable) error {
			for cursor := uint64(0); ; {
				keys, next, err := node.Scan(ctx, cursor, prefix+"*", scanCount).Result()
				if err != nil {
					return err
				}
				again = again || len(keys) > 0
				_, err = node.Pipelined(ctx, func(p redis.Pipeliner) error {
					for _, k := range keys {
						p.Unlink(ctx, k)
					}
					return nil
				})
				if err != nil {
					return err
				}
				if cursor = next; cursor == 0 {
					return nil
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if again {
		return errors.New("some are there again")
	}
	return nil
}
