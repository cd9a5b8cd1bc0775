package worker

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
)

// Server is the address and the security settings of a Temporal server; cmd fills it. Without TLS
// the connection is plain text, as on one machine.
type Server struct {
	Address   string // host:port of the frontend
	Namespace string

	TLS        bool   // required by the fields below
	CAFile     string // PEM of the certificate authorities that are trusted; "" = the system's
	ServerName string // that the server's certificate must have; "" = the address's
	CertFile   string // PEM of the client certificate, the leaf first; "" = none
	KeyFile    string // PEM of its private key
	APIKey     string // sent as a bearer token; "" = none
}

// Dial returns a client of the server, as the function Dial does, and reads its files. The client
// certificate is read again for each connection.
func (s Server) Dial(logger *slog.Logger, with ...func(*client.Options)) (client.Client, error) {
	config, err := s.tlsConfig(logger)
	if err != nil {
		return nil, fmt.Errorf("temporal client: %w", err)
	}
	secured := func(o *client.Options) {
		o.ConnectionOptions.TLS = config
		if s.APIKey != "" {
			o.Credentials = client.NewAPIKeyStaticCredentials(s.APIKey)
			o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(redactKey(s.APIKey)))
		}
	}
	return Dial(s.Address, s.Namespace, logger, append([]func(*client.Options){secured}, with...)...)
}

// tlsConfig is nil without TLS.
func (s Server) tlsConfig(logger *slog.Logger) (*tls.Config, error) {
	if !s.TLS {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	if s.CAFile != "" {
		authorities, err := readAuthorities(s.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = authorities
	}
	if s.CertFile != "" {
		p := &pair{certFile: s.CertFile, keyFile: s.KeyFile, logger: logger}
		first, err := readPair(s.CertFile, s.KeyFile)
		if err != nil {
			return nil, err
		}
		p.last.Store(&first)
		// Not Certificates (which client.NewMTLSCredentials fills): that is read once. It also
		// sends no certificate when the server names other authorities, which then looks like a
		// missing certificate.
		config.GetClientCertificate = p.present
	}
	return config, nil
}

// pair is a client certificate and its key, which may be rotated while the process runs.
type pair struct {
	certFile, keyFile string
	logger            *slog.Logger
	last              atomic.Pointer[tls.Certificate] // last pair read without error
}

// present reads the pair for one handshake. A rotation replaces the two files one after the
// other: while they do not match, the previous pair is used.
func (p *pair) present(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	now, err := readPair(p.certFile, p.keyFile)
	if err != nil {
		p.logger.WarnContext(info.Context(), "Client certificate for Temporal not read; using the previous one.", slog.Any("error", err))
		return p.last.Load(), nil
	}
	p.last.Store(&now)
	return &now, nil
}

// Material is the content of a file of a Server.
type Material string

// The files of a Server.
const (
	MaterialCA   Material = "authorities"
	MaterialCert Material = "client certificate"
	MaterialKey  Material = "key of the client certificate"
)

// FileError is a file that cannot be used. It does not quote the file's contents.
type FileError struct {
	Of  Material
	Err error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s: %v", e.Of, e.Err) }
func (e *FileError) Unwrap() error { return e.Err }

// Errors of files that can be read.
var (
	ErrNoCertificate = errors.New("the file holds no usable certificate in PEM")
	ErrNoKey         = errors.New("the file holds no private key in PEM")
	ErrKeyUnfit      = errors.New("the file holds no key that can be used with the client certificate")
)

// CheckFiles reads the configured files. Each unusable one is a *FileError, joined with the
// others.
func (s Server) CheckFiles() error {
	var problems error
	if s.CAFile != "" {
		_, err := readAuthorities(s.CAFile)
		problems = errors.Join(problems, err)
	}
	if s.CertFile != "" {
		_, err := readPair(s.CertFile, s.KeyFile)
		problems = errors.Join(problems, err)
	}
	return problems
}

// CertificateEnds returns the end of the client certificate's validity. CertFile must be set.
func (s Server) CertificateEnds() (time.Time, error) {
	p, err := readPair(s.CertFile, s.KeyFile)
	if err != nil {
		return time.Time{}, err
	}
	return p.Leaf.NotAfter, nil
}

func readAuthorities(name string) (*x509.CertPool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, &FileError{MaterialCA, err}
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, &FileError{MaterialCA, ErrNoCertificate}
	}
	return authorities, nil
}

// readPair names the faulty file of the two, which tls.LoadX509KeyPair does not.
func readPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, &FileError{MaterialCert, err}
	}
	leaf := block(cert, func(kind string) bool { return kind == "CERTIFICATE" })
	if leaf == nil {
		return tls.Certificate{}, &FileError{MaterialCert, ErrNoCertificate}
	}
	if _, err := x509.ParseCertificate(leaf.Bytes); err != nil {
		return tls.Certificate{}, &FileError{MaterialCert, fmt.Errorf("%w: %w", ErrNoCertificate, err)}
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, &FileError{MaterialKey, err}
	}
	if block(key, func(kind string) bool { return strings.HasSuffix(kind, "PRIVATE KEY") }) == nil {
		return tls.Certificate{}, &FileError{MaterialKey, ErrNoKey}
	}
	p, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, &FileError{MaterialKey, fmt.Errorf("%w: %w", ErrKeyUnfit, err)}
	}
	return p, nil
}

// block returns the first PEM block of a kind, or nil.
func block(text []byte, is func(kind string) bool) *pem.Block {
	for {
		var b *pem.Block
		if b, text = pem.Decode(text); b == nil || is(b.Type) {
			return b
		}
	}
}
