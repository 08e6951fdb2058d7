package repair

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/lua"
)

// states is what the partition says of the declared indexes.
type states struct {
	entered bool     // it knows the declaration
	unready []string // sorted
}

// states reads the meta of the partition. A newer declaration in it is index.ErrSchema: its entries would pass for damage.
func (p *pass) states(ctx context.Context) (states, error) {
	meta, err := lua.Call(ctx, func() (map[string]string, error) { return p.rdb.HGetAll(ctx, p.part.Meta()).Result() })
	if err != nil {
		return states{}, p.readError(ctx, p.part.Meta(), err)
	}
	out := states{unready: []string{}}
	var low, newest int64
	if n, _ := fmt.Sscan(meta["schema"], &low, &newest); n == 2 {
		if newest > p.m.Generation() {
			return out, &lua.SchemaError{Generation: p.m.Generation(), Min: newest}
		}
		out.entered = newest == p.m.Generation()
	}
	for name, generation := range p.m.Indexes() {
		if !out.entered || meta[lua.StateField(name, generation)] != string(lua.Ready) {
			out.unready = append(out.unready, name)
		}
	}
	slices.Sort(out.unready)
	return out, nil
}

// only is name, if it is among names.
func only(names []string, name string) []string {
	if slices.Contains(names, name) {
		return []string{name}
	}
	return []string{}
}

// maxAttempts bounds how often a build starts over because the store has lost writes of it.
const maxAttempts = 4

// attempts goes over everything, and again where a build has to start over.
func (p *pass) attempts(ctx context.Context, c index.Opened) error {
	for n := 1; ; n++ {
		err := p.attempt(ctx, c)
		switch {
		case errors.Is(err, lua.ErrLost), errors.Is(err, lua.ErrNotEntered) && p.fix, errors.Is(err, lua.ErrUnknown) && ctx.Err() == nil:
			// A failover, or an emptied server: what was found in order may not be there any more.
			if n == maxAttempts {
				return fmt.Errorf("%w: %w", ErrUnsteady, err)
			}
		default:
			return err
		}
	}
}

func (p *pass) attempt(ctx context.Context, c index.Opened) error {
	p.fence = ""
	found, err := p.states(ctx)
	if err != nil {
		return err
	}
	if p.fix && !found.entered {
		if err := p.m.Enter(ctx); err != nil {
			return err
		}
		if found, err = p.states(ctx); err != nil {
			return err
		}
	}
	p.begin(c)
	build := found.unready
	if p.only != "" {
		build = only(found.unready, p.only)
	}
	if !p.fix || len(build) == 0 {
		return p.over(ctx)
	}
	// The order matters: first nobody who does not maintain the indexes may write, then the records are read.
	fence := strings.ToLower(rand.Text())
	if err := p.run.Fence(ctx, p.part.Meta(), p.m.Generation(), fence); err != nil {
		return err
	}
	p.fence = fence
	if err := p.over(ctx); err != nil {
		return err
	}
	var fields []string
	for _, name := range build {
		if !p.blocked[name] {
			fields = append(fields, lua.StateField(name, p.m.Indexes()[name]))
		}
	}
	err = p.run.Ready(ctx, p.part.Meta(), p.m.Generation(), fence, p.built, fields)
	if errors.Is(err, lua.ErrFenced) {
		// Taken over, or done by a call whose reply was lost: ready is ready.
		if now, serr := p.states(ctx); serr == nil && !slices.ContainsFunc(build, func(name string) bool {
			return !p.blocked[name] && slices.Contains(now.unready, name)
		}) {
			return nil
		}
	}
	return err
}
