package ranked_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
)

// TestAPageAfterSingleWritesEqualsASort drives one record a call, shrinks what fails, and moves the clock where it can.
func TestAPageAfterSingleWritesEqualsASort(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *redistest.Server{
		"miniredis": redistest.Mini,
		"redis":     func(t testing.TB) *redistest.Server { return redistest.Redis(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			rdb := s.Client(t)
			redistest.Checked(rdb, lua.Sources)
			rapid.Check(t, func(rt *rapid.T) {
				now := time.Now()
				if s.Mini != nil {
					s.Mini.ClockTTL(true)
					s.Mini.SetTime(now)
				}
				require.NoError(rt, rdb.FlushAll(t.Context()).Err())
				set := rapid.SampledFrom(setups(false)).Draw(rt, "setup")
				rt.Logf("%s", set.name)
				c, err := index.Open(t.Context(), rdb, index.Define("acme:arcade", "score", index.Options[rec]{
					ID: func(r rec) string { return r.ID }, Version: 1, Lifetime: index.Forever, Codec: codec(ints),
					Indexes: []index.Index[rec]{set.index},
				}))
				require.NoError(rt, err)
				m := &machine{setup: set, s: s, c: c, ctx: t.Context(), live: map[string]rec{}, now: now, base: now}
				rt.Repeat(map[string]func(*rapid.T){
					"put": m.put, "update": m.update, "delete": m.remove, "clock": m.clock, "ask": m.ask, "pages": m.pages,
				})
			})
		})
	}
}

// machine is a random program that does one thing at a time.
type machine struct {
	setup
	s         *redistest.Server
	c         *index.Collection[rec]
	ctx       context.Context
	live      map[string]rec
	now, base time.Time
}

func (m *machine) number(t *rapid.T, label string) int64 {
	n := rapid.SampledFrom(m.values).Draw(t, label)
	if m.times && n != noScore {
		n += m.base.UnixMicro()
	}
	return n
}

func (m *machine) id(t *rapid.T) string {
	return rapid.SampledFrom(someNames[:m.limit()+3]).Filter(func(s string) bool { return s != "" }).Draw(t, "id")
}

func (m *machine) put(t *rapid.T) {
	r := rec{ID: m.id(t), Score: m.number(t, "score")}
	require.NoError(t, m.c.Put(m.ctx, r))
	m.live[r.ID] = r
}

func (m *machine) update(t *rapid.T) {
	id, n := m.id(t), m.number(t, "score")
	r, err := m.c.Update(m.ctx, id, func(r *rec) error { r.Score = n; return nil })
	if _, lives := m.live[id]; !lives {
		require.ErrorIs(t, err, index.ErrNotFound)
		return
	}
	require.NoError(t, err)
	m.live[id] = r
}

func (m *machine) remove(t *rapid.T) {
	id := m.id(t)
	require.NoError(t, m.c.Delete(m.ctx, id))
	delete(m.live, id)
}

func (m *machine) clock(t *rapid.T) {
	d := time.Duration(rapid.IntRange(1, 40).Draw(t, "minutes")) * time.Minute
	if m.s.Mini == nil {
		return
	}
	m.now = m.now.Add(d)
	m.s.Mini.SetTime(m.now)
}

func (m *machine) draw(t *rapid.T) ask {
	a := ask{descending: rapid.Bool().Draw(t, "descending"), limit: rapid.IntRange(1, m.limit()).Draw(t, "limit")}
	edge := func(label string) *int64 {
		n := m.number(t, label)
		if n == noScore {
			return nil
		}
		return &n
	}
	if rapid.Bool().Draw(t, "bounded below") {
		a.least = edge("at least")
	}
	if rapid.Bool().Draw(t, "bounded above") {
		a.below = edge("below")
	}
	return a
}

func (m *machine) ask(t *rapid.T) {
	a := m.draw(t)
	o, conditions := m.order("", a)
	page, err := m.c.Top(m.ctx, o, conditions...)
	require.NoError(t, err)
	if page.Complete {
		require.Equal(t, m.sorted(m.live, m.now, a), idsOf(page), "%v", a)
	}
	m.inOrder(t, a, page)
}

// inOrder holds of every page, complete or not: live records only, in order.
func (m *machine) inOrder(t *rapid.T, a ask, page index.Page[rec]) {
	for _, item := range page.Items {
		require.Equal(t, m.live[item.ID], item.Record)
	}
	require.True(t, slices.IsSortedFunc(page.Items, func(x, y index.Item[rec]) int {
		c := cmp.Or(cmp.Compare(m.level(x.Record.Score), m.level(y.Record.Score)), cmp.Compare(x.ID, y.ID))
		if a.descending {
			return -c
		}
		return c
	}), "%v gave %q", a, idsOf(page))
}

// pages asks for all pages of one size: together they are what one page of all would be.
func (m *machine) pages(t *rapid.T) {
	a := m.draw(t)
	o, conditions := m.order("", a)
	var got []string
	for complete := true; ; {
		page, err := m.c.Top(m.ctx, o, conditions...)
		require.NoError(t, err)
		got = append(got, idsOf(page)...)
		require.LessOrEqual(t, len(got), len(m.live), "pages of %v repeat themselves", a)
		complete = complete && page.Complete
		if complete {
			all := a
			all.limit = len(got)
			require.Equal(t, m.sorted(m.live, m.now, all), append([]string{}, got...), "pages of %v", a)
		}
		if page.Next == "" {
			return
		}
		o = o.After(page.Next)
	}
}
