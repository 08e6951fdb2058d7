package lua

import (
	"context"
	"errors"
)

// Look loads records with their rows as Read does, without their time to live and by plain commands in MULTI, which costs
// the server half. ok is false where a record needs a closer look: one that is missing, of a foreign type, or behind an
// error. Read tells then what there is.
func (r *Runner) Look(ctx context.Context, meta, manifest string, records, ids []string) (out []Loaded, seq int64, ok bool) {
	if r.noLook.Load() {
		return nil, 0, false
	}
	rows, values := make([]any, 0, 2+len(ids)), make([]any, 0, 1+len(ids))
	rows = append(rows, "hmget", manifest)
	values = append(values, "mget")
	for i := range ids {
		rows = append(rows, &ids[i])
		values = append(values, &records[i])
	}
	// One after another in a pipeline would not do: a cluster client may send parts of it to other nodes or again, and a
	// row that is newer than the value beside it would let an update overwrite what it has not seen.
	tx := r.rdb.TxPipeline()
	counter, row, value := tx.Do(ctx, "hget", meta, "seq"), tx.Do(ctx, rows...), tx.Do(ctx, values...)
	err := Await(ctx, func() error {
		_, err := tx.Exec(ctx)
		return err
	})
	if err != nil {
		if f, cause := judge(err); f == refused && errors.Is(cause, ErrDenied) {
			r.noLook.Store(true)
		}
		return nil, 0, false
	}
	var texts, contents reply
	texts.list, _ = row.Val().([]any)
	contents.list, _ = value.Val().([]any)
	out = make([]Loaded, len(ids))
	for i := range ids {
		l := &out[i]
		l.TTL = -1
		l.Row, l.HasRow = texts.optional(i)
		if l.Value, l.HasValue = contents.optional(i); !l.HasValue {
			return nil, 0, false
		}
	}
	return out, reply{list: []any{counter.Val()}}.number(0), true
}
