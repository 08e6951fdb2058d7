package repair

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/lua"
)

const (
	scanCount = 1000      // of a SCAN and its like: enough that round trips do not dominate, few enough to hold up nobody
	maxKept   = 1_000_000 // keys of records that are kept from the scan; with more of them they are scanned for again
)

// recordKey is the key of a record with what it tells of the id.
type recordKey struct {
	key, id  string
	digested bool
}

// findKeys scans the keyspace and sorts the keys of the entity type.
func (p *pass) findKeys(ctx context.Context) error {
	p.phase(Keys, 0)
	early, err := p.newEarly(ctx)
	if err != nil {
		return err
	}
	p.early = early
	err = p.scan(ctx, func(rec recordKey) error {
		if p.found == maxKept {
			p.overflow = true
			return nil
		}
		p.found++
		if early != nil {
			return early.add(rec)
		}
		p.records = append(p.records, rec)
		return nil
	}, true)
	if early != nil {
		err = early.end(err)
	}
	if err != nil {
		return err
	}
	if p.overflow {
		p.glances = nil // all of them are scanned for again
	}
	p.phaseOver()
	return nil
}

// scan gives the keys of the records on every primary, some perhaps twice, as SCAN does, and where sorting is asked for,
// keeps the others.
func (p *pass) scan(ctx context.Context, give func(recordKey) error, sorting bool) error {
	return p.m.EachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		cursor := uint64(0)
		return ahead(ctx, func(ctx context.Context) ([]string, bool, error) {
			page, err := lua.Call(ctx, func() (*redis.ScanCmd, error) {
				page := node.Scan(ctx, cursor, p.space.Prefix()+"*", scanCount)
				return page, page.Err()
			})
			if err != nil {
				return nil, false, lua.Judge(err)
			}
			keys, next := page.Val()
			cursor = next
			return keys, next != 0, nil
		}, func(keys []string) error {
			for _, k := range keys {
				if rec, ok := p.sort(k, sorting); ok {
					if err := give(rec); err != nil {
						return err
					}
				}
			}
			if !sorting {
				return nil
			}
			p.advance(len(keys))
			if p.early != nil {
				return p.early.take()
			}
			return nil
		})
	})
}

// sort takes a key apart and reports whether it is that of a record. Others it puts where they belong.
func (p *pass) sort(k string, keep bool) (recordKey, bool) {
	parsed, err := p.space.Rules().Parse(k)
	switch {
	case err != nil:
		if keep && p.ourVersion(k) {
			p.strangers = append(p.strangers, k)
		}
	case parsed.Owner != p.space.Owner(), parsed.Entity != p.space.Entity(), parsed.Version != p.space.Version():
	case parsed.Kind == key.KindCatalog:
	case parsed.Tag != p.part.Tag():
		if keep {
			p.strangers = append(p.strangers, k) // no query looks there
		}
	case parsed.Kind == key.KindRecord && !parsed.HasField: // a field is kept beside the record by the application
		return recordKey{k, parsed.ID, parsed.Digested}, true
	case parsed.Kind == key.KindIndex && keep && (p.only == "" || parsed.Index == p.only):
		p.keys = append(p.keys, &indexKey{key: k, parsed: parsed})
	}
	return recordKey{}, false
}

// ourVersion reports whether a key that is none of the layout ends other than keys of another version do.
func (p *pass) ourVersion(k string) bool {
	at := strings.LastIndex(k, ":v")
	if at < 0 {
		return true
	}
	version, err := strconv.Atoi(k[at+2:])
	return err != nil || version == p.space.Version()
}
