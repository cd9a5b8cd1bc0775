package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// Limits are rate limits over all processes, counted in Redis. While Redis is unavailable no
// limit applies; grabs then fail for want of the pool.
type Limits struct {
	User    access.Limit // grabs of one user of an app
	Address access.Limit // grabs over connections from one network address, which may be a proxy's
	Key     access.Limit // all requests of one key of an app
	Wins    access.Limit // shares that one user of an app wins, over all packets
}

func (l Limits) any() bool { return l != Limits{} }

func (l Limits) valid() bool {
	return l.User.Valid() && l.Address.Valid() && l.Key.Valid() && l.Wins.Valid()
}

// Limiter counts requests over all processes. WithinLimits counts a request against all its
// limits, or against none when one is exceeded: over is its position, wait is how long to wait.
// GiveBack takes the counts of a request off again.
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
	// limitTimeout bounds a check of limits. It is short because limits only save load: requests
	// must not wait for them.
	limitTimeout = 200 * time.Millisecond
	// maxRefusals is how many refusals are remembered, which takes some megabytes.
	maxRefusals = 50_000
	// A refusal is remembered for maxRefusalMemory, then Redis decides again. The limits of a
	// user have the shorter maxUserRefusalMemory: another process may give back a count.
	maxRefusalMemory     = 10 * time.Second
	maxUserRefusalMemory = time.Second
)

var noLimiterLog logThrottle

// refusals remembers until when limits refuse, so that repeated requests over a limit cost
// Redis nothing. Times are of the clock of this process.
type refusals struct {
	until *cache[time.Time]
}

func newRefusals() *refusals { return &refusals{newCache[time.Time](maxRefusals)} }

func refusalKey(c access.AppliedLimit) string { return c.Kind + "\x00" + c.Party }

// firstKnown returns the position of the first limit that is known to refuse, and how long; wait
// 0: none.
func (f *refusals) firstKnown(limits []access.AppliedLimit) (over int, wait time.Duration) {
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
	most := maxRefusalMemory
	if c.Kind == limitUser || c.Kind == limitWins {
		most = maxUserRefusalMemory
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

// knownOverLimit refuses a request that is known to be over one of its limits.
func (r *request) knownOverLimit(limits []access.AppliedLimit) *rest.Refusal {
	over, wait := r.server.refusals.firstKnown(limits)
	return limitRefusal(limits, over, wait)
}

// limitRefusal returns the refusal for exceeding the limit at position over; nil without a wait.
func limitRefusal(limits []access.AppliedLimit, over int, wait time.Duration) *rest.Refusal {
	if wait <= 0 {
		return nil
	}
	return &rest.Refusal{Code: wire.CodeRateLimited, RetryAfter: wait, Cause: limitError(limits[over].Kind)}
}

// count counts the request against all its limits, or refuses it and counts nothing.
func (r *request) count(limits []access.AppliedLimit) *rest.Refusal {
	if len(limits) == 0 {
		return nil
	}
	if refused := r.knownOverLimit(limits); refused != nil {
		return refused
	}
	ctx, cancel := context.WithTimeout(r.Ctx, limitTimeout)
	defer cancel()
	over, wait, err := r.server.cfg.Limiter.WithinLimits(ctx, limits)
	if err != nil && noLimiterLog.allow() {
		slog.WarnContext(r.Named(), "rate limits cannot be counted and do not apply", slog.Any("error", err))
	}
	if wait > 0 {
		r.server.refusals.learn(limits[over], wait)
	}
	return limitRefusal(limits, over, wait)
}

// limitError is the kind of the exceeded limit, for the log only.
type limitError string

func (e limitError) Error() string { return fmt.Sprintf("over the limit by %s", string(e)) }

// refuseLimited counts the refusal in the metrics and returns it; nil stays nil.
func (r *request) refuseLimited(over *rest.Refusal) error {
	if over == nil {
		return nil
	}
	if kind, ok := errors.AsType[limitError](over); ok {
		r.server.metrics.limited[string(kind)].Inc()
	}
	return over
}

// limitsOf returns the configured limits of some kinds with the party that each counts here.
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
			c.Limit, c.Party = limits.Key, r.Caller.Key.ID
		case limitUser:
			c.Limit, c.Party = limits.User, r.Caller.App.ID+":"+user
		case limitWins:
			c.Limit, c.Party = limits.Wins, r.Caller.App.ID+":"+user
		}
		if c.Limit == (access.Limit{}) {
			continue
		}
		if kind == limitAddress { // the peer of the connection; proxy headers can be forged
			c.Party = networkOf(r.C.Context().RemoteIP())
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

// checkBeforePool checks what refuses a grab before the pool is called: the limits of address
// and key, then what the body lacks, then the limits of the user. A grab without a valid ticket does not
// count for the user, because anyone could name that user. A grab known to be over a limit costs
// neither a signature check nor Redis. Of two refusals overLimit counts.
func (r *request) checkBeforePool(fact packetFacts, id string, asked grabRequest) (overLimit, badBody *rest.Refusal) {
	limits := r.limitsOf(asked.user, limitAddress, limitKey)
	if refused := r.knownOverLimit(limits); refused != nil {
		return refused, nil
	}
	if refused := r.bodyRefusal(fact, id, asked); refused != nil {
		return r.count(limits), refused
	}
	return r.count(append(limits, r.limitsOf(asked.user, limitUser, limitWins)...)), nil
}

// countsAsAttempt reports whether a grab counts against the limits of its user: it won, was too
// early or not eligible. A repeated grab and one of a sold-out packet do not count.
func countsAsAttempt(got packet.GrabResult) bool {
	return got == packet.GrabWon || got == packet.GrabNotOpenYet || got == packet.GrabNotEligible
}

// giveBackUnused gives back counts of a grab against the limits of its user, which were taken
// before its result was known: the attempt when it does not count, the win when nothing was won.
// If that fails, the user has one less for a while. Addresses and keys count all requests.
func (r *request) giveBackUnused(user string, got packet.GrabResult, err error) {
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Ctx), limitTimeout)
	defer cancel()
	if err := r.server.cfg.Limiter.GiveBack(ctx, counted); err != nil && noLimiterLog.allow() {
		slog.WarnContext(r.Named(), "counts of rate limits cannot be given back", slog.Any("limits", kinds),
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
