package index

import "context"

// Result is one record of GetMany, or why there is none.
type Result[T any] struct {
	Record T
	Err    error
}

// Get gives the record of an id, ErrNotFound if there is none or it has expired. One round trip, one GET.
func (c *Collection[T]) Get(ctx context.Context, id string) (T, error) {
	out, err := c.GetMany(ctx, []string{id})
	if err != nil {
		var zero T
		return zero, err
	}
	return out[0].Record, out[0].Err
}

// GetMany gives the records of ids, aligned with them; a missing one has ErrNotFound in its place. The records are read in
// batches of some hundred, each batch at one instant. What is no record at a record's key counts as
// missing. An error of the store is returned instead of results.
func (c *Collection[T]) GetMany(ctx context.Context, ids []string) ([]Result[T], error) {
	raw, err := c.GetEncoded(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]Result[T], len(ids))
	for i, r := range raw {
		if r.Err != nil {
			out[i].Err = r.Err
			continue
		}
		rec, err := c.decode(ids[i], r.Record)
		out[i] = Result[T]{rec, c.fail("get", ids[i], "", err)}
	}
	return out, nil
}

// GetEncoded gives the stored bytes of records, aligned with ids, as GetMany gives the records.
func (c *Collection[T]) GetEncoded(ctx context.Context, ids []string) ([]Result[[]byte], error) {
	out := make([]Result[[]byte], len(ids))
	for from := 0; from < len(ids); from += batchRecords {
		to := min(from+batchRecords, len(ids))
		keys := make([]string, 0, to-from)
		for _, id := range ids[from:to] {
			k, err := c.part.Record(id)
			if err != nil {
				return nil, c.fail("get", id, "", err)
			}
			keys = append(keys, k)
		}
		values, err := c.run.Values(ctx, keys)
		if err != nil {
			return nil, c.fail("get", ids[from], "", err)
		}
		for i, v := range values {
			id := ids[from+i]
			switch v := v.(type) {
			case string:
				out[from+i].Record = []byte(v)
			default:
				out[from+i].Err = c.fail("get", id, "", ErrNotFound)
			}
		}
	}
	return out, nil
}
