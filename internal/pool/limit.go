package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hongbao/internal/access"
)

// keyLimit returns the key of one counted party of one kind of limit. It belongs to no lane.
// The hash tag holds kind and party, so that a Cluster spreads the parties over its masters.
// The braces come before any text a client chose.
func keyLimit(kind, who string) string { return "hb:{" + limitTag(kind, who) + "}" }

func limitTag(kind, who string) string { return "limit:" + kind + ":" + who }

// WithinLimits counts one request against all its limits, over all processes that use this
// Redis. When wait is 0, the request is within all of them. Otherwise over is the index of
// the first limit that is used up until then, and nothing is counted.
//
// It is one script call. On a Cluster it is one call for each hash slot, in the given order:
// one tag for all limits would put every grab of an installation on one master. There other
// requests may see, for one round trip, counts that a refusal returns.
//
// Errors: ErrUnavailable; then some limits may be counted. With wait above 0: the limits
// before that one have counted the request.
func (p *Pool) WithinLimits(ctx context.Context, limits []access.AppliedLimit) (over int, wait time.Duration, err error) {
	for from := 0; from < len(limits); {
		to := p.limitsTogether(limits, from)
		i, wait, err := p.limit(ctx, limits[from:to], 1)
		if err != nil {
			return 0, 0, err
		}
		if wait > 0 {
			return from + i, wait, p.GiveBack(ctx, limits[:from])
		}
		from = to
	}
	return 0, 0, nil
}

// GiveBack returns the counts of WithinLimits.
//
// Errors: ErrUnavailable; then some may be returned.
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

// limitsTogether returns the end of the limits from an index on that one call may count.
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

// limit runs the script for one or more limits of one slot.
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
