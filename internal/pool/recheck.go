package pool

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// recheck is a due durability check of a server with open connections. The check of a new
// connection is not enough: a master may become a replica, synchronise and be promoted
// again, and CONFIG SET changes settings, while connections stay open.
type recheck struct {
	due      atomic.Bool // no command is sent before a check succeeds
	mu       sync.Mutex
	err      error     // error of the last check
	next     time.Time // until then err is returned
	requests int       // number of requests
}

// recheckInterval is the time for which a failed check refuses all commands.
const recheckInterval = 100 * time.Millisecond

// request makes the next command wait for a check.
func (s *recheck) request() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
	s.requests++
	s.due.Store(true)
}

// run returns nil when no check is due, or check succeeds now.
func (s *recheck) run(check func() error) error {
	if !s.due.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.due.Load():
		return nil
	case s.err != nil && time.Now().Before(s.next):
		return s.err
	}
	return s.record(check(), s.requests)
}

// record stores the result of a check, and returns it. The caller holds mu. A request made
// during the check, after before, stays due.
func (s *recheck) record(found error, before int) error {
	switch {
	case isLossy(found):
		s.err, s.next = found, time.Now().Add(recheckInterval)
		s.due.Store(true)
	case found == nil && s.requests == before:
		s.err = nil
		s.due.Store(false)
	default: // inconclusive: the next caller checks again
		s.err = nil
	}
	return found
}

// recheckOf returns the recheck of the server at an address.
func (s *durabilityChecker) recheckOf(addr string) *recheck {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rechecks[addr] == nil {
		s.rechecks[addr] = &recheck{}
	}
	return s.rechecks[addr]
}

// checkConnected checks a master with open connections. A master that would lose writes gets
// no further command until a check succeeds.
func (s *durabilityChecker) checkConnected(ctx context.Context, c redis.Cmdable) error {
	m, ok := c.(*redis.Client)
	if !ok {
		return s.check(ctx, c)
	}
	is := s.recheckOf(m.Options().Addr)
	is.mu.Lock()
	before := is.requests
	is.mu.Unlock()
	found := s.check(ctx, c) // without the lock: it may take long
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.record(found, before)
}

// skipRecheckKey marks a context whose commands are sent even while a check is due.
type skipRecheckKey struct{}

func skipRecheck(ctx context.Context) context.Context {
	return context.WithValue(ctx, skipRecheckKey{}, true)
}

func skipsRecheck(ctx context.Context) bool { return ctx.Value(skipRecheckKey{}) != nil }

// recheckHook refuses commands to a server while its check is due or failed. A demoted
// master requests a check by its reply: READONLY, or MOVED on a Cluster.
type recheckHook struct {
	durability *durabilityChecker
	client     *redis.Client
	server     *recheck
}

func newRecheckHook(c *redis.Client, cfg Config) recheckHook {
	return recheckHook{cfg.durability, c, cfg.durability.recheckOf(c.Options().Addr)}
}

func (s recheckHook) run(ctx context.Context) error {
	if skipsRecheck(ctx) {
		return nil
	}
	return s.server.run(func() error { return s.durability.check(ctx, s.client) })
}

func isDemoted(cmd redis.Cmder) bool {
	return redis.HasErrorPrefix(cmd.Err(), "READONLY") || redis.HasErrorPrefix(cmd.Err(), "MOVED ")
}

// DialHook implements redis.Hook.
func (recheckHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (s recheckHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := s.run(ctx); err != nil {
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if isDemoted(cmd) && !skipsRecheck(ctx) {
			s.server.request()
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (s recheckHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := s.run(ctx); err != nil {
			for _, c := range cmds {
				c.SetErr(err)
			}
			return err
		}
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, isDemoted) && !skipsRecheck(ctx) {
			s.server.request()
		}
		return err
	}
}
