package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hongbao/internal/access"
)

// keyLimit is the key of a party that is counted against a kind of limit. It belongs to no
// lane. The braces make what is counted the hash tag, so that on a Cluster the masters
// share the users: they begin before anything that a client chose.
func keyLimit(kind, who string) string { return "hb:{" + limitTag(kind, who) + "}" }

func limitTag(kind, who string) string { return "limit:" + kind + ":" + who }

// WithinLimits counts one request against all its limits, over all processes that use this
// Redis. wait 0: it is within all of them. Else over is the place of the first limit, in
// the order given, that allows no more before that time, and nothing was counted.
//
// It is one call of a script. On a Cluster it is one for each hash slot, in the order
// given: one tag for all limits would put every grab of an installation on one master.
// There another request may see, for one round trip, what a refusal gives back.
//
// Errors: ErrUnavailable; then some may have been counted. Beside a wait above 0: the limits
// before that one have counted the request.
func (p *Pool) WithinLimits(ctx context.Context, limits []access.AppliedLimit) (over int, wait time.Duration, err error) {
	for from := 0; from < len(limits); {
		to := p.limitsTogether(limits, from)
		place, wait, err := p.limit(ctx, limits[from:to], 1)
		if err != nil {
			return 0, 0, err
		}
		if wait > 0 {
			return from + place, wait, p.GiveBack(ctx, limits[:from])
		}
		from = to
	}
	return 0, 0, nil
}

// GiveBack takes back what WithinLimits has counted against limits.
//
// Errors: ErrUnavailable; then some may have been taken back.
func (p *Pool) GiveBack(ctx context.Context, limits []access.AppliedLimit) error {
	var errs []error
	for from := 0; from < len(limits); {
		to := p.limitsTogether(limits, from)
		_, _, err := p.limit(ctx, limits[from:to], -1)
		errs = append(errs, err)
		from = to
	}
	return errors.Join(errs...)
}

// limitsTogether returns the end of the limits from a place on that one call may count.
func (p *Pool) limitsTogether(limits []access.AppliedLimit, from int) (to int) {
	if p.cfg.Mode != ModeCluster {
		return len(limits)
	}
	slot := func(i int) int {
		tag, _, _ := strings.Cut(limitTag(limits[i].Kind, limits[i].Party), "}") // an id may hold braces
		return hashSlot(tag)
	}
	for to = from + 1; to < len(limits) && slot(to) == slot(from); to++ {
	}
	return to
}

// limit runs the script for limits of one slot, which are not empty.
func (p *Pool) limit(ctx context.Context, limits []access.AppliedLimit, count int) (over int, wait time.Duration, err error) {
	keys, args := make([]string, len(limits)), make([]any, 1, 1+2*len(limits))
	args[0] = count
	for i, l := range limits {
		if !l.Valid() || l.Limit == (access.Limit{}) {
			return 0, 0, fmt.Errorf("limit by %s: %d in %v: not %s", l.Kind, l.N, l.Span, access.LimitForm)
		}
		keys[i] = keyLimit(l.Kind, l.Party)
		args = append(args, (l.Span.Microseconds()+l.N-1)/l.N, l.N) // rounded up, so that the limit is kept
	}
	reply, err := limitScript.Run(ctx, p.rdb, keys, args...).Int64Slice()
	if err != nil {
		return 0, 0, redisError("count against limits", err)
	}
	if len(reply) != 2 || reply[0] < 0 || reply[0] > int64(len(limits)) {
		return 0, 0, fmt.Errorf("%w: limits: reply %v", ErrMalformed, reply)
	}
	return int(max(reply[0]-1, 0)), time.Duration(reply[1]) * time.Microsecond, nil
}
