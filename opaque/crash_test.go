package opaque_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
)

// crashed is one operation that is cut off after each of its steps.
type crashed struct {
	name   string
	before *Account // what is there
	run    func(ctx context.Context, c *opaque.Collection[Account]) error
}

func crashes() []crashed {
	change := func(fn func(*Account)) func(context.Context, *opaque.Collection[Account]) error {
		return func(ctx context.Context, c *opaque.Collection[Account]) error {
			_, err := c.Update(ctx, "r1", func(a *Account) error {
				fn(a)
				return nil
			})
			return err
		}
	}
	remove := func(ctx context.Context, c *opaque.Collection[Account]) error { return c.Delete(ctx, "r1") }
	return []crashed{
		{"create with a list", nil, func(ctx context.Context, c *opaque.Collection[Account]) error {
			return c.Create(ctx, Account{ID: "r1", Status: "new"})
		}},
		{"create with a claim", nil, func(ctx context.Context, c *opaque.Collection[Account]) error {
			return c.Create(ctx, Account{ID: "r1", Email: "new"})
		}},
		{"update of a list", &Account{ID: "r1", Status: "old"}, change(func(a *Account) { a.Status = "new" })},
		{"update of a claim", &Account{ID: "r1", Email: "old"}, change(func(a *Account) { a.Email = "new" })},
		{"update of both", &Account{ID: "r1", Email: "old", Status: "old"}, change(func(a *Account) { a.Email, a.Status = "new", "new" })},
		{"delete with a list", &Account{ID: "r1", Status: "old"}, remove},
		{"delete with a claim", &Account{ID: "r1", Email: "old"}, remove},
	}
}

// After a crash behind any step a reader, a second writer and a scrub come along, in each order.
func TestACrashBehindAnyStepLeavesNothingThatAnybodyTripsOver(t *testing.T) {
	orders := [][]string{
		{"read", "write", "scrub"},
		{"read", "scrub", "write"},
		{"write", "read", "scrub"},
		{"write", "scrub", "read"},
		{"scrub", "read", "write"},
		{"scrub", "write", "read"},
	}
	eachServer(t, func(t *testing.T, connect func() opaque.KV) {
		kv, tried := connect(), 0
		for _, op := range crashes() {
			for _, order := range orders {
				for steps, ended := 0, false; !ended; steps++ {
					tried++
					e := defineAs(fmt.Sprintf("crash%d", tried))
					name := fmt.Sprintf("%s, crash behind step %d, then %v", op.name, steps, order)
					ended = crashOnce(t, name, kv, e, op, steps, order)
				}
			}
		}
		t.Logf("%d crashes", tried)
	})
}

func crashOnce(t *testing.T, name string, kv opaque.KV, e *index.Entity[Account], op crashed, steps int, order []string) (ended bool) {
	t.Helper()
	ctx := t.Context()
	o := opaque.Options{Grace: time.Nanosecond, IDBuckets: 1}
	broken := &crasher{KV: kv, left: steps}
	first, err := opaque.Open(ctx, broken, e, o)
	require.NoError(t, err, name)
	c, err := opaque.Open(ctx, kv, e, o)
	require.NoError(t, err, name)
	if op.before != nil {
		require.NoError(t, c.Put(ctx, *op.before), name)
	}
	broken.armed = true
	err = op.run(ctx, first)
	ended = broken.left >= 0
	if ended {
		require.NoError(t, err, name)
	}
	for _, what := range order {
		switch what {
		case "read":
			agree(t, name, c)
		case "write":
			for _, v := range []string{"old", "new"} {
				taken := holds(t, name, c, "r1", v)
				err := c.Put(ctx, Account{ID: "r2", Status: v, Email: v})
				if taken {
					require.ErrorIs(t, err, index.ErrConflict, name)
				} else {
					require.NoError(t, err, name)
				}
			}
			require.NoError(t, c.Put(ctx, Account{ID: "r1", Status: "third"}), name)
			agree(t, name, c)
		case "scrub":
			r, err := c.Run(ctx, opaque.RunOptions{})
			require.NoError(t, err, name)
			require.Zero(t, r.Left(), "%s: %v", name, r.Findings)
			require.Zero(t, r.Counts[opaque.Missing], "%s: %v", name, r.Findings)
			requireClean(t, c)
		}
	}
	_, err = c.Run(ctx, opaque.RunOptions{})
	require.NoError(t, err, name)
	requireClean(t, c)
	return ended
}

// holds reports whether a record is there and has the e-mail address.
func holds(t *testing.T, name string, c *opaque.Collection[Account], id, email string) bool {
	t.Helper()
	a, err := c.Get(t.Context(), id)
	if errors.Is(err, opaque.ErrNotFound) {
		return false
	}
	require.NoError(t, err, name)
	return a.Email == email
}

// agree holds what queries say against what the records say.
func agree(t *testing.T, name string, c *opaque.Collection[Account]) {
	t.Helper()
	ctx := t.Context()
	for _, v := range []string{"old", "new", "third"} {
		want := []string{}
		holder := ""
		for _, id := range []string{"r1", "r2"} {
			a, err := c.Get(ctx, id)
			if errors.Is(err, opaque.ErrNotFound) {
				continue
			}
			require.NoError(t, err, name)
			if a.Status == v {
				want = append(want, id)
			}
			if a.Email == v {
				holder = id
			}
		}
		slices.Sort(want)
		require.Equal(t, want, ids(t, c, ByStatus.Is(v)), name)
		a, err := c.One(ctx, ByEmail.Is(v))
		if holder == "" {
			require.ErrorIs(t, err, opaque.ErrNotFound, name)
		} else {
			require.NoError(t, err, name)
			require.Equal(t, holder, a.ID, name)
		}
	}
}
