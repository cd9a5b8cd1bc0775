package pool

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Access holds the credentials and the TLS settings of a connection. The zero value is for a
// Redis without authentication and TLS.
type Access struct {
	// Username is a user of Redis' access control list; "" is the default user.
	Username string
	// Password is the user's password; "" for a Redis without authentication.
	Password string
	// SentinelPassword is the password of the sentinels' default user; for ModeSentinel only.
	SentinelPassword string
	// TLS makes all connections, also to sentinels, use TLS 1.2 or newer.
	TLS bool
	// Authorities sign the servers' certificates; nil means the system's authorities.
	Authorities *x509.CertPool
}

// String returns the settings without passwords, as the other formatters do.
func (a Access) String() string {
	return fmt.Sprintf("user %q, with a password: %v, tls: %v", a.Username, a.Password != "", a.TLS)
}

// GoString implements fmt.GoStringer.
func (a Access) GoString() string { return a.String() }

// MarshalText keeps passwords out of JSON and of structured logs.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// LogValue implements slog.LogValuer.
func (a Access) LogValue() slog.Value { return slog.StringValue(a.String()) }

// check returns an error for contradictory settings.
func (a Access) check(mode Mode) error {
	switch {
	case a.Username != "" && a.Password == "":
		return errors.New("redis user without a password: set the password too")
	case a.SentinelPassword != "" && mode != ModeSentinel:
		return fmt.Errorf("redis mode %s: the sentinel password is only for mode %s", mode, ModeSentinel)
	case a.Authorities != nil && !a.TLS:
		return errors.New("certificate authorities for redis without TLS: enable TLS")
	}
	return nil
}

// addTo adds credentials and TLS to the client's options.
func (a Access) addTo(opt *redis.UniversalOptions, timeout time.Duration) {
	opt.Username, opt.Password, opt.SentinelPassword = a.Username, a.Password, a.SentinelPassword
	if a.TLS {
		opt.Dialer = a.dialer(timeout)
	}
}

// dialer returns a function that connects by TLS. The client's own dialer ignores a
// cancelled context, and does not distinguish an untrusted server from an unreachable one.
func (a Access) dialer(timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	// the client library's own settings
	plain := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		cn, err := plain.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(cn, &tls.Config{ServerName: host, RootCAs: a.Authorities, MinVersion: tls.VersionTLS12})
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = cn.Close()
			return nil, handshakeError(addr, err)
		}
		return tlsConn{conn}, nil
	}
}

// handshakeError classifies a failed TLS handshake. A lost connection or a timeout is
// transient. Any other error is a configuration mistake: ErrTLS.
func handshakeError(addr string, err error) error {
	_, broken := errors.AsType[syscall.Errno](err)
	timeout, ok := errors.AsType[net.Error](err)
	if broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) || ok && timeout.Timeout() {
		return fmt.Errorf("TLS handshake with %s: %w", addr, err)
	}
	return fmt.Errorf("%w: handshake with %s: %w", ErrTLS, addr, err)
}

// isAlert reports whether the server ended TLS with an alert. A server that requires a
// client certificate sends it after the handshake.
func isTLSAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" // the name crypto/tls gives to a received alert
}

// diagnoseAccess returns ErrTLS when one side uses TLS and the other does not, or when the
// server requires a client certificate; and ErrProtected for a server in protected mode. The
// first call only sees a timeout or a closed connection, so this function probes each
// configured server without sending credentials.
func (c Config) diagnoseAccess(ctx context.Context, err error) error {
	if err == nil || isReply(err) || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrAccess) || errors.Is(err, ErrVolatile) {
		return err // the server replied, so both sides agree on TLS
	}
	for _, addr := range c.addrs() {
		var why error
		if c.Access.TLS {
			why = c.diagnosePlain(ctx, addr)
		} else if c.isProtected(ctx, addr) {
			why = fmt.Errorf("%w: %s has no password and accepts connections from its own host only", ErrProtected, addr)
		} else if tried := c.tryTLS(ctx, addr, Access{TLS: true}); tried == nil || errors.Is(tried, ErrTLS) && !isNoTLS(tried) {
			why = fmt.Errorf("%w: %s requires it: enable TLS for Redis", ErrTLS, addr)
		}
		if why != nil {
			return fmt.Errorf("%w: %w", why, err)
		}
	}
	return err
}

// isProtected reports whether a server refuses connections because of protected mode. The
// server sends this refusal on connect and closes, so a command in flight gets no reply.
func (c Config) isProtected(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, min(c.Timeout, alertWait))
	defer cancel()
	cn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false // unreachable
	}
	defer cn.Close()
	until, _ := ctx.Deadline()
	reply := make([]byte, len("-"+protectedCode))
	if err := cn.SetReadDeadline(until); err != nil {
		return false
	}
	_, err = io.ReadFull(cn, reply)
	return err == nil && string(reply) == "-"+protectedCode
}

// isNoTLS reports whether the handshake failed because the server does not use TLS.
func isNoTLS(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}

// tryTLS makes a TLS handshake and closes. It returns nil when the handshake succeeds and no
// alert follows.
func (c Config) tryTLS(ctx context.Context, addr string, as Access) error {
	cn, err := as.dialer(c.Timeout)(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer cn.Close()
	// Redis never sends first, so anything to read now is an alert.
	if err := cn.SetReadDeadline(time.Now().Add(min(c.Timeout, alertWait))); err != nil {
		return err
	}
	if _, err := cn.Read(make([]byte, 1)); isTLSAlert(err) {
		return fmt.Errorf("%w: %s: %w", ErrTLS, addr, err)
	}
	return nil
}

// alertWait bounds the wait for an alert after a handshake.
const alertWait = time.Second

// diagnosePlain returns why TLS to a server fails; nil when the reason is unknown.
func (c Config) diagnosePlain(ctx context.Context, addr string) error {
	if err := c.tryTLS(ctx, addr, c.Access); err == nil || errors.Is(err, ErrTLS) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil // unreachable
	}
	defer cn.Close()
	until, _ := ctx.Deadline()
	if err := cn.SetDeadline(until); err != nil {
		return nil
	}
	kind := make([]byte, 1)
	if _, err := io.WriteString(cn, "PING\r\n"); err != nil {
		return nil
	}
	if _, err := io.ReadFull(cn, kind); err == nil && (kind[0] == '+' || kind[0] == '-') {
		return fmt.Errorf("%w: %s does not support it: disable TLS for Redis", ErrTLS, addr)
	}
	return nil
}
