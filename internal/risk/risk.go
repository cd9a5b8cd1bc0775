// Package risk asks an external service whether a grab may go on: one HTTP call, bounded in time
// and concurrency. The caller decides what a missing answer means.
package risk

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
)

// Bounds of the timeout, and its default.
const (
	MinTimeout     = 10 * time.Millisecond
	MaxTimeout     = 2 * time.Second
	DefaultTimeout = 300 * time.Millisecond
)

const (
	// maxConcurrent is how many requests run concurrently, each on a kept-alive connection. Others
	// wait, within their timeout.
	maxConcurrent = 128
	// maxAnswer bounds the bytes read of an answer.
	maxAnswer = 4 << 10
	// idleTime is how long an idle connection is kept.
	idleTime = 60 * time.Second
)

// Request is a grab that could win, as the service reads it.
type Request struct {
	App      string `json:"app"`
	PacketID string `json:"packet_id"`
	UserID   string `json:"user_id"`
	At       string `json:"at"` // RFC 3339 UTC with milliseconds
}

// ErrUnanswered means that the service did not answer yes or no in time. ErrOverflow, a kind of it,
// means that the service was not called: more requests waited than it answers in time.
var (
	ErrUnanswered = errors.New("no answer of the risk check")
	ErrOverflow   = fmt.Errorf("%w: too many concurrent requests", ErrUnanswered)
)

// Check calls one service.
type Check struct {
	url     string
	key     string
	timeout time.Duration
	client  http.Client
	slots   chan struct{}
}

// New makes a check. address is where requests are posted, key their bearer token. End it with
// Close.
func New(address, key string, timeout time.Duration) (*Check, error) {
	if timeout < MinTimeout || timeout > MaxTimeout {
		return nil, fmt.Errorf("risk check: timeout %v: not from %v to %v", timeout, MinTimeout, MaxTimeout)
	}
	if at, err := url.Parse(address); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil {
		return nil, errors.New("risk check: the address must be an http or https URL")
	}
	dialer := &net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}
	return &Check{url: address, key: key, timeout: timeout, slots: make(chan struct{}, maxConcurrent), client: http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxConnsPerHost: maxConcurrent, MaxIdleConns: maxConcurrent, MaxIdleConnsPerHost: maxConcurrent,
			IdleConnTimeout:     idleTime,
			TLSHandshakeTimeout: MaxTimeout, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableCompression: true,
		},
		// A redirect target must not get the key.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes idle connections.
func (c *Check) Close() { c.client.CloseIdleConnections() }

// Allows asks whether a grab may go on. Errors: ErrUnanswered, for anything but a clear yes or no
// in time; ErrOverflow when the service could not be called in time.
func (c *Check) Allows(ctx context.Context, q Request) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return false, fmt.Errorf("%w: %d are under way: %w", ErrOverflow, maxConcurrent, ctx.Err())
	}
	allow, err := c.ask(ctx, q)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return allow, nil
}

func (c *Check) ask(ctx context.Context, q Request) (bool, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return false, fmt.Errorf("encode the risk request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("User-Agent", "hongbao")
	// A nil header is not sent, and lets net/http retry a request whose idle connection was just closed.
	req.Header["X-Idempotency-Key"] = nil
	res, err := c.client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return false, fmt.Errorf("read the answer: %w", err)
	case res.StatusCode != http.StatusOK:
		return false, fmt.Errorf("status %d", res.StatusCode)
	case len(raw) > maxAnswer:
		return false, fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	var said struct { // exact name, once: anything else is no clear answer
		Allow *bool `json:"allow"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return false, fmt.Errorf("decode the answer: %w", err)
	}
	if said.Allow == nil {
		return false, errors.New("an answer without allow")
	}
	return *said.Allow, nil
}
