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

// Access is what a connection needs besides an address: as whom it comes, and how it
// knows whom it talks to. The zero value is for a Redis that asks for nothing.
type Access struct {
	// Username is the user of Redis' access control list; "" is its default user.
	Username string
	// Password is that user's; "" for a Redis that asks for none.
	Password string
	// SentinelPassword is that of the sentinels' default user; in ModeSentinel alone.
	SentinelPassword string
	// TLS is whether all servers, sentinels too, are spoken to by TLS, 1.2 or newer.
	TLS bool
	// Authorities sign the certificates of the servers; nil means those of the system.
	Authorities *x509.CertPool
}

// String leaves out what is secret, as all other ways of printing do.
func (a Access) String() string {
	return fmt.Sprintf("user %q, with a password: %v, tls: %v", a.Username, a.Password != "", a.TLS)
}

// GoString implements fmt.GoStringer.
func (a Access) GoString() string { return a.String() }

// MarshalText keeps them out of JSON, and with it out of the log of what holds an Access.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// LogValue implements slog.LogValuer.
func (a Access) LogValue() slog.Value { return slog.StringValue(a.String()) }

// check returns an error for what contradicts itself.
func (a Access) check(mode Mode) error {
	switch {
	case a.Username != "" && a.Password == "":
		return errors.New("redis user without a password")
	case a.SentinelPassword != "" && mode != ModeSentinel:
		return fmt.Errorf("redis mode %s: a password of sentinels is of mode %s", mode, ModeSentinel)
	case a.Authorities != nil && !a.TLS:
		return errors.New("authorities for redis, but no TLS")
	}
	return nil
}

// addTo adds it to what the client is told.
func (a Access) addTo(opt *redis.UniversalOptions, timeout time.Duration) {
	opt.Username, opt.Password, opt.SentinelPassword = a.Username, a.Password, a.SentinelPassword
	if a.TLS {
		opt.Dialer = a.dialer(timeout)
	}
}

// dialer connects by TLS. The client's own would do that too, but not heed a context that
// ends, nor tell a server that cannot be trusted from one that is away.
func (a Access) dialer(timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	// as the client has it
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
		secured := tls.Client(cn, &tls.Config{ServerName: host, RootCAs: a.Authorities, MinVersion: tls.VersionTLS12})
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = cn.Close()
			return nil, handshakeError(addr, err)
		}
		return tlsConn{secured}, nil
	}
}

// handshakeError says what went wrong with a server that was there. A lost connection and
// silence pass by themselves; everything else is a mistake of one of the two sides.
func handshakeError(addr string, err error) error {
	_, broken := errors.AsType[syscall.Errno](err)
	timeout, ok := errors.AsType[net.Error](err)
	if broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) || ok && timeout.Timeout() {
		return fmt.Errorf("TLS handshake with %s: %w", addr, err)
	}
	return fmt.Errorf("%w: handshake with %s: %w", ErrTLS, addr, err)
}

// isAlert reports whether the other side ended TLS with an alert. A server that wants to
// see a certificate of ours says so only after the handshake.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" // as crypto/tls names an alert that was received
}

// diagnoseAccess returns an ErrTLS when we could not talk to a server because one side speaks
// TLS and the other does not, or because it wants to see a certificate of ours; and an
// ErrProtected when it is in protected mode. All that the first call gets then is silence,
// or a connection that is gone: a closer look is needed, at what was configured, which says
// nothing of us.
func (c Config) diagnoseAccess(ctx context.Context, err error) error {
	if err == nil || isReply(err) || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrAccess) || errors.Is(err, ErrVolatile) {
		return err // a server that answered speaks as we do
	}
	for _, addr := range c.addrs() {
		var why error
		if c.Access.TLS {
			why = c.diagnosePlain(ctx, addr)
		} else if c.isProtected(ctx, addr) {
			why = fmt.Errorf("%w: %s has no password and talks to its own machine only", ErrProtected, addr)
		} else if tried := c.tryTLS(ctx, addr, Access{TLS: true}); tried == nil || errors.Is(tried, ErrTLS) && !isNoTLS(tried) {
			why = fmt.Errorf("%w: %s speaks it, and we are not told to", ErrTLS, addr)
		}
		if why != nil {
			return fmt.Errorf("%w: %w", why, err)
		}
	}
	return err
}

// isProtected reports whether a server refuses us for its protected mode. It says so before
// it is asked anything, and a question that is under way then loses the answer.
func (c Config) isProtected(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, min(c.Timeout, alertWait))
	defer cancel()
	cn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false // it is away
	}
	defer cn.Close()
	until, _ := ctx.Deadline()
	said := make([]byte, len("-"+protectedCode))
	if err := cn.SetReadDeadline(until); err != nil {
		return false
	}
	_, err = io.ReadFull(cn, said)
	return err == nil && string(said) == "-"+protectedCode
}

// isNoTLS reports whether what answered a handshake was no TLS.
func isNoTLS(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}

// tryTLS makes a handshake and nothing else. nil: it came to its end, and no alert
// behind it.
func (c Config) tryTLS(ctx context.Context, addr string, as Access) error {
	cn, err := as.dialer(c.Timeout)(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer cn.Close()
	// Redis never speaks first: what can be read now is that it does not like us.
	if err := cn.SetReadDeadline(time.Now().Add(min(c.Timeout, alertWait))); err != nil {
		return err
	}
	if _, err := cn.Read(make([]byte, 1)); isAlert(err) {
		return fmt.Errorf("%w: %s: %w", ErrTLS, addr, err)
	}
	return nil
}

// alertWait is how long an alert behind a handshake may take.
const alertWait = time.Second

// diagnosePlain looks why a server does not talk to us by TLS. nil: for no reason that is known.
func (c Config) diagnosePlain(ctx context.Context, addr string) error {
	if err := c.tryTLS(ctx, addr, c.Access); err == nil || errors.Is(err, ErrTLS) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil // it is away
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
		return fmt.Errorf("%w: %s does not speak it, and we are told to", ErrTLS, addr)
	}
	return nil
}
