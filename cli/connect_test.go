package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/redistest"
)

func TestThePasswordComesFromTheEnvironmentOrAFile(t *testing.T) {
	s := redistest.Redis(t, "--requirepass", "s3 cret@/:")
	c := newTool(t, s, itemSchema)
	record := `{"id":"1","tag":"a"}`

	a := c.input(record, "put")
	require.Equal(t, 2, a.code)
	require.Contains(t, a.err, "NOAUTH")
	c.env[envPassword] = "wrong"
	a = c.input(record, "put")
	require.Equal(t, 2, a.code)
	require.Contains(t, a.err, "WRONGPASS")
	c.env[envPassword] = "s3 cret@/:"
	c.fineInput(record, "put")

	c.env[envPassword] = "wrong"
	c.fineInput(record, "--password-file", write(t, "password", "s3 cret@/:\n"), "put")
	c.fineInput(record, "--redis", "redis://:s3%20cret%40%2F%3A@"+s.Addr, "put")
	c.refused(2, []string{"--password-file", write(t, "password", "\n"), "count", "tag=a"}, "holds one line")
	c.refused(2, []string{"--password-file", "/no/such", "count", "tag=a"}, "/no/such")
}

func TestAURLThatDoesNotParseNeverShowsItsPassword(t *testing.T) {
	c := newTool(t, redistest.Mini(t), itemSchema)
	for _, address := range []string{
		"redis://user:hidd/en@host:6379", "redis://:hidden%zz@host", "redis://u:12/hidden@host", "redis://u:hidden@h:x",
		"http://u:hidden@host", "redis://u:hidden@host/x", "redis://u:hidden@host?nosuch=1", "redis://h?password=hidden&nosuch=1",
		"redis://h?addr=h2:1&nosuch=1&password=hidden", "redis://h?master_name=m&password=hidden&nosuch=1",
	} {
		a := c.refused(2, []string{"--redis", address, "count", "tag=a"}, "the URL of the server does not parse")
		require.NotContains(t, a.err, "hidd", address)
		require.NotContains(t, a.err, "en@", address)
	}
	c.refused(2, []string{"--redis", "http://host", "count", "tag=a"}, "invalid URL scheme: http")
	c.refused(2, []string{"--redis", "redis://h?nosuch=1", "count", "tag=a"}, "nosuch")
	c.refused(2, []string{"--redis", "redis://h:1/3?addr=h:2", "count", "tag=a"}, "no database but 0")
	c.env = nil
	c.refused(2, []string{"count", "tag=a"}, "no server: give --redis URL, or set LOCKSTEP_REDIS")
}

func TestAServerThatIsNotThereIsSaidSoWithinTheTimeout(t *testing.T) {
	c := newTool(t, redistest.Mini(t), itemSchema)
	c.refused(2, []string{"--redis", "redis://127.0.0.1:1", "--timeout", "2s", "count", "tag=a"}, "cannot reach the server at 127.0.0.1:1")

	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	require.NoError(t, err)
	defer silent.Close()
	start := time.Now()
	c.refused(2, []string{"--redis", "redis://" + silent.Addr().String(), "--timeout", "300ms", "count", "tag=a"}, "no answer within 300ms")
	require.Less(t, time.Since(start), 5*time.Second)
}

func TestTheClientFitsTheServer(t *testing.T) {
	connect := func(t *testing.T, address string) redis.UniversalClient {
		rdb, err := server{address: address, timeout: 5 * time.Second}.connect(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { rdb.Close() })
		return rdb
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		rdb := connect(t, s.URL())
		if s.Name == redistest.NameCluster {
			require.IsType(t, &redis.ClusterClient{}, rdb)
			rdb = connect(t, s.URL()+"?addr="+s.Addr)
			require.IsType(t, &redis.ClusterClient{}, rdb)
		} else {
			require.IsType(t, &redis.Client{}, rdb)
		}
		require.NoError(t, rdb.Ping(t.Context()).Err())
	})
	sentinel := connect(t, "redis://127.0.0.1:1?master_name=main&addr=127.0.0.1:2")
	require.Equal(t, "FailoverClient", sentinel.(*redis.Client).Options().Addr)

	dir := t.TempDir()
	redistest.Redis(t, "--unixsocket", filepath.Join(dir, "r.sock"))
	require.NoError(t, connect(t, "unix://"+filepath.Join(dir, "r.sock")).Ping(t.Context()).Err())
}

func TestTLSNeedsItsFilesToBeWhole(t *testing.T) {
	certFile, keyFile, pair := certificate(t)
	mini := miniredis.NewMiniRedis()
	require.NoError(t, mini.StartTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
	}))
	defer mini.Close()
	c := newTool(t, redistest.Mini(t), itemSchema)
	c.env[envRedis] = "rediss://" + mini.Addr()
	c.fineInput(`{"id":"1","tag":"a"}`, "--cacert", certFile, "--cert", certFile, "--key", keyFile, "put")

	for _, u := range []struct {
		args []string
		want string
	}{
		{nil, "certificate"},
		{[]string{"--cacert", certFile, "--cert", certFile}, "--cert and --key go together"},
		{[]string{"--cacert", certFile, "--key", keyFile}, "--cert and --key go together"},
		{[]string{"--cacert", "/no/such"}, "--cacert: open /no/such"},
		{[]string{"--cacert", keyFile}, "holds no certificate in PEM form"},
		{[]string{"--cert", certFile, "--key", certFile}, "--cert and --key: "},
		{[]string{"--redis", "redis://" + mini.Addr(), "--cacert", certFile}, "need a server that is given as rediss://"},
	} {
		c.refused(2, append(u.args, "count", "tag=a", "--timeout", "2s"), u.want)
	}
}

// certificate makes a certificate for the loopback interface that signs itself.
func certificate(t *testing.T) (certFile, keyFile string, pair tls.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}}, private.Public(), private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	pair, err = tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, certPEM, 0o600))
	require.NoError(t, os.WriteFile(keyFile, keyPEM, 0o600))
	return certFile, keyFile, pair
}

func TestASecretIsNoFlag(t *testing.T) {
	c := &tool{t: t}
	require.NotContains(t, strings.ReplaceAll(c.fine("--help"), "--password-file", ""), "--password")
}
