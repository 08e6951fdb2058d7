package opaque

import (
	"context"
	"errors"
	"iter"

	"github.com/lockstep-go/lockstep/index"
)

// Store is a Collection of any type, for programs that handle declarations without their types. Records go in and out as
// the bytes of their codec.
type Store struct{ core *core }

// Declared is the declaration that was opened.
func (s *Store) Declared() index.Declared { return s.core.entity }

// Delete removes a record and then every entry that was written for it. A record that does not exist is no error.
//
// Cost: two round trips, two for each value of an index and each unique value, and two for the index of all ids.
func (s *Store) Delete(ctx context.Context, id string) error {
	_, err := s.core.delete(ctx, id)
	return s.core.fail("delete", id, "", err)
}

// DeleteMany deletes records one after another. The outcomes are aligned with ids, and tell in Applied whether there was
// something to delete. The error joins those of all ids.
func (s *Store) DeleteMany(ctx context.Context, ids []string) ([]index.Outcome, error) {
	out := make([]index.Outcome, len(ids))
	var errs []error
	for i, id := range ids {
		deleted, err := s.core.delete(ctx, id)
		err = s.core.fail("delete", id, "", err)
		out[i] = index.Outcome{ID: id, Applied: deleted, Err: err}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// PutEncoded decodes records and puts them, one after another. The outcomes are aligned with raw; a record that does not
// decode is an outcome with an error. The codec must find the id in the bytes.
func (s *Store) PutEncoded(ctx context.Context, raw [][]byte) ([]index.Outcome, error) {
	out := make([]index.Outcome, len(raw))
	var errs []error
	for i, b := range raw {
		out[i] = s.putEncoded(ctx, b)
		if out[i].Err != nil {
			errs = append(errs, out[i].Err)
		}
	}
	return out, errors.Join(errs...)
}

func (s *Store) putEncoded(ctx context.Context, raw []byte) index.Outcome {
	rec, err := s.core.entity.DecodeOf("", raw)
	if err != nil {
		return index.Outcome{Err: s.core.fail("put", "", "", err)}
	}
	id, err := s.core.entity.IDOf(rec)
	if err == nil {
		err = s.core.store(ctx, "put", put, rec)
	}
	return index.Outcome{ID: id, Applied: err == nil, Err: s.core.fail("put", id, "", err)}
}

// Inspect says what is wrong with the bytes of a record by itself, without asking the store, and gives its id.
func (s *Store) Inspect(raw []byte) (id string, err error) {
	rec, err := s.core.entity.DecodeOf("", raw)
	if err != nil {
		return "", s.core.fail("put", "", "", err)
	}
	if id, err = s.core.entity.IDOf(rec); err != nil {
		return "", s.core.fail("put", "", "", err)
	}
	to, err := s.core.making(s.core.schema.Load(), id, rec, s.core.expiry())
	if err == nil {
		a := &attempt{c: s.core, s: s.core.schema.Load(), id: id}
		err = a.checkNew(to)
	}
	return id, s.core.fail("put", id, "", err)
}

// GetEncoded gives the stored bytes of records, aligned with ids; a missing one has ErrNotFound in its place.
func (s *Store) GetEncoded(ctx context.Context, ids []string) ([]index.Result[[]byte], error) {
	envs, err := s.core.getRecords(ctx, ids)
	if err != nil {
		return nil, s.core.fail("get", "", "", err)
	}
	out := make([]index.Result[[]byte], len(ids))
	for i, env := range envs {
		if env == nil {
			out[i].Err = s.core.fail("get", ids[i], "", ErrNotFound)
			continue
		}
		out[i].Record = env.body
	}
	return out, nil
}

// FindEncoded gives the stored bytes of the records that have a value which text can stand for in an index, as
// Collection.Find gives the records.
func (s *Store) FindEncoded(ctx context.Context, name, text string) iter.Seq2[index.Encoded, error] {
	return func(yield func(index.Encoded, error) bool) {
		values, err := s.core.entity.ReadingsOf(name, text)
		if err != nil {
			yield(index.Encoded{}, s.core.fail("find", "", name, err))
			return
		}
		for f, err := range s.core.find(ctx, name, values) {
			if !yield(index.Encoded{ID: f.id, Bytes: f.body}, err) || err != nil {
				return
			}
		}
	}
}

// FindIDs gives the ids of what FindEncoded gives, at the same cost.
func (s *Store) FindIDs(ctx context.Context, name, text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for e, err := range s.FindEncoded(ctx, name, text) {
			if !yield(e.ID, err) || err != nil {
				return
			}
		}
	}
}

// CountOf counts what FindEncoded gives, at the same cost.
func (s *Store) CountOf(ctx context.Context, name, text string) (int64, error) {
	var n int64
	for _, err := range s.FindEncoded(ctx, name, text) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// RecordKey is the key at which the record of an id is stored.
func (s *Store) RecordKey(id string) (string, error) { return s.core.recordKey(id) }

// Verify looks at every record that it can reach and at the entries that the record needs, then at the lists, and changes
// nothing. It may run under load: what it reports as missing was missing while the record did not move. It reaches the ids
// of the all-ids index, those of o.IDs, and on a store that lists its keys those too.
//
// Cost: some round trips for every record and entry, one after another.
func (s *Store) Verify(ctx context.Context, o RunOptions) (*Report, error) {
	return s.core.verify(ctx, o)
}

// Run looks as Verify does and puts right what it finds: missing entries are restored, records of an older declaration are
// written again under the new one, dead entries and abandoned reservations are removed once they are older than
// Options.Grace. It may run under load and be repeated. Conflicts of unique values are reported and left to the application.
//
// Where everything was put right, the indexes are ready afterwards: a new index that was being built, and after a loss of
// data the suspect ones. After a partial loss, an eviction for example, the index of all ids may have lost ids itself; then
// they stay suspect unless o.IDs gives all ids or o.Trust vouches for them.
//
// Building waits first until no client can be at work that does not know the new index: Options.Lease and PendingLifetime
// after the declaration came into force.
func (s *Store) Run(ctx context.Context, o RunOptions) (*Report, error) { return s.core.run(ctx, o) }

// Outcome decides a write that ended with an *UnknownError: true if the record shows it. False means that the record does
// not and that the write cannot arrive any more: it never happened, or has been overwritten since.
func (s *Store) Outcome(ctx context.Context, id string, w WriteID) (committed bool, err error) {
	committed, err = s.core.outcome(ctx, id, w)
	return committed, s.core.fail("outcome", id, "", err)
}

// Suspect gives the reason why the indexes are suspect, "" if they are not, as of now.
func (s *Store) Suspect(ctx context.Context) (reason string, err error) {
	now, err := s.core.renew(ctx, false)
	if err != nil {
		return "", s.core.fail("suspect", "", "", err)
	}
	return now.lost, nil
}
