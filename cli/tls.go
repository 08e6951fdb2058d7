package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// tlsConfig reads the files of --cacert, --cert and --key; nil if none is given.
func (s *session) tlsConfig(scheme string) (*tls.Config, error) {
	if s.cacert == "" && s.cert == "" && s.certKey == "" {
		return nil, nil
	}
	if scheme != "rediss" {
		return nil, errors.New("--cacert, --cert and --key need a server that is given as rediss://")
	}
	if (s.cert == "") != (s.certKey == "") {
		return nil, errors.New("--cert and --key go together")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.cacert != "" {
		pem, err := os.ReadFile(s.cacert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--cacert: %s holds no certificate in PEM form", s.cacert)
		}
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.certKey)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
