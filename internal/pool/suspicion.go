package pool

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A check of a new connection says nothing about its later life: a master may become a
// replica, synchronise and be promoted again, and CONFIG SET changes settings, while
// connections stay open. suspicion is what is known of one server since.
type suspicion struct {
	is   atomic.Bool // no command is sent before a check has succeeded
	mu   sync.Mutex
	err  error     // why the last check refused it
	next time.Time // until then err is the answer
	made int       // how often it was raised
}

// suspicionPace is how long the refusal of one check holds for all commands.
const suspicionPace = 100 * time.Millisecond

// raise has the server checked before the next command.
func (s *suspicion) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
	s.made++
	s.is.Store(true)
}

// clear returns nil when the server is not suspected, or check succeeds now.
func (s *suspicion) clear(check func() error) error {
	if !s.is.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.is.Load():
		return nil
	case s.err != nil && time.Now().Before(s.next):
		return s.err
	}
	return s.settle(check(), s.made)
}

// settle keeps what a check has found, and returns it. The caller holds mu. What was raised
// during the check, after before, is no part of what it has found.
func (s *suspicion) settle(found error, before int) error {
	switch {
	case isLossy(found):
		s.err, s.next = found, time.Now().Add(suspicionPace)
		s.is.Store(true)
	case found == nil && s.made == before:
		s.err = nil
		s.is.Store(false)
	default: // a check that did not succeed says nothing about the next caller
		s.err = nil
	}
	return found
}

// suspicionOf returns what is known of the server at an address.
func (s *settled) suspicionOf(addr string) *suspicion {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspicions[addr] == nil {
		s.suspicions[addr] = &suspicion{}
	}
	return s.suspicions[addr]
}

// checkAgain checks a master to which connections are open. One that would lose writes gets
// no command from then on, until a check succeeds.
func (s *settled) checkAgain(ctx context.Context, c redis.Cmdable) error {
	m, ok := c.(*redis.Client)
	if !ok {
		return s.check(ctx, c)
	}
	is := s.suspicionOf(m.Options().Addr)
	is.mu.Lock()
	before := is.made
	is.mu.Unlock()
	found := s.check(ctx, c) // it may take as long as the server takes
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.settle(found, before)
}

// checking marks a context whose commands are sent to a server that is suspected.
type checking struct{}

func asCheck(ctx context.Context) context.Context { return context.WithValue(ctx, checking{}, true) }

func isChecking(ctx context.Context) bool { return ctx.Value(checking{}) != nil }

// suspecting refuses the commands of a server that may lose them. Redis says itself that it
// is a master no longer: READONLY, or MOVED in a Cluster.
type suspecting struct {
	settled *settled
	client  *redis.Client
	server  *suspicion
}

func newSuspecting(c *redis.Client, cfg Config) suspecting {
	return suspecting{cfg.settled, c, cfg.settled.suspicionOf(c.Options().Addr)}
}

func (s suspecting) clear(ctx context.Context) error {
	if isChecking(ctx) {
		return nil
	}
	return s.server.clear(func() error { return s.settled.check(ctx, s.client) })
}

func isDemoted(cmd redis.Cmder) bool {
	return redis.HasErrorPrefix(cmd.Err(), "READONLY") || redis.HasErrorPrefix(cmd.Err(), "MOVED ")
}

// DialHook implements redis.Hook.
func (suspecting) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (s suspecting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := s.clear(ctx); err != nil {
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if isDemoted(cmd) && !isChecking(ctx) {
			s.server.raise()
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (s suspecting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := s.clear(ctx); err != nil {
			for _, c := range cmds {
				c.SetErr(err)
			}
			return err
		}
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, isDemoted) && !isChecking(ctx) {
			s.server.raise()
		}
		return err
	}
}
