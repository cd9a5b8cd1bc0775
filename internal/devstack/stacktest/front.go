package stacktest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Front speaks TLS in front of a server that does not: it copies bytes.
type Front struct {
	Addr string

	mu    sync.Mutex
	conns map[net.Conn]bool
	seen  []string
}

// NewFront starts a front of the server at an address. It ends with the test.
func NewFront(t testing.TB, backend string, config *tls.Config) *Front {
	t.Helper()
	config = config.Clone()
	if config.NextProtos == nil {
		config.NextProtos = []string{"h2"}
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	f := &Front{Addr: listener.Addr().String(), conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(conn.(*tls.Conn), backend) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); f.Drop(); all.Wait() })
	return f
}

// frontPatience is for a handshake, and for the server behind.
const frontPatience = 10 * time.Second

func (f *Front) serve(conn *tls.Conn, backend string) {
	defer func() { _ = conn.Close() }()
	f.keep(conn, true)
	defer f.keep(conn, false)
	ctx, cancel := context.WithTimeout(context.Background(), frontPatience)
	defer cancel()
	if conn.HandshakeContext(ctx) != nil {
		return
	}
	behind, err := (&net.Dialer{}).DialContext(ctx, "tcp", backend)
	if err != nil {
		return
	}
	defer func() { _ = behind.Close() }()
	f.note(conn.ConnectionState().PeerCertificates)
	go func() {
		_, _ = io.Copy(behind, conn)
		_ = behind.Close()
	}()
	_, _ = io.Copy(conn, behind)
}

func (f *Front) keep(conn net.Conn, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if is {
		f.conns[conn] = true
	} else {
		delete(f.conns, conn)
	}
}

func (f *Front) note(shown []*x509.Certificate) {
	name := ""
	if len(shown) > 0 {
		name = shown[0].Subject.CommonName
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, name)
}

// Seen are the names of the client certificates of all connections so far that were
// taken, "" for one without.
func (f *Front) Seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

// Drop ends all connections, as a server does with those that are old.
func (f *Front) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_ = conn.Close()
	}
}
