package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/opaque"
	"github.com/lockstep-go/lockstep/opaque/memcachekv"
	"github.com/lockstep-go/lockstep/opaque/rediskv"
)

// kvForms is what --kv takes.
const kvForms = "memcache://HOST:PORT or redis-opaque://HOST:PORT"

// memcachePort is the port of a memcached that is given without one.
const memcachePort = "11211"

// needsRedis says, for each command that takes no --kv, why.
var needsRedis = map[string]string{
	"top": "an order needs a server that compares scores, and this one can only hand back a whole list; " +
		"ask Redis (--redis) or a database",
	"build": "there, repair builds every index that is not ready",
	"sweep": "there is nothing to sweep: the server drops records that expire, and repair removes the entries that they leave",
	"acl":   "the rule is for the scripts that keep indexes on Redis, and nothing of that runs there",
	"bench": "it measures indexes on Redis beside go-redis by hand: give --redis",
	"demo":  "it shows indexes on Redis: give --redis, or nothing for an embedded server",
	"key build": "it makes the keys of indexes on Redis, and those of an opaque store are others; " +
		"verify names them, and key parse takes them apart",
}

// kvError says that a command cannot do its work on an opaque store, and why. It matches index.ErrUnsupported.
type kvError struct{ command, why string }

func (e *kvError) Error() string { return fmt.Sprintf("%s does not take --kv: %s", e.command, e.why) }

func (e *kvError) Is(target error) bool { return target == index.ErrUnsupported }

// checkKV refuses --kv where it has no meaning.
func (s *session) checkKV(cmd *cobra.Command) error {
	f := cmd.Flags()
	if !f.Changed("kv") {
		return nil
	}
	if f.Changed("redis") {
		return errors.New("--kv and --redis name two servers: give one of them")
	}
	command := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" ")
	if why, ok := needsRedis[command]; ok {
		return &kvError{command, why}
	}
	_, err := s.kvServer()
	return err
}

// kvServer is where --kv points.
type kvServer struct {
	memcached string // host:port
	redis     string // URL of a Redis, where it is none
}

// kvServer takes the value of --kv apart.
func (s *session) kvServer() (kvServer, error) {
	u, err := url.Parse(s.kv)
	if err != nil {
		var cause *url.Error // which repeats the whole value
		if errors.As(err, &cause) {
			err = cause.Err
		}
		if mayHoldPassword(s.kv) {
			err = errors.New("does not parse; special characters of a password must be percent-encoded")
		}
		return kvServer{}, s.ofKV(err)
	}
	switch u.Scheme {
	case "memcache":
		switch {
		case u.Hostname() == "":
			return kvServer{}, s.ofKV(errors.New("no host: write memcache://HOST:PORT"))
		case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return kvServer{}, s.ofKV(errors.New("a memcached has no user, database or options: write memcache://HOST:PORT"))
		case u.Port() == "":
			return kvServer{memcached: net.JoinHostPort(u.Hostname(), memcachePort)}, nil
		}
		return kvServer{memcached: u.Host}, nil
	case "redis-opaque", "rediss-opaque":
		if u.Hostname() == "" {
			return kvServer{}, s.ofKV(fmt.Errorf("no host: write %s://HOST:PORT", u.Scheme))
		}
		return kvServer{redis: strings.Replace(s.kv, "-opaque://", "://", 1)}, nil
	case "redis", "rediss":
		return kvServer{}, s.ofKV(fmt.Errorf("write %s-opaque:// for a Redis as a store of bytes, "+
			"or give the URL to --redis for indexes that Redis keeps", u.Scheme))
	}
	return kvServer{}, s.ofKV(errors.New("must be " + kvForms))
}

// ofKV says that an error is about the server that --kv names. A value that may hold a password is not shown.
func (s *session) ofKV(err error) error {
	if mayHoldPassword(s.kv) {
		return fmt.Errorf("--kv (not shown, it may hold a password): %w", err)
	}
	return fmt.Errorf("--kv %s: %w", s.kv, err)
}

func mayHoldPassword(address string) bool {
	return strings.Contains(address, "@") || strings.Contains(address, "password")
}

// connectKV gives the store that --kv names. It is the caller's to close.
func (s *session) connectKV(ctx context.Context) (kv opaque.KV, done func(), err error) {
	at, err := s.kvServer()
	if err != nil {
		return nil, nil, err
	}
	if at.memcached != "" {
		switch {
		case s.timeout <= 0:
			return nil, nil, fmt.Errorf("--timeout %v: must be over zero", s.timeout)
		case s.passwordFile != "" || s.cacert != "" || s.cert != "" || s.certKey != "":
			return nil, nil, errors.New("--password-file, --cacert, --cert and --key are for Redis, not for a memcached")
		}
		m := memcachekv.New(at.memcached, memcachekv.Options{Timeout: s.timeout})
		return m, func() { _ = m.Close() }, nil // all replies are read
	}
	srv, err := s.serverAt(at.redis)
	if err != nil {
		return nil, nil, err
	}
	rdb, err := srv.connect(ctx)
	if err != nil {
		return nil, nil, s.ofKV(err)
	}
	return rediskv.New(rdb), func() { _ = rdb.Close() }, nil // all replies are read
}

// openKV opens the entity type on the store that --kv names; what is wrong with the declaration comes first. done is never
// nil.
func (s *session) openKV(ctx context.Context, t target, a access) (o onKV, done func(), err error) {
	done = func() {}
	if err := opaque.Check(t.Declared); err != nil {
		return o, done, err
	}
	kv, closeKV, err := s.connectKV(ctx)
	if err != nil {
		return o, done, err
	}
	options := s.kvOptions(t)
	options.ReadOnly = a == reading
	o.Store, err = opaque.OpenStore(ctx, kv, t.Declared, options)
	switch {
	case err == nil:
		return o, closeKV, nil
	case errors.Is(err, opaque.ErrUnavailable):
		err = s.ofKV(err)
	case errors.Is(err, opaque.ErrKeyType):
		err = s.ofKV(fmt.Errorf("%w (indexes that Redis keeps have the same names: those are for --redis)", err))
	case a == reading && errors.Is(err, index.ErrNotReady):
		err = fmt.Errorf("%w (load, put, delete and repair bring a declaration into force, a query does not)", err)
	}
	closeKV()
	return o, done, err
}

// kvOptions are those of a schema file, or what the program says.
func (s *session) kvOptions(t target) opaque.Options {
	switch {
	case t.schema != nil:
		return opaque.Options{Buckets: t.schema.buckets(), IDBuckets: t.schema.idBuckets}
	case s.app.Opaque != nil:
		return s.app.Opaque(t.Declared)
	}
	return opaque.Options{}
}
