package stacktest

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"testing"

	"hongbao/internal/devstack"
)

// Lock is what a Redis of a test asks of its clients, as one of production does. The
// zero value is an open door.
type Lock struct {
	Password  string     // of the default user; "" = none
	Authority *Authority // signs the server's certificate; nil = no TLS
	Mutual    bool       // it wants to see a certificate of the client's too
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

// lockedRedis is a Redis that is ready when it answers an authorized client.
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
			{"port", "0"}, {"tls-port", strconv.Itoa(port)}, {"tls-cert-file", a.localCert}, {"tls-key-file", a.localKey},
			{"tls-ca-cert-file", a.File}, {"tls-auth-clients", map[bool]string{true: "yes", false: "no"}[l.Mutual]}, {"tls-replication", "yes"},
			{"tls-cluster", "yes"},
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
	own, err := tls.LoadX509KeyPair(l.Authority.localCert, l.Authority.localKey)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return (&tls.Dialer{Config: &tls.Config{RootCAs: l.Authority.Pool, Certificates: []tls.Certificate{own},
		MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", addr)
}
