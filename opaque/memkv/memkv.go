// Package memkv is an opaque store inside the process, for tests: of programs that use package opaque, and of package
// opaque itself. Every call can be watched, refused, cut off or delayed by a hook, keys can be evicted and the store
// restarted, and its clock is the caller's.
package memkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/opaque"
)

// Options tune a store. The zero value is a store without limits, hooks, or a clock of its own.
type Options struct {
	// Now is the clock by which values expire, time.Now by default.
	Now func() time.Time
	// MaxValue is the largest value, 0 for no limit.
	MaxValue int
	// Keys are the rules for keys; those of Redis by default.
	Keys key.Rules
	// Hook, if set, decides what becomes of every call. It runs in the goroutine of the call, without a lock held.
	Hook func(ctx context.Context, call Call) Verdict
	// BareTokens makes tokens numbers that start again at 1 after Restart, as those of memcached do. Without it a token
	// names the run of the store too and is refused in another one.
	BareTokens bool
}

// Op is what a call does.
type Op string

// The calls of a store.
const (
	Get    Op = "get"
	Add    Op = "add"
	Swap   Op = "swap"
	Delete Op = "delete"
	Life   Op = "life"
)

// Call is one call as a hook sees it.
type Call struct {
	Op      Op
	Key     string
	Value   []byte
	Expires time.Time
	Token   opaque.Token
}

// Verdict is what a hook decides.
type Verdict int

// The verdicts.
const (
	Do       Verdict = iota // the call happens and its caller learns what came of it
	Refuse                  // it does not happen: opaque.ErrUnavailable
	CutFirst                // it does not happen, and the caller cannot know: opaque.ErrUnknown
	CutAfter                // it happens, and the caller cannot know
)

// Store is a store. It is safe for concurrent use.
type Store struct {
	o Options

	mu    sync.Mutex
	items map[string]item
	last  uint64
	life  opaque.Life
	run   int
}

type item struct {
	value   []byte
	expires time.Time
	token   opaque.Token
}

// New makes an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{o: o}
	s.start()
	return s
}

func (s *Store) start() {
	s.items = map[string]item{}
	s.last = 0
	s.run++
	s.life = opaque.Life{Run: strconv.Itoa(s.run)}
}

var errCut = errors.New("the connection was cut")

// call lets the hook decide, and runs do unless it forbids it.
func (s *Store) call(ctx context.Context, c Call, do func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", opaque.ErrUnavailable, err)
	}
	verdict := Do
	if s.o.Hook != nil {
		verdict = s.o.Hook(ctx, c)
	}
	switch verdict {
	case Refuse:
		return fmt.Errorf("%w: refused", opaque.ErrUnavailable)
	case CutFirst:
		return fmt.Errorf("%w: %w", opaque.ErrUnknown, errCut)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := do()
	if verdict == CutAfter {
		return fmt.Errorf("%w: %w", opaque.ErrUnknown, errCut)
	}
	return err
}

// at gives what is at a key and not past its time.
func (s *Store) at(k string) (item, bool) {
	it, ok := s.items[k]
	if ok && !it.expires.IsZero() && !s.o.Now().Before(it.expires) {
		delete(s.items, k)
		return item{}, false
	}
	return it, ok
}

func (s *Store) put(k string, value []byte, expires time.Time) opaque.Token {
	s.last++
	t := opaque.Token(strconv.FormatUint(s.last, 10))
	if !s.o.BareTokens {
		t = opaque.Token(s.life.Run+".") + t
	}
	s.items[k] = item{slices.Clone(value), expires, t}
	return t
}

// held checks that a token names what is at a key.
func (s *Store) held(k string, t opaque.Token) error {
	it, ok := s.at(k)
	switch {
	case !ok:
		return opaque.ErrNotFound
	case it.token != t:
		return opaque.ErrChanged
	}
	return nil
}

func (s *Store) check(k string, value []byte) error {
	switch {
	case k == "" || len(k) > s.o.Keys.MaxKey():
		return fmt.Errorf("%w: %d bytes", opaque.ErrBadKey, len(k))
	case s.o.Keys == key.Memcached && strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return fmt.Errorf("%w: spaces or control characters", opaque.ErrBadKey)
	case s.o.MaxValue > 0 && len(value) > s.o.MaxValue:
		return fmt.Errorf("%w: %d bytes, the store takes %d", opaque.ErrTooLarge, len(value), s.o.MaxValue)
	}
	return nil
}

