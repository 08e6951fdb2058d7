package proof

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/lua"
)

// play runs a program against the model and says where they first part.
func play(w *world, m *model, program []op) error {
	for i, o := range program {
		if err := m.step(o, w.run(o), w.stored); err != nil {
			return fmt.Errorf("operation %d, %s: %w\nrecords %+v\nvanished %+v, hurt %v", i, o, err, m.recs, m.ghosts, m.hurt)
		}
	}
	if err := m.finish(w); err != nil {
		return fmt.Errorf("after %d operations: %w", len(program), err)
	}
	return nil
}

// someProgram is a program of n operations of the kinds.
func someProgram(choose chooser, n int, kinds ...[]kind) []op {
	var all []kind
	for _, k := range kinds {
		all = append(all, k...)
	}
	program := make([]op, n)
	for i := range program {
		program[i] = someOp(choose, all, i)
	}
	return program
}

// TestARandomProgramLeavesWhatAMapOfRecordsWouldHold draws programs of every operation on every kind of index, with records
// that vanish, rows and entries that are lost, and foreign values in the way, and shrinks the one that fails.
func TestARandomProgramLeavesWhatAMapOfRecordsWouldHold(t *testing.T) {
	checks, steps := 25, 40
	if soak := soaking(t); soak > 0 {
		checks, steps = max(2000, int(soak.Minutes()*100)), 120
	}
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(checks)))
	for _, s := range []*redistest.Server{redistest.Mini(t), redistest.Redis(t)} {
		t.Run(s.Name, func(t *testing.T) {
			rdb := s.Client(t)
			redistest.Checked(rdb, lua.Sources)
			w := newWorld(t, s, rdb)
			rapid.Check(t, func(rt *rapid.T) {
				w.fresh()
				choose := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, what) }
				n := rapid.IntRange(1, steps).Draw(rt, "steps")
				if err := play(w, newModel(), someProgram(choose, n, writing, reading, incidents)); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// TestAModelThatHasGoneBlindIsNoticed breaks the model once, so that a check that has gone blind shows.
func TestAModelThatHasGoneBlindIsNoticed(t *testing.T) {
	s := redistest.Mini(t)
	w := newWorld(t, s, s.Client(t))
	r := random(1)
	program := someProgram(func(_ string, n int) int { return r.IntN(n) }, 30, writing)
	m := newModel()
	require.NoError(t, play(w, m, program))
	for id := range m.recs {
		x := m.recs[id]
		x.Count++
		m.recs[id] = x
		break
	}
	require.Error(t, m.finish(w))
	w.direct.SAdd(t.Context(), space+"~color.1:c9"+version, "i1")
	require.NotEmpty(t, w.findings())
}
