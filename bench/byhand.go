package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/primaries"
)

// byHand keeps the same records with plain commands. Its keys are as long as those of the library.
type byHand struct {
	rdb    redis.UniversalClient
	prefix string
}

func newByHand(rdb redis.UniversalClient, owner string) byHand {
	return byHand{rdb, owner + ":hand:{hand}:"}
}

func (h byHand) record(id string) string { return h.prefix + id + ":v1" }
func (h byHand) status(s string) string  { return h.prefix + "-status.1:" + s + ":v1" }
func (h byHand) recent() string          { return h.prefix + "-recent.1:v1" }

// enter queues the commands that write a record with its entries.
func (h byHand) enter(ctx context.Context, p redis.Pipeliner, i item, raw []byte) {
	p.Set(ctx, h.record(i.ID), raw, 0)
	p.SAdd(ctx, h.status(i.Status), i.ID)
	p.ZAdd(ctx, h.recent(), redis.Z{Score: float64(i.At), Member: i.ID})
}

// put writes a record that is known to be new.
func (h byHand) put(ctx context.Context, i item) error {
	raw, err := json.Marshal(i)
	if err != nil {
		return err
	}
	_, err = h.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		h.enter(ctx, p, i, raw)
		return nil
	})
	return err
}

// change writes a record over the one that is there: fn makes the new one from it.
func (h byHand) change(ctx context.Context, id string, fn func(*item)) error {
	for {
		err := h.rdb.Watch(ctx, func(tx *redis.Tx) error {
			raw, err := tx.Get(ctx, h.record(id)).Bytes()
			if err != nil {
				return err
			}
			var i item
			if err := json.Unmarshal(raw, &i); err != nil {
				return err
			}
			old := i.Status
			fn(&i)
			if raw, err = json.Marshal(i); err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				if old != i.Status {
					p.SRem(ctx, h.status(old), id)
				}
				h.enter(ctx, p, i, raw)
				return nil
			})
			return err
		}, h.record(id))
		if !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
}

// putMany writes new records in one pipeline.
func (h byHand) putMany(ctx context.Context, items []item) error {
	_, err := h.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, i := range items {
			raw, err := json.Marshal(i)
			if err != nil {
				return err
			}
			h.enter(ctx, p, i, raw)
		}
		return nil
	})
	return err
}

// newest gives the records of the highest places.
func (h byHand) newest(ctx context.Context, n int64) ([]item, error) {
	ids, err := h.rdb.ZRevRange(ctx, h.recent(), 0, n-1).Result()
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = h.record(id)
	}
	raw, err := h.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, err
	}
	out := make([]item, len(raw))
	for i, r := range raw {
		text, ok := r.(string)
		if !ok {
			return nil, fmt.Errorf("%s: no record", keys[i])
		}
		if err := json.Unmarshal([]byte(text), &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readAll reads every record by SCAN and MGET, and gives their number.
func (h byHand) readAll(ctx context.Context) (int, error) {
	n := 0
	indexKeys := h.prefix + "-"
	err := primaries.Each(ctx, h.rdb, func(ctx context.Context, node redis.Cmdable) error {
		for cursor := uint64(0); ; {
			keys, next, err := node.Scan(ctx, cursor, h.prefix+"*", scanCount).Result()
			if err != nil {
				return err
			}
			records := keys[:0]
			for _, k := range keys {
				if !strings.HasPrefix(k, indexKeys) {
					records = append(records, k)
				}
			}
			if len(records) > 0 {
				raw, err := node.MGet(ctx, records...).Result()
				if err != nil {
					return err
				}
				n += len(raw)
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	return n, err
}
