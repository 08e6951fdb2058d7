package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/redis/go-redis/v9"
)

// byHand are the keys of one of the hand-written contenders.
type byHand struct{ prefix string }

func newByHand(owner, name string) byHand { return byHand{owner + ":" + name + ":{" + name + "}:"} }

func (h byHand) record(id string) string { return h.prefix + "order:" + id }
func (h byHand) status(of string) string { return h.prefix + "status:" + of }
func (h byHand) totals() string          { return h.prefix + "total" }

// current reads the record that is to be replaced; ok is false if there is none.
func (h byHand) current(ctx context.Context, rdb redis.Cmdable, id string) (o order, ok bool, err error) {
	raw, err := rdb.Get(ctx, h.record(id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return o, false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	return o, err == nil, err
}

// put is how people write it: read the old value, move the entry, store the record. It works on a client, command by
// command, and on a pipeline.
func (h byHand) put(ctx context.Context, rdb redis.Cmdable, old order, existed bool, o order) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if existed && old.Status != o.Status {
		if err := rdb.SRem(ctx, h.status(old.Status), o.ID).Err(); err != nil {
			return err
		}
	}
	if err := rdb.SAdd(ctx, h.status(o.Status), o.ID).Err(); err != nil {
		return err
	}
	if err := rdb.ZAdd(ctx, h.totals(), redis.Z{Score: float64(o.Total), Member: o.ID}).Err(); err != nil {
		return err
	}
	return rdb.Set(ctx, h.record(o.ID), raw, 0).Err()
}

func (h byHand) remove(ctx context.Context, rdb redis.Cmdable, old order) error {
	if err := rdb.SRem(ctx, h.status(old.Status), old.ID).Err(); err != nil {
		return err
	}
	if err := rdb.ZRem(ctx, h.totals(), old.ID).Err(); err != nil {
		return err
	}
	return rdb.Del(ctx, h.record(old.ID)).Err()
}

func (h byHand) read(ctx context.Context, rdb redis.UniversalClient, all []string) (stored, error) {
	s := newStored()
	for _, status := range raceStatuses {
		if err := s.add(ctx, rdb, h.status(status), status); err != nil {
			return s, err
		}
	}
	for _, k := range append(all, h.totals()) {
		if err := s.add(ctx, rdb, k, ""); err != nil {
			return s, err
		}
	}
	return s, nil
}

// handWrite is one put or remove of a contender: change makes its commands, given the record that was there.
type handWrite func(ctx context.Context, rdb redis.UniversalClient, id string, change func(redis.Cmdable, order, bool) error) error

// handWritten is a contender whose writes are made by run.
func handWritten(owner, key, name string, steps int, run func(byHand) handWrite) contender {
	h := newByHand(owner, key)
	do := run(h)
	return contender{
		name: name, steps: steps,
		writer: func(_ context.Context, rdb redis.UniversalClient) (writer, error) {
			return writer{
				put: func(ctx context.Context, o order) error {
					return do(ctx, rdb, o.ID, func(to redis.Cmdable, old order, existed bool) error {
						return h.put(ctx, to, old, existed, o)
					})
				},
				remove: func(ctx context.Context, id string) error {
					return do(ctx, rdb, id, func(to redis.Cmdable, old order, existed bool) error {
						if !existed {
							return nil
						}
						return h.remove(ctx, to, old)
					})
				},
			}, nil
		},
		read: func(ctx context.Context, rdb redis.UniversalClient) (stored, error) {
			var records []string
			for _, id := range raceIDs() {
				records = append(records, h.record(id))
			}
			return h.read(ctx, rdb, records)
		},
	}
}

// plainly sends one command after another.
func plainly(h byHand) handWrite {
	return func(ctx context.Context, rdb redis.UniversalClient, id string, change func(redis.Cmdable, order, bool) error) error {
		old, existed, err := h.current(ctx, rdb, id)
		if err != nil {
			return err
		}
		return change(rdb, old, existed)
	}
}

// inMulti reads, then sends the commands in MULTI and EXEC.
func inMulti(h byHand) handWrite {
	return func(ctx context.Context, rdb redis.UniversalClient, id string, change func(redis.Cmdable, order, bool) error) error {
		old, existed, err := h.current(ctx, rdb, id)
		if err != nil {
			return err
		}
		_, err = rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { return change(p, old, existed) })
		return err
	}
}

// watching reads under WATCH, sends the commands in MULTI and EXEC, and begins again where somebody came between.
func watching(h byHand) handWrite {
	return func(ctx context.Context, rdb redis.UniversalClient, id string, change func(redis.Cmdable, order, bool) error) error {
		for {
			err := rdb.Watch(ctx, func(tx *redis.Tx) error {
				old, existed, err := h.current(ctx, tx, id)
				if err != nil {
					return err
				}
				_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return change(p, old, existed) })
				return err
			}, h.record(id))
			if !errors.Is(err, redis.TxFailedErr) {
				return err
			}
		}
	}
}
