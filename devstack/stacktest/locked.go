package stacktest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"hongbao/devstack"
)

// Lock is what a Redis of a test asks of its clients, as one of production does. The
// zero value is an open door.
type Lock struct {
	Password  string     // of the default user; "" = none
	Authority *Authority // signs the server's certificate; nil = no TLS
	Mutual    bool       // it wants to see a certificate of the client's too
}

// Authority signs the certificates of servers on this machine.
type Authority struct {
	File string         // its own certificate, PEM
	Pool *x509.CertPool // with that certificate

	cert, key string // files of a server's
}

// NewAuthority makes an authority, and a certificate for the servers of this test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	dir := t.TempDir()
	a := &Authority{File: filepath.Join(dir, "ca.pem"), Pool: x509.NewCertPool(), cert: filepath.Join(dir, "server.pem"), key: filepath.Join(dir, "server.key")}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis of a test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}} // to each other servers are clients
	rootKey, serverKey := newKey(t), newKey(t)
	signed := sign(t, root, root, rootKey, rootKey)
	a.Pool.AddCert(signed)
	writePEM(t, a.File, "CERTIFICATE", signed.Raw)
	writePEM(t, a.cert, "CERTIFICATE", sign(t, server, signed, serverKey, rootKey).Raw)
	der, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.key, "PRIVATE KEY", der)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign lets parent sign a certificate that is good for this hour.
func sign(t testing.TB, c, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// FreshLockedRedis is FreshRedis behind a lock.
func FreshLockedRedis(t testing.TB, lock Lock, flags ...string) *Server {
	t.Helper()
	return fresh(t, func(tools devstack.Tools, dir string) (*Server, error) {
		server, err := newRedis(tools, dir)
		if err != nil {
			return nil, err
		}
		return lock.on(server, flags...), nil
	})
}

// FreshLockedRedisCluster is FreshRedisCluster behind a lock: its nodes speak TLS to
// each other too.
func FreshLockedRedisCluster(t testing.TB, lock Lock) []*Server {
	t.Helper()
	return freshCluster(t, func(node *Server) *Server { return lock.on(node) })
}

// lockedRedis is a Redis that is ready when it answers whom it lets in.
type lockedRedis struct {
	devstack.Redis
	lock Lock
}

// Ready implements devstack.Part.
func (r lockedRedis) Ready(ctx context.Context) error {
	return r.lock.ping(ctx, r.Addr())
}

// on puts a server behind the lock, with further options.
func (l Lock) on(server *Server, flags ...string) *Server {
	part := server.part.(devstack.Redis)
	part.Flags = append(part.Flags, flags...)
	for _, option := range l.options(part.Port) {
		part.Flags = append(part.Flags, "--"+option[0], option[1])
	}
	if l.Password != "" {
		part.Flags = append(part.Flags, "--masterauth", l.Password)
	}
	server.part, server.lock = lockedRedis{Redis: part, lock: l}, l
	return server
}

// options are the lines of a configuration that lock a Redis or a Sentinel.
func (l Lock) options(port int) (lines [][2]string) {
	if l.Password != "" {
		lines = append(lines, [2]string{"requirepass", l.Password})
	}
	if a := l.Authority; a != nil {
		lines = append(lines, [][2]string{
			{"port", "0"}, {"tls-port", strconv.Itoa(port)}, {"tls-cert-file", a.cert}, {"tls-key-file", a.key}, {"tls-ca-cert-file", a.File},
			{"tls-auth-clients", map[bool]string{true: "yes", false: "no"}[l.Mutual]}, {"tls-replication", "yes"}, {"tls-cluster", "yes"},
		}...)
	}
	return lines
}

func (l Lock) ping(ctx context.Context, addr string) error {
	answer, err := l.ask(ctx, addr, "PING")
	if err == nil && answer != "PONG" {
		err = fmt.Errorf("%w: to a ping it says %q", errRedis, answer)
	}
	return err
}

// ask sends one command to a server behind the lock and returns the text of the reply,
// which must be a string of either kind.
func (l Lock) ask(ctx context.Context, addr, command string) (string, error) {
	conn, err := l.dial(ctx, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	reply := bufio.NewReader(conn)
	if l.Password != "" {
		if _, err := say(conn, reply, "AUTH "+l.Password); err != nil {
			return "", err
		}
	}
	return say(conn, reply, command)
}

func (l Lock) dial(ctx context.Context, addr string) (net.Conn, error) {
	if l.Authority == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	own, err := tls.LoadX509KeyPair(l.Authority.cert, l.Authority.key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return (&tls.Dialer{Config: &tls.Config{RootCAs: l.Authority.Pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", addr)
}
