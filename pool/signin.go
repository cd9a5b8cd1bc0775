package pool

import (
	"context"
	"fmt"
	"time"
)

// Keys of failed sign-ins belong to no lane: all of them are together, on one
// master of a Cluster.
const (
	keySignIns     = "hb:{signin}:all"
	keySignInsFrom = "hb:{signin}:from:" // and the address
)

// SignIns counts failed sign-ins over all processes that use this Redis. It keeps
// nobody from anything by itself.
type SignIns struct{ pool *Pool }

// NewSignIns returns a counter of failed sign-ins.
func NewSignIns(p *Pool) *SignIns { return &SignIns{p} }

// Failed adds to the failures of an address and returns how many there are, of it
// and of all addresses, since the first one of a span; add 0 only asks.
//
// Errors: ErrUnavailable.
func (s *SignIns) Failed(ctx context.Context, address string, add int, span time.Duration) (ofAddress, ofAll int, err error) {
	reply, err := signinScript.Run(ctx, s.pool.rdb, []string{keySignInsFrom + address, keySignIns}, add, span.Milliseconds()).Slice()
	if err != nil {
		return 0, 0, redisError("failed sign-ins", err)
	}
	each, err := number(reply, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("failed sign-ins: %w", err)
	}
	all, err := number(reply, 1)
	if err != nil {
		return 0, 0, fmt.Errorf("failed sign-ins: %w", err)
	}
	return int(each), int(all), nil
}
