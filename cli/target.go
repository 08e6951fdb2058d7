package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/index"
)

// target is the entity type that a command works on.
type target struct {
	index.Declared
	schema *schema // where it was declared by a file, else nil
}

// target finds the entity type: by the schema file, or among those of the program.
func (s *session) target() (target, error) {
	if len(s.app.entities) > 0 {
		e, err := s.pick()
		return target{Declared: e}, err
	}
	if s.schemaFile == "" {
		return target{}, errors.New("no schema: give -s FILE (see --help for an example)")
	}
	text, err := os.ReadFile(s.schemaFile)
	if err != nil {
		return target{}, err
	}
	sc, err := parseSchema(s.schemaFile, text)
	if err != nil {
		return target{}, err
	}
	return target{sc.entity, sc}, nil
}

// pick chooses one of the entity types of the program.
func (s *session) pick() (index.Declared, error) {
	all := s.app.entities
	if i := slices.Index(all, nil); i >= 0 {
		return nil, fmt.Errorf("entity type %d of the program is nil", i+1)
	}
	if err := index.Check(all...); err != nil {
		return nil, err
	}
	if len(all) == 1 {
		return all[0], nil
	}
	names := entityNames(all)
	if s.entity == "" {
		return nil, fmt.Errorf("which entity type? --entity is one of %s", strings.Join(names, ", "))
	}
	var found []index.Declared
	for i, e := range all {
		if s.entity == names[i] || s.entity == e.Name() || s.entity == e.String() {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("there is no entity type %q: --entity is one of %s", s.entity, strings.Join(names, ", "))
	default:
		return nil, fmt.Errorf("%q means several entity types: --entity is one of %s", s.entity, strings.Join(entityNames(found), ", "))
	}
}

// entityNames gives each entity type the shortest name that tells it from the others: account, acme:billing:account, or
// with its version acme:billing:account:v2.
func entityNames(all []index.Declared) []string {
	forms := []func(index.Declared) string{
		func(e index.Declared) string { return e.Name() },
		func(e index.Declared) string { return e.String() },
	}
	names := make([]string, len(all))
	for i, e := range all {
		if e == nil {
			continue
		}
		names[i] = fmt.Sprintf("%s:v%d", e.String(), e.Version())
		for _, form := range forms {
			alone := !slices.ContainsFunc(slices.Delete(slices.Clone(all), i, i+1), func(other index.Declared) bool {
				return other != nil && form(other) == form(e)
			})
			if alone {
				names[i] = form(e)
				break
			}
		}
	}
	return names
}

// access says what a command does to the store.
type access int

const (
	// reading leaves everything as it is, the catalog of declarations included: a query with an outdated schema file must
	// not take indexes out of service.
	reading access = iota
	writing
)

// open connects and opens the entity type on the store that the flags name. done is never nil.
func (s *session) open(ctx context.Context, t target, a access) (o store, done func(), err error) {
	if s.kv != "" {
		return s.openKV(ctx, t, a)
	}
	return s.openIndexed(ctx, t, a)
}

// openIndexed connects to Redis and opens the entity type; what is wrong with the declaration comes first. done is never nil.
func (s *session) openIndexed(ctx context.Context, t target, a access) (o indexed, done func(), err error) {
	done = func() {}
	if err := t.Err(); err != nil {
		return o, done, err
	}
	rdb, err := s.connect(ctx)
	if err != nil {
		return o, done, err
	}
	if a == writing {
		s.warnUnbounded(t)
	}
	options := index.OpenOptions{ReadOnly: a == reading, Retry: index.Retry{Budget: s.timeout}}
	if a == writing && s.errTerminal {
		options.Events.Notice = func(text string) { s.note("note: ", text) }
	}
	o.Opened, err = t.on(ctx, rdb, options)
	if a == reading && errors.Is(err, index.ErrNotReady) {
		err = fmt.Errorf("%w (load, put and build open for writing, a query does not)", err)
	}
	if err != nil {
		_ = rdb.Close() // the error that says more is at hand
		return o, done, err
	}
	return o, func() { _ = rdb.Close() }, nil // all replies are read
}

// on opens the entity type on a client.
func (t target) on(ctx context.Context, rdb redis.UniversalClient, o index.OpenOptions) (index.Opened, error) {
	return t.OpenErased(ctx, rdb, o)
}

// condition splits INDEX=VALUE at its first '=' and checks that the index exists.
func (t target) condition(arg string) (name, value string, err error) {
	name, value, ok := strings.Cut(arg, "=")
	if !ok {
		return "", "", fmt.Errorf("%q is not of the form INDEX=VALUE", arg)
	}
	return name, value, t.hasIndex(name)
}

// hasIndex checks the name of an index.
func (t target) hasIndex(name string) error {
	names := make([]string, 0, len(t.Definitions()))
	for _, d := range t.Definitions() {
		if d.Name == name {
			return nil
		}
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no indexes", t)
	}
	return fmt.Errorf("%s has no index %q%s (indexes: %s)", t, name, didYouMean(name, names), strings.Join(names, ", "))
}

// warnUnbounded names the ranked indexes of a schema file that grow with their records.
func (s *session) warnUnbounded(t target) {
	if t.schema == nil {
		return
	}
	for _, r := range t.schema.ranks {
		if r.unbounded() {
			s.note("warning: ", fmt.Sprintf("%s:%d: index %s keeps every record in one sorted set: write keep: N to bound it",
				t.schema.file, r.line, r.index))
		}
	}
}
