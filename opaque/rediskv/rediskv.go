// Package rediskv keeps opaque values on Redis: plain strings, changed under WATCH, MULTI and EXEC, without scripts and
// without a hash tag. It is for servers on which the scripts of package index are not wanted or not possible.
//
// WATCH tells that a key was written, not what was there when a token was read. So every value is stored behind a fresh
// random nonce, and the token is the nonce: equal tokens mean the same write, also for equal bytes and over a restart.
package rediskv

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/opaque"
)

// nonceSize is how many bytes stand before every value.
const nonceSize = 16

// maxValue is the longest string of Redis, less the nonce.
const maxValue = 512<<20 - nonceSize

// Store is an opaque store on Redis. It is safe for concurrent use; the client stays the caller's.
type Store struct{ rdb redis.UniversalClient }

// New makes a store of a client of one server, a Sentinel set or a cluster. It sends nothing yet. Writes are never sent
// twice, whatever the client's own options for retries say.
func New(rdb redis.UniversalClient) *Store { return &Store{rdb} }

// once is a command that go-redis must not send again after a timeout or a broken connection.
type once struct{ *redis.Cmd }

// NoRetry keeps go-redis from sending the command again.
func (once) NoRetry() bool { return true }

func newOnce(ctx context.Context, args ...any) once { return once{redis.NewCmd(ctx, args...)} }

// Get implements opaque.KV. One round trip.
func (s *Store) Get(ctx context.Context, k string) (opaque.Item, error) {
	if err := checkKey(k); err != nil {
		return opaque.Item{}, err
	}
	raw, err := s.rdb.Get(ctx, k).Bytes()
	if err != nil {
		return opaque.Item{}, judgeRead(err)
	}
	return split(raw)
}

// GetMany implements opaque.BatchGetter. One round trip; on a cluster one for each node, at once.
func (s *Store) GetMany(ctx context.Context, keys []string) ([]opaque.Item, error) {
	out := make([]opaque.Item, len(keys))
	if len(keys) == 0 {
		return out, nil
	}
	cmds := make([]*redis.StringCmd, len(keys))
	pipe := s.rdb.Pipeline()
	for i, k := range keys {
		if err := checkKey(k); err != nil {
			return nil, err
		}
		cmds[i] = pipe.Get(ctx, k)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, judgeRead(err)
	}
	for i, cmd := range cmds {
		raw, err := cmd.Bytes()
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return nil, judgeRead(err)
		default:
			if out[i], err = split(raw); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Add implements opaque.KV. One round trip.
func (s *Store) Add(ctx context.Context, k string, value []byte, expires time.Time) (opaque.Token, error) {
	if err := check(ctx, k, value); err != nil {
		return "", err
	}
	token, args := set(k, value, expires)
	cmd := newOnce(ctx, append(args, "nx")...)
	err := s.rdb.Process(ctx, cmd)
	switch {
	case errors.Is(err, redis.Nil):
		return "", opaque.ErrExists
	case err != nil:
		return "", judge(err)
	}
	return token, nil
}

// Swap implements opaque.KV. Three round trips: WATCH, GET, EXEC.
func (s *Store) Swap(
	ctx context.Context, k string, value []byte, expires time.Time, token opaque.Token,
) (opaque.Token, error) {
	if err := check(ctx, k, value); err != nil {
		return "", err
	}
	next, args := set(k, value, expires)
	return next, s.exec(ctx, k, token, args)
}

// Delete implements opaque.KV. Three round trips.
func (s *Store) Delete(ctx context.Context, k string, token opaque.Token) error {
	if err := check(ctx, k, nil); err != nil {
		return err
	}
	return s.exec(ctx, k, token, []any{"del", k})
}

// exec runs one command if the key still holds the write that token names.
func (s *Store) exec(ctx context.Context, k string, token opaque.Token, args []any) error {
	if token == "" {
		return opaque.ErrNoToken
	}
	sent := false
	err := s.rdb.Watch(ctx, func(tx *redis.Tx) error {
		if sent {
			// The client would try the transaction again, which may have been executed.
			return opaque.ErrUnknown
		}
		raw, err := tx.Get(ctx, k).Bytes()
		if err != nil {
			return judgeRead(err)
		}
		item, err := split(raw)
		switch {
		case err != nil:
			return err
		case item.Token != token:
			return opaque.ErrChanged
		}
		sent = true
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			return pipe.Process(ctx, newOnce(ctx, args...))
		})
		switch {
		case errors.Is(err, redis.TxFailedErr):
			return opaque.ErrChanged
		case err != nil:
			return judge(err)
		}
		return nil
	}, k)
	switch {
	case err == nil || sent || errors.Is(err, opaque.ErrChanged) || errors.Is(err, opaque.ErrNotFound):
		return err
	default:
		return fmt.Errorf("%w: %w", opaque.ErrUnavailable, err)
	}
}

