// Package indextest opens collections for the tests of a program that uses Lockstep: on a server inside the test, with a
// clock that the test moves, and with a check at the end that every index says exactly what the records say.
package indextest

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
	"github.com/lockstep-go/lockstep/repair"
)

// Store is an embedded server with a clock of its own. It lives as long as its test.
type Store struct {
	mini *miniredis.Miniredis
	now  time.Time
}

// Start starts an empty store. Its clock stands still until Advance moves it.
func Start(t testing.TB) *Store {
	t.Helper()
	s := &Store{mini: redistest.Mini(t).Mini, now: time.Now().Truncate(time.Millisecond)}
	s.mini.ClockTTL(true)
	s.mini.SetTime(s.now)
	return s
}

// Addr is the address of the store, for clients of the test's own.
func (s *Store) Addr() string { return s.mini.Addr() }

// Now is the time on the store's clock.
func (s *Store) Now() time.Time { return s.now }

// Advance moves the store's clock forward: what is due by then has expired.
func (s *Store) Advance(d time.Duration) {
	s.now = s.now.Add(d)
	s.mini.SetTime(s.now)
}

// Open opens an entity type on a store of its own. At the end of the test every index is held against the records:
// a missing, stale or orphaned entry fails the test.
func Open[T any](t testing.TB, e *index.Entity[T]) *index.Collection[T] {
	t.Helper()
	return OpenOn(t, Start(t), e)
}

// OpenOn opens an entity type on a store that the test shares between several, or whose clock it moves.
func OpenOn[T any](t testing.TB, s *Store, e *index.Entity[T], o ...index.OpenOptions) *index.Collection[T] {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	redistest.Checked(rdb, lua.Sources)
	c, err := index.Open(context.Background(), rdb, e, o...)
	if err != nil {
		t.Fatalf("open %s: %v", e, err)
	}
	t.Cleanup(func() { Verify(t, c) })
	return c
}

// Verify fails the test unless every index of the collection says exactly what the records say. It reads every record and
// every index key. What an expired record has left is no fault: queries hide it until it is collected.
func Verify[T any](t testing.TB, c *index.Collection[T]) {
	t.Helper()
	report, err := repair.Verify(context.Background(), c, repair.Options{})
	if err != nil {
		t.Errorf("verify %s: %v", c.Entity(), err)
	}
	for _, f := range report.Findings {
		t.Errorf("verify %s: %s: index %s, id %q, key %s %s", c.Entity(), f.Kind, f.Index, f.ID, f.Key, f.Detail)
	}
}
