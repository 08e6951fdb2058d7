package opaque

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/index"
)

// Why an attempt starts again.
var (
	errAgain = errors.New("somebody else was faster")
	errWait  = errors.New("somebody else is not finished")
)

// claim takes a unique value for an attempt. Nil: the claim names it. *index.ConflictError: a live record has the value.
// errAgain: the attempt's own record has changed.
func (a *attempt) claim(ctx context.Context, p place) error {
	c := a.c
	mine := encodeClaim(entry{a.id, a.wid})
	if _, err := c.add(ctx, p.key, mine, time.Time{}); err == nil || settled(err) && !moved(err) {
		return err
	}
	for n := 1; n < c.o.Attempts; n++ {
		claim, t, err := a.judge(ctx, p)
		switch {
		case errors.Is(err, errWait):
			// It ends when the other write ends or has got old, so it is not counted.
			n--
			if err := c.pause(ctx, 8); err != nil {
				return err
			}
			continue
		case errors.Is(err, errRetry):
			c.o.Events.retry("claim", a.id, p.index)
			if err := c.pause(ctx, n); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case claim == entry{a.id, a.wid}:
			return nil
		case t == "":
			_, err = c.add(ctx, p.key, mine, time.Time{})
		default:
			_, err = c.swap(ctx, p.key, mine, time.Time{}, t)
		}
		if err == nil || settled(err) && !moved(err) {
			return err
		}
	}
	return index.ErrContended
}

// errRetry says that a judgement was overtaken.
var errRetry = errors.New("overtaken")

// judge reads a claim and makes sure that it may be taken: by add if there is none (no token), else by its token. The claim
// is read before the record that it names: read the other way round, the record could take the value in between.
func (a *attempt) judge(ctx context.Context, p place) (entry, Token, error) {
	c := a.c
	claim, t, err := c.loadClaim(ctx, p.key)
	if err != nil || t == "" || claim == (entry{a.id, a.wid}) {
		return claim, t, err
	}
	k, err := c.recordKey(claim.id)
	if err != nil {
		return claim, t, err
	}
	env, rt, err := c.load(ctx, k, claim.id)
	if err == nil && !c.keeps(claimFirst) {
		if claim, t, err = c.loadClaim(ctx, p.key); t == "" {
			return claim, t, err
		}
	}
	switch {
	case err != nil:
		return claim, t, err
	case env == nil:
		return claim, t, nil
	case env.has(p.body) && claim.id == a.id:
		return claim, t, errAgain
	case env.has(p.body):
		return claim, t, c.duplicate(a.id, p, claim.id)
	case !env.live && env.last != claim.wid:
		// The claim is of an earlier life of the record: it can never become live.
		return claim, t, nil
	case c.young(claim.wid):
		return claim, t, errWait
	case !env.live:
		if !c.keeps(fencePending) {
			return claim, t, nil
		}
		if err := c.remove(ctx, k, rt); err != nil && !errors.Is(err, ErrNotFound) {
			return claim, t, retryIfMoved(err)
		}
		return claim, t, nil
	case claim.id == a.id:
		return claim, t, a.fenceOwn(ctx, env, rt)
	case !c.keeps(fenceBeforeStealing):
		return claim, t, nil
	default:
		_, _, err := c.fence(ctx, k, env, rt)
		return claim, t, retryIfMoved(err)
	}
}

// fenceOwn fences the attempt's own record, against other attempts on it, and goes on from the new token.
func (a *attempt) fenceOwn(ctx context.Context, env *envelope, t Token) error {
	if !a.base.live || env.rev != a.base.rev {
		return errAgain
	}
	if !a.c.keeps(fenceOwnRecord) {
		return nil
	}
	next, t, err := a.c.fence(ctx, a.key, env, t)
	if err != nil {
		if moved(err) || !settled(err) {
			return errAgain
		}
		return err
	}
	a.base, a.token = next, t
	return nil
}

// retryIfMoved makes errRetry of an error that another look will explain.
func retryIfMoved(err error) error {
	if err != nil && (moved(err) || !settled(err)) {
		return errRetry
	}
	return err
}

func (c *core) duplicate(id string, p place, holder string) error {
	return &index.ConflictError{Entity: c.entity.String(), ID: id, Index: p.index, Value: valueOf(p.body), Holder: holder}
}

// release gives up a claim: only the one of exactly this write, and by its token.
func (c *core) release(ctx context.Context, p place, dead entry) error {
	for n := range c.o.Attempts {
		if n > 0 {
			c.o.Events.retry("release", dead.id, p.index)
			if err := c.pause(ctx, n); err != nil {
				return err
			}
		}
		claim, t, err := c.loadClaim(ctx, p.key)
		if err != nil || t == "" || claim != dead {
			return err
		}
		if !c.keeps(releaseByToken) {
			err = c.removeBlindly(ctx, p.key)
		} else {
			err = c.remove(ctx, p.key, t)
		}
		if err == nil || settled(err) && !moved(err) {
			return err
		}
	}
	return index.ErrContended
}

// removeBlindly is what a client without conditional deletes does. Only tests ask for it.
func (c *core) removeBlindly(ctx context.Context, k string) error {
	item, err := c.get(ctx, k)
	if err != nil {
		return err
	}
	return c.remove(ctx, k, item.Token)
}

// loadClaim reads a claim. An absent one has no token.
func (c *core) loadClaim(ctx context.Context, k string) (entry, Token, error) {
	item, err := c.get(ctx, k)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return entry{}, "", err
	}
	claim, err := decodeClaim(item.Value)
	return claim, item.Token, err
}
