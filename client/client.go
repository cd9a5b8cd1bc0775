// Package client is a client of the HTTP API of hongbao: Client for the backends of
// apps, Staff for the staff of the platform.
//
// Every call is idempotent and is retried after a broken connection, 503, 429 and 409
// request_in_progress: a create has one idempotency key for all its tries, and a grab is
// identified by packet and user. Other refusals are returned at once as a *Problem with
// a Code:
//
//	claim, err := c.Grab(ctx, packetID, wire.Grab{UserID: "bob"})
//	switch {
//	case client.IsCode(err, wire.CodeSoldOut):
//		// too late
//	case err != nil:
//		return err
//	}
//
// Requests, answers and codes are those of package wire. The package needs the standard
// library, wire and hongbao/internal/money only. A Client is safe for concurrent use.
// Deadlines are those of the contexts.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls the public listener with the key of an app. It can access packets of that app
// only.
type Client struct{ caller *caller }

// Staff calls the staff listener with the key of a member of staff.
type Staff struct{ caller *caller }

// ErrConfig is wrapped by every error of New and NewStaff.
var ErrConfig = errors.New("client configuration")

// New returns a client of the API at baseURL, such as "https://pay.example.com", with the key
// of an app. It makes no call. Errors wrap ErrConfig and never contain the key.
func New(baseURL, key string, options ...Option) (*Client, error) {
	c, err := newCaller(baseURL, key, options)
	if err != nil {
		return nil, err
	}
	return &Client{c}, nil
}

// NewStaff is New for the staff listener.
func NewStaff(baseURL, key string, options ...Option) (*Staff, error) {
	c, err := newCaller(baseURL, key, options)
	if err != nil {
		return nil, err
	}
	return &Staff{c}, nil
}

// Option configures a client.
type Option func(*caller)

// WithHTTPClient uses h for its transport. Its Timeout, if set, bounds each try besides
// Retry.TryTimeout; redirects are never followed.
func WithHTTPClient(h *http.Client) Option {
	return func(c *caller) {
		own := *h
		own.CheckRedirect = noRedirect
		c.http = &own
	}
}

// WithRetry sets the retry policy; zero members keep their defaults.
func WithRetry(r Retry) Option { return func(c *caller) { c.retry = r.withDefaults() } }

// WithUserAgent sets the User-Agent header.
func WithUserAgent(name string) Option { return func(c *caller) { c.userAgent = name } }

// noRedirect refuses redirects: the API has none, and a key must not be sent elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func newCaller(baseURL, key string, options []Option) (*caller, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%w: the base URL is not an http or https URL", ErrConfig)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: the base URL has a user, query or fragment", ErrConfig)
	case key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("%w: the key is empty or has characters other than visible ASCII", ErrConfig)
	}
	c := &caller{
		base:      strings.TrimRight(u.String(), "/"),
		authorize: func(h http.Header) { h.Set("Authorization", "Bearer "+key) },
		http:      &http.Client{CheckRedirect: noRedirect, Transport: defaultTransport()},
		retry:     Retry{}.withDefaults(),
		userAgent: "hongbao-go/1",
		pause:     pause,
	}
	for _, option := range options {
		option(c)
	}
	return c, nil
}

// defaultTransport keeps enough idle connections to one host for many concurrent calls.
func defaultTransport() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		own := t.Clone()
		own.MaxIdleConns, own.MaxIdleConnsPerHost = 0, 128
		return own
	}
	return http.DefaultTransport
}

// Close closes idle connections. The client stays usable.
func (c *Client) Close() { c.caller.http.CloseIdleConnections() }

// Close closes connections that are kept open. The client stays usable.
func (s *Staff) Close() { s.caller.http.CloseIdleConnections() }

// pause waits for d. It returns the error of ctx if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// segment percent-encodes one segment of a path: every byte but unreserved ones. The dots of
// "." and ".." are encoded too, because they would be resolved as path steps.
func segment(s string) string {
	const upperHex = "0123456789ABCDEF"
	dots := s == "." || s == ".."
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '~', c == '.' && !dots:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}
