package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
)

// Limits are rate limits over all processes, counted in Redis. While Redis is unavailable no
// limit applies, and grabs fail by themselves.
type Limits struct {
	User    access.Limit // grabs of one user of an app
	Address access.Limit // grabs from one network address of a connection, which may be a proxy
	Key     access.Limit // all requests of one key of an app
	Wins    access.Limit // shares that one user of an app wins, over all packets
}

func (l Limits) any() bool { return l != Limits{} }

func (l Limits) valid() bool {
	return l.User.Valid() && l.Address.Valid() && l.Key.Valid() && l.Wins.Valid()
}

// Limiter counts requests over all processes, against all limits of a request, or against none
// when one of them is exceeded.
type Limiter interface {
	WithinLimits(ctx context.Context, limits []access.AppliedLimit) (over int, wait time.Duration, err error)
	GiveBack(ctx context.Context, limits []access.AppliedLimit) error
}

// Kinds of limits, as named in metrics and in Redis keys.
const (
	limitUser    = "user"
	limitAddress = "address"
	limitKey     = "key"
	limitWins    = "wins"
)

// limitKinds are all kinds, in the order in which a grab is checked.
var limitKinds = []string{limitAddress, limitKey, limitUser, limitWins}

const (
	// limitPatience is how long a check of limits may take. A limit saves load; requests must
	// not wait for it.
	limitPatience = 200 * time.Millisecond
	// maxRefusals bounds the remembered refusals to some megabytes.
	maxRefusals = 50_000
	// rememberRefusal and rememberUser bound how long a refusal is remembered: then Redis is
	// asked again. Another process may give back a count of a user at any time.
	rememberRefusal = 10 * time.Second
	rememberUser    = time.Second
)

var noLimiterLog logThrottle

// refusals remembers until when limits refuse, so that repeated requests over a limit cost
// Redis nothing. Times are of the process clock.
type refusals struct {
	until *cache[time.Time]
}

func newRefusals() *refusals { return &refusals{newCache[time.Time](maxRefusals)} }

func refusalKey(c access.AppliedLimit) string { return c.Kind + "\x00" + c.Party }

// first returns the position of the first limit that is known to refuse, and its wait; 0:
// none.
func (f *refusals) first(limits []access.AppliedLimit) (over int, wait time.Duration) {
	for i, c := range limits {
		if until, ok := f.until.get(refusalKey(c)); ok {
			if wait := time.Until(until); wait > 0 {
				return i, wait
			}
		}
	}
	return 0, 0
}

// learn remembers a refusal until its wait is over, within the bound.
func (f *refusals) learn(c access.AppliedLimit, wait time.Duration) {
	most := rememberRefusal
	if c.Kind == limitUser || c.Kind == limitWins {
		most = rememberUser
	}
	f.until.put(refusalKey(c), time.Now().Add(min(wait, most)))
}

// forget drops refusals after a count was given back, so that Redis decides again.
func (f *refusals) forget(limits []access.AppliedLimit) {
	for _, c := range limits {
		if _, ok := f.until.get(refusalKey(c)); ok {
			f.until.put(refusalKey(c), time.Time{})
		}
	}
}

// remembered refuses a request that is known to be over one of its limits.
func (r *request) remembered(limits []access.AppliedLimit) *refusal {
	return overLimit(limits, r.server.refusals.first)
}

// overLimit returns the refusal of the first exceeded limit; nil: none.
func overLimit(limits []access.AppliedLimit, first func([]access.AppliedLimit) (int, time.Duration)) *refusal {
	over, wait := first(limits)
	if wait <= 0 {
		return nil
	}
	return &refusal{code: CodeRateLimited, retryAfter: wait, cause: limitError(limits[over].Kind)}
}

// count counts the request against all its limits, or refuses it and counts nothing.
func (r *request) count(limits []access.AppliedLimit) *refusal {
	if len(limits) == 0 {
		return nil
	}
	if over := r.remembered(limits); over != nil {
		return over
	}
	return overLimit(limits, func([]access.AppliedLimit) (int, time.Duration) {
		ctx, cancel := context.WithTimeout(r.ctx, limitPatience)
		defer cancel()
		over, wait, err := r.server.cfg.Limiter.WithinLimits(ctx, limits)
		if err != nil && noLimiterLog.allow() {
			slog.WarnContext(r.named(), "rate limits cannot be counted and do not apply",
				slog.Any("error", err))
		}
		if wait > 0 {
			r.server.refusals.learn(limits[over], wait)
		}
		return over, wait
	})
}

// limitError is the kind of the exceeded limit, for the log only.
type limitError string

func (e limitError) Error() string { return fmt.Sprintf("over the limit by %s", string(e)) }