// set makes the command that stores a value, and its token.
func set(k string, value []byte, expires time.Time) (opaque.Token, []any) {
	raw := make([]byte, nonceSize, nonceSize+len(value))
	_, _ = rand.Read(raw) // never fails
	token := opaque.Token(raw)
	args := []any{"set", k, append(raw, value...)}
	if !expires.IsZero() {
		args = append(args, "pxat", strconv.FormatInt(max(1, expires.UnixMilli()), 10))
	}
	return token, args
}

// split parts a stored string. What is shorter than a nonce was written by somebody else.
func split(raw []byte) (opaque.Item, error) {
	if len(raw) < nonceSize {
		return opaque.Item{}, errors.New("rediskv: the key holds a string that this package did not write")
	}
	return opaque.Item{Value: raw[nonceSize:], Token: opaque.Token(raw[:nonceSize])}, nil
}

// Limits implements opaque.KV.
func (s *Store) Limits(context.Context) (opaque.Limits, error) {
	return opaque.Limits{Keys: key.Redis, MaxValue: maxValue, MinLifetime: time.Millisecond}, nil
}

// Life implements opaque.Witness, from INFO. A server that keeps its data over a restart counts as having lost some: with
// every kind of persistence the last writes may be gone. CONFIG RESETSTAT looks like a loss, too. One round trip per
// primary.
func (s *Store) Life(ctx context.Context) (opaque.Life, error) {
	var mu sync.Mutex
	var runs []string
	var life opaque.Life
	err := s.eachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		var all strings.Builder
		for _, section := range []string{"server", "stats", "commandstats"} {
			text, err := node.Info(ctx, section).Result()
			if err != nil {
				return judgeRead(err)
			}
			all.WriteString(text)
		}
		mu.Lock()
		defer mu.Unlock()
		for lines := bufio.NewScanner(strings.NewReader(all.String())); lines.Scan(); {
			name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), ":")
			switch name {
			case "run_id":
				runs = append(runs, value)
			case "evicted_keys":
				n, _ := strconv.ParseUint(value, 10, 64)
				life.Evictions += n
			case "cmdstat_flushall", "cmdstat_flushdb":
				calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
				n, _ := strconv.ParseUint(calls, 10, 64)
				life.Flushes += n
			}
		}
		return nil
	})
	slices.Sort(runs)
	life.Run = strings.Join(runs, ",")
	return life, err
}

// Keys implements opaque.Lister, with SCAN.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var keys []string
		var mu sync.Mutex
		err := s.eachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
			it := node.Scan(ctx, 0, prefix+"*", 1000).Iterator()
			for it.Next(ctx) {
				mu.Lock()
				keys = append(keys, it.Val())
				mu.Unlock()
			}
			return it.Err()
		})
		if err != nil {
			yield("", judgeRead(err))
			return
		}
		slices.Sort(keys)
		for _, k := range slices.Compact(keys) {
			if !yield(k, nil) {
				return
			}
		}
	}
}

func (s *Store) eachPrimary(ctx context.Context, fn func(context.Context, redis.Cmdable) error) error {
	if cluster, ok := s.rdb.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return fn(ctx, node) })
	}
	return fn(ctx, s.rdb)
}

func checkKey(k string) error {
	if k == "" || len(k) > key.Redis.MaxKey() {
		return fmt.Errorf("%w: %d bytes, allowed are 1 to %d", opaque.ErrBadKey, len(k), key.Redis.MaxKey())
	}
	return nil
}

// check refuses what must not be sent.
func check(ctx context.Context, k string, value []byte) error {
	if err := checkKey(k); err != nil {
		return err
	}
	if len(value) > maxValue {
		return fmt.Errorf("%w: %d bytes, Redis takes %d", opaque.ErrTooLarge, len(value), maxValue)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", opaque.ErrUnavailable, err)
	}
	return nil
}
