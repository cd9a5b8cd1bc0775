package pool

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// ModeSentinel is one master with replicas, monitored and replaced by Redis Sentinel:
// Config.Addr lists the sentinels, Config.Master is their name of the master.
//
// The client asks a sentinel for the master's address whenever it connects, and closes its
// connections when the master changes. What a failover loses depends on the replicas, as on
// a Cluster. Config.Replicas limits it to unacknowledged writes, when it counts every
// replica that Sentinel may promote. Sentinel prefers the replica with the most data, but by
// figures that may be some seconds old. With fewer replicas it may promote one that lacks
// data.
const ModeSentinel Mode = "sentinel"

var (
	// errNotMaster: the server is not, or no longer, a master.
	errNotMaster = fmt.Errorf("no master: %w", ErrUnavailable)
	// errUnknownMaster: the reachable sentinels know no master by this name.
	errUnknownMaster = fmt.Errorf("no sentinel knows a master by this name: %w", ErrUnavailable)
)

// newServerClient returns a client of one server: that at the configured address, or
// the one that the sentinels name.
func newServerClient(opt *redis.UniversalOptions, cfg Config) *redis.Client {
	if cfg.Mode != ModeSentinel {
		return addHooks(redis.NewClient(opt.Simple()), cfg)
	}
	opt.MasterName = cfg.Master
	checkMaster := opt.OnConnect // nil: durability is not checked
	opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		role, err := roleOf(ctx, cn)
		switch {
		case err != nil:
			return err
		case role == "sentinel": // the client uses the same hook for its connections to sentinels
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

// sentinelErrors distinguishes errors of sentinels from errors of the master. For an unknown
// name sentinels reply like for a missing key. They have a password of their own.
type sentinelErrors struct{}

// DialHook implements redis.Hook.
func (sentinelErrors) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		cn, err := next(ctx, network, addr)
		if errors.Is(err, redis.Nil) {
			return nil, errUnknownMaster
		}
		if redis.IsAuthError(err) { // the master's own reply comes only after dialing
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

// masterName returns a master's name for messages: its address, or the sentinels' name.
func (p *Pool) masterName(m *redis.Client) string {
	if p.cfg.Mode == ModeSentinel {
		return p.cfg.Master
	}
	return m.Options().Addr
}

// roleOf returns the role of a server: master, slave or sentinel.
func roleOf(ctx context.Context, cn *redis.Conn) (string, error) {
	cmd := redis.NewSliceCmd(ctx, "role")
	_ = cn.Process(ctx, cmd) // the command keeps its error
	reply, err := cmd.Result()
	if err != nil {
		return "", err
	}
	if len(reply) == 0 {
		return "", fmt.Errorf("ROLE: %w", ErrMalformed)
	}
	role, _ := reply[0].(string)
	return role, nil
}

// checkSentinel checks the settings of ModeSentinel.
func (c Config) checkSentinel() error {
	switch {
	case c.Mode == ModeSentinel && c.Master == "":
		return fmt.Errorf("redis mode %s: set the name of the master", ModeSentinel)
	case c.Mode != ModeSentinel && c.Master != "":
		return fmt.Errorf("redis mode %s: the name of a master is only for mode %s", c.Mode, ModeSentinel)
	}
	return nil
}
