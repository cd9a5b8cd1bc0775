package pool

import (
	"context"
	"fmt"
	"time"
)

// keyLimit is the key of who is counted, of a kind of limits. It belongs to no lane. The
// braces make what is counted the hash tag, so that on a Cluster the masters share them:
// they begin before anything that a client chose.
func keyLimit(kind, who string) string { return "hb:{limit:" + kind + ":" + who + "}" }

// The bounds of a limit.
const (
	MaxLimit     = 1_000_000
	MinLimitSpan = time.Second
	MaxLimitSpan = 24 * time.Hour
)

// WithinLimit counts one more of what somebody does, over all processes that use this
// Redis, of which n are allowed in a span. 0: it is within the limit. Else it is not, was
// not counted, and would be allowed after that time.
//
// Errors: ErrUnavailable.
func (p *Pool) WithinLimit(ctx context.Context, kind, who string, n int64, span time.Duration) (time.Duration, error) {
	return p.limit(ctx, kind, who, n, span, 1)
}

// GiveBack takes back one that WithinLimit has counted, with the same limit.
//
// Errors: ErrUnavailable; then it may have been taken back.
func (p *Pool) GiveBack(ctx context.Context, kind, who string, n int64, span time.Duration) error {
	_, err := p.limit(ctx, kind, who, n, span, -1)
	return err
}

func (p *Pool) limit(ctx context.Context, kind, who string, n int64, span time.Duration, count int) (time.Duration, error) {
	if n < 1 || n > MaxLimit || span < MinLimitSpan || span > MaxLimitSpan {
		return 0, fmt.Errorf("limit by %s: %d in %v: not from 1 to %d in %v to %v", kind, n, span, MaxLimit, MinLimitSpan, MaxLimitSpan)
	}
	every := (span.Microseconds() + n - 1) / n // rounded up, so that the limit is kept
	wait, err := limitScript.Run(ctx, p.rdb, []string{keyLimit(kind, who)}, every, n, count).Int64()
	if err != nil {
		return 0, redisError("limit by "+kind, err)
	}
	return time.Duration(wait) * time.Microsecond, nil
}