// Get implements opaque.KV.
func (s *Store) Get(ctx context.Context, k string) (out opaque.Item, err error) {
	if err := s.check(k, nil); err != nil {
		return out, err
	}
	err = s.call(ctx, Call{Op: Get, Key: k}, func() error {
		it, ok := s.at(k)
		if !ok {
			return opaque.ErrNotFound
		}
		out = opaque.Item{Value: slices.Clone(it.value), Token: it.token}
		return nil
	})
	return out, err
}

// Add implements opaque.KV.
func (s *Store) Add(ctx context.Context, k string, value []byte, expires time.Time) (t opaque.Token, err error) {
	if err := s.check(k, value); err != nil {
		return "", err
	}
	err = s.call(ctx, Call{Op: Add, Key: k, Value: value, Expires: expires}, func() error {
		if _, ok := s.at(k); ok {
			return opaque.ErrExists
		}
		t = s.put(k, value, expires)
		return nil
	})
	return t, err
}

// Swap implements opaque.KV.
func (s *Store) Swap(
	ctx context.Context, k string, value []byte, expires time.Time, token opaque.Token,
) (t opaque.Token, err error) {
	if err := s.check(k, value); err != nil {
		return "", err
	}
	if token == "" {
		return "", opaque.ErrNoToken
	}
	err = s.call(ctx, Call{Swap, k, value, expires, token}, func() error {
		if err := s.held(k, token); err != nil {
			return err
		}
		t = s.put(k, value, expires)
		return nil
	})
	return t, err
}

// Delete implements opaque.KV.
func (s *Store) Delete(ctx context.Context, k string, token opaque.Token) error {
	if err := s.check(k, nil); err != nil {
		return err
	}
	if token == "" {
		return opaque.ErrNoToken
	}
	return s.call(ctx, Call{Op: Delete, Key: k, Token: token}, func() error {
		if err := s.held(k, token); err != nil {
			return err
		}
		delete(s.items, k)
		return nil
	})
}

// Limits implements opaque.KV.
func (s *Store) Limits(context.Context) (opaque.Limits, error) {
	return opaque.Limits{Keys: s.o.Keys, MaxValue: s.o.MaxValue}, nil
}

// Life implements opaque.Witness.
func (s *Store) Life(ctx context.Context) (life opaque.Life, err error) {
	err = s.call(ctx, Call{Op: Life}, func() error {
		life = s.life
		return nil
	})
	return life, err
}

// Keys implements opaque.Lister: the keys that begin with prefix, sorted. The hook does not see it.
func (s *Store) Keys(_ context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s.mu.Lock()
		var keys []string
		for k := range s.items {
			if _, ok := s.at(k); ok && strings.HasPrefix(k, prefix) {
				keys = append(keys, k)
			}
		}
		s.mu.Unlock()
		slices.Sort(keys)
		for _, k := range keys {
			if !yield(k, nil) {
				return
			}
		}
	}
}

// Apply runs a call that a hook has seen, as if it arrived now: the late arrival of one that was cut off. Nobody learns
// what came of it.
func (s *Store) Apply(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.Op {
	case Add:
		if _, ok := s.at(c.Key); !ok {
			s.put(c.Key, c.Value, c.Expires)
		}
	case Swap:
		if s.held(c.Key, c.Token) == nil {
			s.put(c.Key, c.Value, c.Expires)
		}
	case Delete:
		if s.held(c.Key, c.Token) == nil {
			delete(s.items, c.Key)
		}
	}
}

// Evict throws a key away, as a store without memory does.
func (s *Store) Evict(k string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.items[k]; ok {
		delete(s.items, k)
		s.life.Evictions++
	}
}

// Restart loses everything; tokens start again.
func (s *Store) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
}

// Flush removes every key. Tokens go on.
func (s *Store) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.items)
	s.life.Flushes++
}

// Stored is a value with its expiry, for tests that look at the store itself.
type Stored struct {
	Value   []byte
	Expires time.Time
}

// Peek gives what is at a key. The hook does not see it.
func (s *Store) Peek(k string) (Stored, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.at(k)
	return Stored{it.value, it.expires}, ok
}
