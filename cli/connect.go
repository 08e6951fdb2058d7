package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	envRedis    = "LOCKSTEP_REDIS"
	envPassword = "LOCKSTEP_REDIS_PASSWORD" //nolint:gosec // the name of a variable
)

// noLog is a logger of go-redis that says nothing: every failure also comes as an error.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

var silence = sync.OnceFunc(func() { redis.SetLogger(noLog{}) })

// server is where to connect to, as the flags and the environment say.
type server struct {
	address  string // URL
	password string // "" leaves the one of the URL
	tls      *tls.Config
	timeout  time.Duration
	pool     int // connections, 0 for the default of the client or the URL
}

// server reads flags and environment.
func (s *session) server() (server, error) {
	address := s.redis
	if address == "" {
		address = s.app.Getenv(envRedis)
	}
	if address == "" {
		return server{}, fmt.Errorf("no server: give --redis URL, or set %s (redis://host:6379)", envRedis)
	}
	return s.serverAt(address)
}

// serverAt reads the flags and the environment for a server at a URL.
func (s *session) serverAt(address string) (server, error) {
	srv := server{address: address, timeout: s.timeout}
	if s.timeout <= 0 {
		return srv, fmt.Errorf("--timeout %v: must be over zero", s.timeout)
	}
	scheme, _, _ := strings.Cut(srv.address, "://")
	var err error
	if srv.tls, err = s.tlsConfig(scheme); err != nil {
		return srv, err
	}
	srv.password, err = s.password(srv.address)
	return srv, err
}

// password is the one of --password-file, else of the URL (""), else of the environment.
func (s *session) password(address string) (string, error) {
	if s.passwordFile != "" {
		return passwordIn(s.passwordFile)
	}
	if u, err := url.Parse(address); err == nil {
		if _, given := u.User.Password(); given && !u.Query().Has("master_name") || u.Query().Has("password") {
			return "", nil
		}
	}
	return s.app.Getenv(envPassword), nil
}

// passwordIn reads a password from a file, without the line end that editors leave.
func passwordIn(file string) (string, error) {
	b, err := os.ReadFile(file) //nolint:gosec // the user names the file
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(b), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("%s: a password file holds one line", file)
	}
	return password, nil
}

// connect gives a client of the kind that the server needs. The caller closes it.
func (s *session) connect(ctx context.Context) (redis.UniversalClient, error) {
	srv, err := s.server()
	if err != nil {
		return nil, err
	}
	return srv.connect(ctx)
}

func (srv server) connect(ctx context.Context) (redis.UniversalClient, error) {
	u, err := url.Parse(srv.address)
	if err != nil {
		return nil, srv.malformed(err)
	}
	switch {
	case u.Query().Has("master_name"):
		return srv.sentinel()
	case u.Query().Has("addr"):
		return srv.cluster()
	}
	o, err := redis.ParseURL(srv.address)
	if err != nil {
		return nil, srv.malformed(err)
	}
	srv.tune(&o.PoolSize, &o.Password, &o.TLSConfig, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = 1, true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	rdb := redis.NewClient(o)
	inCluster, err := srv.inClusterMode(ctx, rdb)
	switch {
	case err != nil:
		_ = rdb.Close() // the error that says more is at hand
		return nil, fmt.Errorf("cannot reach the server at %s: %w", o.Addr, err)
	case !inCluster:
		return rdb, nil
	}
	if err := rdb.Close(); err != nil {
		return nil, err
	}
	return srv.cluster()
}

func (srv server) sentinel() (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(srv.address)
	if err != nil {
		return nil, srv.malformed(err)
	}
	srv.tune(&o.PoolSize, &o.Password, &o.TLSConfig, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = 1, true, true
	return redis.NewFailoverClient(o), nil
}

func (srv server) cluster() (redis.UniversalClient, error) {
	u, err := url.Parse(srv.address)
	if err != nil {
		return nil, srv.malformed(err)
	}
	if u.Scheme == "unix" {
		return nil, errors.New("the server is in cluster mode: give the address of a node, redis://host:port, instead of a socket")
	}
	if db := strings.Trim(u.Path, "/"); db != "" && db != "0" {
		return nil, errors.New("a cluster has no database but 0: leave it out of the URL")
	}
	o, err := redis.ParseClusterURL(srv.address)
	if err != nil {
		return nil, srv.malformed(err)
	}
	srv.tune(&o.PoolSize, &o.Password, &o.TLSConfig, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = 1, true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(o), nil
}

// tune sets what flags and environment say, where the URL does not say otherwise.
func (srv server) tune(pool *int, password *string, tlsConfig **tls.Config, timeouts ...*time.Duration) {
	if *pool == 0 {
		*pool = srv.pool
	}
	if srv.password != "" {
		*password = srv.password
	}
	if srv.tls != nil && *tlsConfig != nil {
		(*tlsConfig).RootCAs, (*tlsConfig).Certificates = srv.tls.RootCAs, srv.tls.Certificates
	}
	if *tlsConfig != nil {
		(*tlsConfig).MinVersion = tls.VersionTLS12
	}
	for _, t := range timeouts {
		if *t == 0 {
			*t = srv.timeout
		}
	}
}

// inClusterMode asks the server. A user without the right to INFO is asked for what a cluster client needs anyway.
func (srv server) inClusterMode(ctx context.Context, rdb *redis.Client) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, srv.timeout, fmt.Errorf("no answer within %v", srv.timeout))
	defer cancel()
	info, err := rdb.Info(ctx, "cluster").Result()
	if err == nil {
		return strings.Contains(info, "cluster_enabled:1"), nil
	}
	var reply redis.Error
	switch {
	case !errors.As(err, &reply):
		if context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
		return false, err
	case strings.HasPrefix(reply.Error(), "NOAUTH"), strings.HasPrefix(reply.Error(), "WRONGPASS"):
		return false, err
	case !strings.HasPrefix(reply.Error(), "NOPERM"):
		return false, nil // a server that knows no such section knows no cluster either
	}
	slots, err := rdb.Do(ctx, "cluster", "slots").Slice()
	return err == nil && len(slots) > 0, nil
}

// malformed describes an error of the URL without showing a password that may be in it.
func (srv server) malformed(err error) error {
	if strings.Contains(srv.address, "@") || strings.Contains(srv.address, "password") {
		return errors.New("the URL of the server does not parse (not shown, it may hold a password): " +
			"special characters of a password must be percent-encoded; " + envPassword + " needs no encoding")
	}
	return fmt.Errorf("the URL of the server: %w", err)
}
