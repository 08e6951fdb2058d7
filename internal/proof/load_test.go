package proof

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/index"
)

// load is a number of writers, each with ids of its own, who note what was acknowledged.
type load struct {
	t       testing.TB
	c       *index.Collection[thing]
	lossy   bool // the store may lose the newest writes
	writers []*writer
	stop    atomic.Bool
	wg      sync.WaitGroup
	acked   atomic.Int64
	unknown atomic.Int64
}

// writer is one of them. What it is writing may be in the store or not, what it has acknowledged is.
type writer struct {
	name string
	mu   sync.Mutex

	acked   map[string]*thing // nil: acknowledged as deleted
	pending map[string]*thing
	updates int // acknowledged updates of its counter
	unsure  int // those whose outcome was unknown
}

// idsOfAWriter are the ids that each writer has, besides its counter.
const idsOfAWriter = 4

// startLoad runs writers until end.
func startLoad(t testing.TB, c *index.Collection[thing], writers int, lossy bool, seed uint64) *load {
	l := &load{t: t, c: c, lossy: lossy}
	for n := range writers {
		w := &writer{name: fmt.Sprint("w", n), acked: map[string]*thing{}, pending: map[string]*thing{}}
		l.writers = append(l.writers, w)
	}
	l.start(seed)
	return l
}

func (l *load) start(seed uint64) {
	l.stop.Store(false)
	for n, w := range l.writers {
		r := random(seed + uint64(n)<<40)
		l.wg.Go(func() {
			for serial := 0; !l.stop.Load() && !l.t.Failed(); serial++ {
				if err := l.write(w, func(_ string, n int) int { return r.IntN(n) }, fmt.Sprint(seed, ".", serial)); err != nil {
					l.t.Error(err)
					return
				}
			}
		})
	}
}

// end waits until every writer has its last answer.
func (l *load) end() {
	l.stop.Store(true)
	l.wg.Wait()
}

// write makes one write and takes its outcome in.
func (l *load) write(w *writer, choose chooser, stamp string) error {
	ctx := context.Background()
	next := map[string]*thing{}
	fresh := func() *thing {
		x := someThing(choose)
		x.ID, x.Stamp = fmt.Sprint(w.name, "-", choose("id", idsOfAWriter)), stamp
		x.Color = fmt.Sprint("c", choose("color", 3)) // nothing foreign here
		if x.Code != "" {
			x.Code = fmt.Sprint(w.name, x.Code)
		}
		return &x
	}
	x := fresh()
	next[x.ID] = x
	var call func() error
	switch choose("kind", 6) {
	case 0, 1:
		call = func() error { return l.c.Put(ctx, *x) }
	case 2:
		call, next[x.ID] = func() error { return l.c.Delete(ctx, x.ID) }, nil
	case 3:
		y := fresh()
		next[y.ID] = y
		if y.ID == x.ID {
			break
		}
		call = func() error {
			outcomes, err := l.c.PutMany(ctx, []thing{*x, *y})
			for _, out := range outcomes {
				if out.Err != nil && !errors.Is(out.Err, index.ErrUnknown) {
					w.mu.Lock()
					delete(w.pending, out.ID) // the others count by themselves
					w.mu.Unlock()
				}
			}
			if errors.Is(err, index.ErrUnknown) || !errors.Is(err, index.ErrConflict) {
				return err
			}
			return nil
		}
	default:
		clear(next)
		call = func() error { return l.count(ctx, w) }
	}
	if call == nil {
		return nil
	}
	w.mu.Lock()
	w.pending = next
	w.mu.Unlock()
	err := call()
	if errors.Is(err, index.ErrUnknown) {
		l.unknown.Add(1)
		return l.look(ctx, w)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, index.ErrConflict), errors.Is(err, index.ErrExists), errors.Is(err, index.ErrNotFound):
	case err != nil:
		return err
	default:
		l.acked.Add(1)
		maps.Copy(w.acked, w.pending)
	}
	w.pending = map[string]*thing{}
	return nil
}

// count adds one to the writer's counter.
func (l *load) count(ctx context.Context, w *writer) error {
	id := w.name + "-counter"
	_, err := l.c.Update(ctx, id, func(x *thing) error { x.Count++; x.Score = x.Count % 7; return nil })
	if errors.Is(err, index.ErrNotFound) {
		if err = l.c.Create(ctx, thing{ID: id, Color: "c0", Group: "g0"}); errors.Is(err, index.ErrExists) {
			return nil
		}
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.updates++
	case errors.Is(err, index.ErrUnknown):
		w.unsure++
	}
	return err
}

// look settles unknown outcomes by reading.
func (l *load) look(ctx context.Context, w *writer) error {
	w.mu.Lock()
	pending := w.pending
	w.mu.Unlock()
	for id := range pending {
		x, err := l.c.Get(ctx, id)
		now := &x
		if errors.Is(err, index.ErrNotFound) {
			now = nil
		} else if err != nil {
			return err
		}
		if err := w.allows(id, now); err != nil && !l.lossy {
			return err
		}
		w.mu.Lock()
		w.acked[id] = now
		w.mu.Unlock()
	}
	w.mu.Lock()
	w.pending = map[string]*thing{}
	w.mu.Unlock()
	return nil
}

// allows says what is wrong with a state that the store has.
func (w *writer) allows(id string, now *thing) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reflect.DeepEqual(now, w.acked[id]) {
		return nil
	}
	if next, writing := w.pending[id]; writing && reflect.DeepEqual(now, next) {
		return nil
	}
	return fmt.Errorf("%s: the store has %+v, acknowledged is %+v, on its way %+v", id, now, w.acked[id], w.pending[id])
}

// check holds what the server has against what every writer knows.
func (l *load) check(w *world) {
	l.t.Helper()
	require.Empty(l.t, w.findings())
	for _, writer := range l.writers {
		x, _ := w.stored(writer.name + "-counter")
		writer.mu.Lock()
		updates, unsure := writer.updates, writer.unsure
		writer.mu.Unlock()
		require.LessOrEqual(l.t, x.Count, updates+unsure+1, "an update was applied twice")
		if l.lossy {
			continue
		}
		require.GreaterOrEqual(l.t, x.Count, updates, "an acknowledged update is lost")
		for n := range idsOfAWriter {
			id := fmt.Sprint(writer.name, "-", n)
			now, alive := w.stored(id)
			state := &now
			if !alive {
				state = nil
			}
			require.NoError(l.t, writer.allows(id, state))
		}
	}
}

// forget takes what the store has for what was acknowledged, where a failover may have lost some.
func (l *load) forget(w *world) {
	for _, writer := range l.writers {
		writer.pending = map[string]*thing{}
		for n := range idsOfAWriter {
			id := fmt.Sprint(writer.name, "-", n)
			writer.acked[id] = nil
			if now, alive := w.stored(id); alive {
				writer.acked[id] = &now
			}
		}
	}
}