// refuseLimited counts the refusal in the metrics and returns it; nil stays nil.
func (r *request) refuseLimited(over *refusal) error {
	if over == nil {
		return nil
	}
	if kind, ok := errors.AsType[limitError](over); ok {
		r.server.metrics.limited[string(kind)].Inc()
	}
	return over
}

// limitsOf returns the configured limits of some kinds, in the order of checks: address, key,
// user, wins.
func (r *request) limitsOf(user string, kinds ...string) []access.AppliedLimit {
	limits := &r.server.cfg.Limits
	if !limits.any() {
		return nil
	}
	var set []access.AppliedLimit
	for _, kind := range kinds {
		c := access.AppliedLimit{Kind: kind}
		switch kind {
		case limitAddress:
			c.Limit = limits.Address
		case limitKey:
			c.Limit, c.Party = limits.Key, r.caller.key.ID
		case limitUser:
			c.Limit, c.Party = limits.User, r.caller.app.ID+":"+user
		case limitWins:
			c.Limit, c.Party = limits.Wins, r.caller.app.ID+":"+user
		}
		if c.Limit == (access.Limit{}) {
			continue
		}
		if kind == limitAddress { // the peer of the connection; proxy headers can be forged
			c.Party = networkOf(r.c.Context().RemoteIP())
		}
		set = append(set, c)
	}
	return set
}

// keyOverLimit checks the limit of the key. The grab has its own check, because an existing
// claim is returned before limits apply.
func (r *request) keyOverLimit() error {
	return r.refuseLimited(r.count(r.limitsOf("", limitKey)))
}

// mayGrab checks what refuses a grab before the pool is asked: the limits of address and key,
// then the ticket, then the limits of the user. A grab without a valid ticket does not count
// for the user, because anyone could name that user. A grab known to be over a limit costs
// neither a signature check nor Redis.
func (r *request) mayGrab(fact facts, id string, asked grabbing) (over, unticketed *refusal) {
	beside := r.limitsOf(asked.user, limitAddress, limitKey)
	if over := r.remembered(beside); over != nil {
		return over, nil
	}
	if unticketed := r.unticketed(fact, id, asked); unticketed != nil {
		return r.count(beside), unticketed
	}
	return r.count(append(beside, r.limitsOf(asked.user, limitUser, limitWins)...)), nil
}

// countsAsAttempt reports whether a grab counts against the user's limits: it won, was too
// early or not eligible. A repeated grab and one of a sold-out packet do not count.
func countsAsAttempt(got packet.GrabResult) bool {
	return got == packet.GrabWon || got == packet.GrabNotOpenYet || got == packet.GrabNotEligible
}

// attempted gives back the counts of a grab against the limits of its user: the attempt when
// it does not count, the win when nothing was won. If that fails, the user has one less for a
// while. Limits of addresses and keys count all requests.
func (r *request) attempted(user string, got packet.GrabResult, err error) {
	switch {
	case err != nil || !countsAsAttempt(got):
		r.giveBack(user, limitUser, limitWins)
	case got != packet.GrabWon:
		r.giveBack(user, limitWins)
	}
}

// giveBack gives back the counts of a grab against limits of its user.
func (r *request) giveBack(user string, kinds ...string) {
	counted := r.limitsOf(user, kinds...)
	if len(counted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), limitPatience)
	defer cancel()
	if err := r.server.cfg.Limiter.GiveBack(ctx, counted); err != nil && noLimiterLog.allow() {
		slog.WarnContext(r.named(), "counts of rate limits cannot be given back", slog.Any("limits", kinds),
			slog.Any("error", err))
	}
	r.server.refusals.forget(counted)
}

// networkOf returns the counted part of an address: all of IPv4, and of IPv6 the /64 network
// of one customer.
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

// grabLimited answers a grab that is over a limit: with the existing claim of the user, else
// with the refusal. While the pool has the packet it costs three reads of Redis.
func (r *request) grabLimited(id, user string, over *refusal) (answer, error) {
	c, found, alive, err := r.server.cfg.Pool.LiveClaim(r.ctx, id, user)
	switch {
	case err != nil:
		return answer{}, err
	case found:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: c})
	case alive:
		return answer{}, r.refuseLimited(over)
	}
	return r.existingClaimOr(id, user, func(location) (answer, error) { return answer{}, r.refuseLimited(over) })
}

// existingClaimOr answers a grab that may take no share: with the existing claim of the user
// in every state of the packet, else with instead.
func (r *request) existingClaimOr(id, user string, instead func(location) (answer, error)) (answer, error) {
	c, ok, err := r.server.cfg.Pool.Claim(r.ctx, id, user)
	if err != nil {
		return answer{}, err
	}
	if ok {
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: c})
	}
	l, err := r.server.locate(r.ctx, id) // claims of a retired pool are in MySQL
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
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: paid.Claim})
	case !errors.Is(err, packet.ErrNotFound):
		return answer{}, err
	case !l.settled:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabUnavailable})
	}
	return instead(l)
}
