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

// Limits bound what callers do, over all processes. They are kept in Redis: while it
// cannot be asked everybody is let through, and grabs fail by themselves.
type Limits struct {
	User    access.Limit // grabs of one user of an app
	Address access.Limit // grabs from one network address: who connects, which may be a proxy
	Key     access.Limit // requests of one key of an app, whatever they ask
	Wins    access.Limit // shares that one user of an app wins, in whatever packets
}

func (l Limits) any() bool { return l != Limits{} }

func (l Limits) valid() bool {
	return l.User.Valid() && l.Address.Valid() && l.Key.Valid() && l.Wins.Valid()
}

// Limiter counts requests, over all processes, against their limits: against all that a
// request has, or, when one of them allows no more before a time to wait, against none.
type Limiter interface {
	WithinLimits(ctx context.Context, limits []access.AppliedLimit) (over int, wait time.Duration, err error)
	GiveBack(ctx context.Context, limits []access.AppliedLimit) error
}

// Kinds of limits, as metrics and keys in Redis name them.
const (
	limitUser    = "user"
	limitAddress = "address"
	limitKey     = "key"
	limitWins    = "wins"
)

// limitKinds are all of them, in the order in which a grab is looked at.
var limitKinds = []string{limitAddress, limitKey, limitUser, limitWins}

const (
	// limitPatience is how long a limit is waited for. It is an economy: what it protects
	// must not wait for it.
	limitPatience = 200 * time.Millisecond
	// maxRefusals bounds the refusals that a process remembers: some megabytes.
	maxRefusals = 50_000
	// rememberRefusal and rememberUser are how long a refusal is remembered at most, if its
	// wait is longer: so often Redis is asked again. What is counted for a user may be given
	// back by another process at any time.
	rememberRefusal = 10 * time.Second
	rememberUser    = time.Second
)

var noLimiterLog logThrottle

// refusals remembers until when limits refuse, so that a party that goes on asking costs
// Redis nothing. The times are of the process' own clock.
type refusals struct {
	until *cache[time.Time]
}

func newRefusals() *refusals { return &refusals{newCache[time.Time](maxRefusals)} }

func refusalKey(c access.AppliedLimit) string { return c.Kind + "\x00" + c.Party }

// first returns the place of the first of some limits that is known to refuse, and its
// wait; 0: none is.
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

// learn remembers a refusal until its wait is over, but not for long.
func (f *refusals) learn(c access.AppliedLimit, wait time.Duration) {
	most := rememberRefusal
	if c.Kind == limitUser || c.Kind == limitWins {
		most = rememberUser
	}
	f.until.put(refusalKey(c), time.Now().Add(min(wait, most)))
}

// forget lets Redis decide again, when something was given back.
func (f *refusals) forget(limits []access.AppliedLimit) {
	for _, c := range limits {
		if _, ok := f.until.get(refusalKey(c)); ok {
			f.until.put(refusalKey(c), time.Time{})
		}
	}
}

// remembered refuses a request that the process knows to be over one of its limits.
func (r *request) remembered(limits []access.AppliedLimit) *refusal {
	return overLimit(limits, r.server.refusals.first)
}

// overLimit makes the refusal of the first limit that refuses; nil: none does.
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
			slog.WarnContext(r.named(), "rate limits cannot be counted; those that cannot be looked at let everybody through",
				slog.Any("error", err))
		}
		if wait > 0 {
			r.server.refusals.learn(limits[over], wait)
		}
		return over, wait
	})
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

// limitsOf returns the limits of some kinds that are set, in the order in which they are
// looked at: address, key, user, wins.
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
		if kind == limitAddress { // where the connection comes from; headers of proxies are not believed: anybody can write them
			c.Party = networkOf(r.c.Context().RemoteIP())
		}
		set = append(set, c)
	}
	return set
}

// keyOverLimit is for every request of an app but the grab, which has an answer for who
// has won before it comes to limits.
func (r *request) keyOverLimit() error {
	return r.refuseLimited(r.count(r.limitsOf("", limitKey)))
}

// mayGrab looks at what refuses a grab before the pool is asked: the limits of its address
// and its key, then its ticket, then the limits of its user. Without a valid ticket the
// grab does not count for the user: anybody may write that name. What is known to be over
// a limit costs neither a signature nor Redis anything.
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

// countsAsAttempt reports whether a grab was an attempt at a share: one that took it, or came before
// its time or without a right to it. Who finds nothing left, or gets what he has already,
// has tried nothing.
func countsAsAttempt(got packet.GrabResult) bool {
	return got == packet.GrabWon || got == packet.GrabNotOpenYet || got == packet.GrabNotEligible
}

// attempted gives back what a grab was counted for against the limits of its user: that of
// tries when it was no real attempt, that of wins when it won nothing. When that fails the
// user has one less for a while. The limits of addresses and keys are of requests, whatever
// they find.
func (r *request) attempted(user string, got packet.GrabResult, err error) {
	switch {
	case err != nil || !countsAsAttempt(got):
		r.giveBack(user, limitUser, limitWins)
	case got != packet.GrabWon:
		r.giveBack(user, limitWins)
	}
}

// giveBack takes back what a grab was counted for against limits of its user.
func (r *request) giveBack(user string, kinds ...string) {
	counted := r.limitsOf(user, kinds...)
	if len(counted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), limitPatience)
	defer cancel()
	if err := r.server.cfg.Limiter.GiveBack(ctx, counted); err != nil && noLimiterLog.allow() {
		slog.WarnContext(r.named(), "what was counted against rate limits cannot be given back", slog.Any("limits", kinds),
			slog.Any("error", err))
	}
	r.server.refusals.forget(counted)
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

// grabLimited answers a grab that is over a limit: with the claim that the user has
// already, else with the refusal. While the pool has the packet it costs three reads.
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

// existingClaimOr answers a grab that may take nothing: with the claim that the user has
// already, in every state of the packet, else with what instead says of the packet.
func (r *request) existingClaimOr(id, user string, instead func(location) (answer, error)) (answer, error) {
	c, ok, err := r.server.cfg.Pool.Claim(r.ctx, id, user)
	if err != nil {
		return answer{}, err
	}
	if ok {
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: c})
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
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: paid.Claim})
	case !errors.Is(err, packet.ErrNotFound):
		return answer{}, err
	case !l.settled:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabUnavailable})
	}
	return instead(l)
}
