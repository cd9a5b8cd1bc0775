package pool

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// ModeSentinel is one master with replicas, found and replaced by Redis Sentinel:
// Config.Addr names the sentinels, Config.Master what they call the master.
//
// The client asks a sentinel for the master's address whenever it connects, and drops
// its connections when it hears of another master. What a failover loses is up to the
// replicas, as on a Cluster: Config.Replicas keeps that to what nobody was told, when
// it counts every replica that Sentinel may promote. Sentinel prefers the replica with
// the most data, but by figures that may be some seconds old, so with fewer it may
// promote one that lacks what another has.
const ModeSentinel Mode = "sentinel"

var (
	// errNotMaster: a server that was to be the master says that it is none (any more).
	errNotMaster = fmt.Errorf("no master: %w", ErrUnavailable)
	// errUnknownMaster: the sentinels that answer do not know a master by this name.
	errUnknownMaster = fmt.Errorf("no sentinel knows a master by this name: %w", ErrUnavailable)
)

// newServerClient returns a client of one server: that at the configured address, or
// the one that the sentinels name.
func newServerClient(opt *redis.UniversalOptions, cfg Config) *redis.Client {
	if cfg.Mode != ModeSentinel {
		return addHooks(redis.NewClient(opt.Simple()), cfg)
	}
	opt.MasterName = cfg.Master
	checkMaster := opt.OnConnect // nil: what it keeps is not asked
	opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		role, err := roleOf(ctx, cn)
		switch {
		case err != nil:
			return err
		case role == "sentinel": // the client has the same hook for its own connections to these
			return nil
		case role != "master":
			return fmt.Errorf("the server is a %s: %w", role, errNotMaster)
		case checkMaster != nil:
			return checkMaster(ctx, cn)
		}
		return nil
	}
	c := redis.NewFailoverClient(opt.Failover())
	c.AddHook(sentinelErrors{})
	return addHooks(c, cfg)
}

// sentinelErrors keeps what sentinels say from being taken for the master's own answer: of
// a name that they do not know, the reply that a key without a value has too; and of
// our password, which they have one of their own for.
type sentinelErrors struct{}

// DialHook implements redis.Hook.
func (sentinelErrors) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		cn, err := next(ctx, network, addr)
		if errors.Is(err, redis.Nil) {
			return nil, errUnknownMaster
		}
		if redis.IsAuthError(err) { // of the master it is told only after dialing
			return nil, fmt.Errorf("%w: %w", ErrSentinelAuth, err)
		}
		return cn, err
	}
}

// ProcessHook implements redis.Hook.
func (sentinelErrors) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (sentinelErrors) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// masterName names a master for people: by its address, or as the sentinels call it.
func (p *Pool) masterName(m *redis.Client) string {
	if p.cfg.Mode == ModeSentinel {
		return p.cfg.Master
	}
	return m.Options().Addr
}

// roleOf asks a server what it is: master, slave or sentinel.
func roleOf(ctx context.Context, cn *redis.Conn) (string, error) {
	cmd := redis.NewSliceCmd(ctx, "role")
	_ = cn.Process(ctx, cmd) // the command keeps its error
	said, err := cmd.Result()
	if err != nil {
		return "", err
	}
	if len(said) == 0 {
		return "", fmt.Errorf("ROLE: %w", ErrMalformed)
	}
	role, _ := said[0].(string)
	return role, nil
}

// checkSentinel checks what only this mode takes.
func (c Config) checkSentinel() error {
	switch {
	case c.Mode == ModeSentinel && c.Master == "":
		return fmt.Errorf("redis mode %s: the name of the master is missing", ModeSentinel)
	case c.Mode != ModeSentinel && c.Master != "":
		return fmt.Errorf("redis mode %s: the name of a master is of mode %s", c.Mode, ModeSentinel)
	}
	return nil
}
