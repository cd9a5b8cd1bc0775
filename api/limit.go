package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"hongbao/packet"
)

// Limit allows so many in a span of time; as many at once after a quiet time, and then
// one whenever its part of the span has passed. The zero value limits nothing.
type Limit struct {
	N    int64
	Span time.Duration
}

// The bounds of a limit.
const (
	maxLimitN    = 1_000_000
	minLimitSpan = time.Second
	maxLimitSpan = 24 * time.Hour
)

// LimitForm is how limits are written, for people.
const LimitForm = "0, or a number and a span of time such as 20/1m: 1 to 1000000 in 1s to 24h"

var errLimitForm = errors.New("is not " + LimitForm)

// ParseLimit reads a limit as it is configured: 20/1m, or 0 for none.
func ParseLimit(text string) (Limit, error) {
	if text == "0" {
		return Limit{}, nil
	}
	number, span, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != number {
		return Limit{}, errLimitForm
	}
	d, err := time.ParseDuration(span)
	if l := (Limit{N: n, Span: d}); err == nil && l.valid() && l != (Limit{}) {
		return l, nil
	}
	return Limit{}, errLimitForm
}

func (l Limit) valid() bool {
	return l == Limit{} || l.N >= 1 && l.N <= maxLimitN && l.Span >= minLimitSpan && l.Span <= maxLimitSpan
}

// Limits bound what callers do, over all processes. They are kept in Redis: while it
// cannot be asked everybody is let through, and grabs fail by themselves.
type Limits struct {
	User    Limit // grabs of one user of an app
	Address Limit // grabs from one network address: who connects, which may be a proxy
	Key     Limit // requests of one key of an app, whatever they ask
}

func (l Limits) any() bool { return l != Limits{} }

// Limiter counts, over all processes, what callers do against their limits.
type Limiter interface {
	WithinLimit(ctx context.Context, kind, who string, n int64, span time.Duration) (wait time.Duration, err error)
	GiveBack(ctx context.Context, kind, who string, n int64, span time.Duration) error
}

// Kinds of limits, as metrics and keys in Redis name them.
const (
	limitUser    = "user"
	limitAddress = "address"
	limitKey     = "key"
)

// limitPatience is how long a limit is waited for. It is an economy: what it protects
// must not wait for it.
const limitPatience = 200 * time.Millisecond

var tellNoLimit seldom

// overLimit counts the request against a limit and returns a refusal when it is over it.
func (r *request) overLimit(kind, who string, l Limit) *refusal {
	if l == (Limit{}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, limitPatience)
	defer cancel()
	wait, err := r.server.cfg.Limiter.WithinLimit(ctx, kind, who, l.N, l.Span)
	if err != nil {
		if tellNoLimit.due() {
			slog.WarnContext(r.named(), "a rate limit cannot be looked at, and lets everybody through", slog.String("limit", kind),
				slog.Any("error", err))
		}
		return nil
	}
	if wait <= 0 {
		return nil
	}
	return &refusal{code: CodeRateLimited, retryAfter: wait, cause: limitError(kind)}
}

// limitError says which limit refused; it is not told to the client.
type limitError string

func (e limitError) Error() string { return fmt.Sprintf("over the limit by %s", string(e)) }

// refuseLimited counts and returns the refusal; nil stays nil.
func (r *request) refuseLimited(over *refusal) error {
	if over == nil {
		return nil
	}
	if kind, ok := errors.AsType[limitError](over); ok {
		r.server.metrics.limited[string(kind)].Inc()
	}
	return over
}

// keyOverLimit is for every request of an app but the grab, which has an answer for who
// has won before it comes to limits.
func (r *request) keyOverLimit() error {
	return r.refuseLimited(r.overLimit(limitKey, r.caller.key.ID, r.server.cfg.Limits.Key))
}

// grabOverLimit looks at the limits of a grab, the narrowest first: what one refuses is not
// counted against the next.
func (r *request) grabOverLimit(user string) *refusal {
	limits := &r.server.cfg.Limits
	if !limits.any() {
		return nil
	}
	if over := r.overLimit(limitUser, r.caller.app.ID+":"+user, limits.User); over != nil {
		return over
	}
	// Where the connection comes from. Headers of proxies are not believed: anybody can write them.
	if over := r.overLimit(limitAddress, networkOf(r.c.Context().RemoteIP()), limits.Address); over != nil {
		return over
	}
	return r.overLimit(limitKey, r.caller.key.ID, limits.Key)
}

// real reports whether a grab was an attempt at a share: one that took it, or came before
// its time or without a right to it. Who finds nothing left, or gets what he has already,
// has tried nothing.
func real(got packet.GrabResult) bool {
	return got == packet.GrabWon || got == packet.GrabNotOpenYet || got == packet.GrabNotEligible
}

// attempted gives back what a grab was counted for against the limit of its user, when it
// was no real attempt. When that fails the user has one less for a while. The limits of
// addresses and keys are of requests, whatever they find.
func (r *request) attempted(user string, got packet.GrabResult, err error) {
	if err != nil || !real(got) {
		r.giveBack(user)
	}
}

// giveBack takes back what a grab was counted for against the limit of its user.
func (r *request) giveBack(user string) {
	l := r.server.cfg.Limits.User
	if l == (Limit{}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), limitPatience)
	defer cancel()
	if err := r.server.cfg.Limiter.GiveBack(ctx, limitUser, r.caller.app.ID+":"+user, l.N, l.Span); err != nil && tellNoLimit.due() {
		slog.WarnContext(r.named(), "what was counted against a rate limit cannot be given back", slog.String("limit", limitUser),
			slog.Any("error", err))
	}
}

// networkOf is what is counted of an address: all of it, and of IPv6 the network that one
// customer has.
func networkOf(ip net.IP) string {
	at, ok := netip.AddrFromSlice(ip)
	if !ok {
		return ""
	}
	if at = at.Unmap(); at.Is6() {
		return netip.PrefixFrom(at, 64).Masked().String()
	}
	return at.String()
}

// grabBeside answers a grab that may take nothing: with the claim that the user has
// already, in every state of the packet, else with what instead says of the packet.
func (r *request) grabBeside(id, user string, instead func(location) (answer, error)) (answer, error) {
	c, ok, err := r.server.cfg.Pool.Claim(r.ctx, id, user)
	if err != nil {
		return answer{}, err
	}
	if ok {
		return r.grabbed(packet.Grabbed{Result: packet.GrabReplayed, Claim: c})
	}
	l, err := r.server.locate(r.ctx, id) // the claims of a pool that was retired are in MySQL
	if err != nil {
		return answer{}, err
	}
	if l.alive {
		return instead(l)
	}
	ctx, cancel := context.WithTimeout(r.ctx, readLimit)
	defer cancel()
	paid, err := r.server.cfg.Store.Claim(ctx, id, user)
	switch {
	case err == nil:
		return r.grabbed(packet.Grabbed{Result: packet.GrabReplayed, Claim: paid.Claim})
	case !errors.Is(err, packet.ErrNotFound):
		return answer{}, err
	case !l.settled:
		return r.grabbed(packet.Grabbed{Result: packet.GrabUnavailable})
	}
	return instead(l)
}
