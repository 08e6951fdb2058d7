package opaque_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memkv"
)

// renamed is a store whose tokens have other names: any that are different.
type renamed struct {
	*memkv.Store
	name func(n int) opaque.Token

	mu    sync.Mutex
	given map[opaque.Token]opaque.Token // of the store -> ours
	real  map[opaque.Token]opaque.Token
}

func newRenamed(name func(n int) opaque.Token) *renamed {
	return &renamed{Store: memkv.New(memkv.Options{}), name: name, given: map[opaque.Token]opaque.Token{}, real: map[opaque.Token]opaque.Token{}}
}

func (r *renamed) out(t opaque.Token) opaque.Token {
	runtime.Gosched() // let the others in between
	r.mu.Lock()
	defer r.mu.Unlock()
	if t == "" {
		return ""
	}
	ours, ok := r.given[t]
	if !ok {
		ours = r.name(len(r.given))
		r.given[t], r.real[ours] = ours, t
	}
	return ours
}

func (r *renamed) in(t opaque.Token) opaque.Token {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.real[t]
}

func (r *renamed) Get(ctx context.Context, k string) (opaque.Item, error) {
	item, err := r.Store.Get(ctx, k)
	item.Token = r.out(item.Token)
	return item, err
}

func (r *renamed) Add(ctx context.Context, k string, v []byte, expires time.Time) (opaque.Token, error) {
	t, err := r.Store.Add(ctx, k, v, expires)
	return r.out(t), err
}

func (r *renamed) Swap(ctx context.Context, k string, v []byte, expires time.Time, t opaque.Token) (opaque.Token, error) {
	t, err := r.Store.Swap(ctx, k, v, expires, r.in(t))
	return r.out(t), err
}

func (r *renamed) Delete(ctx context.Context, k string, t opaque.Token) error {
	return r.Store.Delete(ctx, k, r.in(t))
}

// Tokens are unique and have no order: whichever way they sort, writers and queries come to the same end.
func TestTokensThatSortBackwardsOrAtRandomChangeNothing(t *testing.T) {
	for name, token := range map[string]func(n int) opaque.Token{
		"upwards":   func(n int) opaque.Token { return opaque.Token(fmt.Sprintf("%012d", n)) },
		"backwards": func(n int) opaque.Token { return opaque.Token(fmt.Sprintf("%012d", 999_999_999_999-n)) },
		"at random": func(int) opaque.Token { return opaque.Token(rand.Text()) },
	} {
		t.Run(name, func(t *testing.T) {
			const writers, each, people = 6, 80, 15
			kv := newRenamed(token)
			c, err := opaque.Open(t.Context(), kv, defineAs("order"), opaque.Options{Attempts: 1000, IDBuckets: 4})
			require.NoError(t, err)
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					rng := mathrand.New(mathrand.NewPCG(uint64(w), 5))
					for range each {
						err := mixed(context.WithoutCancel(t.Context()), c, rng, people)
						if err != nil && !errors.Is(err, index.ErrConflict) && !errors.Is(err, opaque.ErrNotFound) && !errors.Is(err, opaque.ErrExists) {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			bruteForce(t, c, people)
			requireClean(t, c)
		})
	}
}
