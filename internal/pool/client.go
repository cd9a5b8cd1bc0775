package pool

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// slotsReload is the maximum age of the map from slots to masters. Otherwise only a reply of
// another node shows a promoted replica, and the lanes of the dead master send to no other
// node.
const slotsReload = 2 * time.Second

// newClient returns the client for all calls except blocking reads.
func newClient(cfg Config) redis.UniversalClient {
	opt := options(cfg)
	// For each master: every lane can send while other calls run, and there are as many of these with few lanes.
	opt.PoolSize = max(cfg.Lanes, DefaultClusterLanes) + 16
	opt.MinIdleConns = 4
	if cfg.Mode == ModeCluster {
		return newClusterClient(opt, retries, cfg)
	}
	opt.MaxRetries = retries
	return addReplicated(newServerClient(opt, cfg), cfg)
}

// newBlockingClient returns a client for one blocking read a lane. It never retries a read:
// the entries of a lost reply are pending for the consumer, and only the caller can read
// them again.
func newBlockingClient(cfg Config) redis.UniversalClient {
	opt := options(cfg)
	opt.PoolSize = cfg.Lanes + 8 // for each master
	if cfg.Mode == ModeCluster {
		return newClusterClient(opt, -1, cfg)
	}
	opt.MaxRetries = -1
	return newServerClient(opt, cfg)
}

// newClusterClient returns a client with separate connections and timeouts for each master,
// so that a dead master delays only its own lanes. attempts is the number of retries, also
// at another master; -1: none.
func newClusterClient(opt *redis.UniversalOptions, attempts int, cfg Config) *redis.ClusterClient {
	c := opt.Cluster()
	c.NewClient = func(o *redis.Options) *redis.Client { return addReplicated(addHooks(redis.NewClient(o), cfg), cfg) }
	c.MaxRedirects = attempts
	c.MaxRetries = -1 // a master's own client would multiply them
	c.ClusterStateReloadInterval = slotsReload
	// The client finds the keys of every command by itself. With policies it would load
	// the command table from some master first, and all calls would wait for a dead one.
	c.DisableRoutingPolicies = true
	return redis.NewClusterClient(c)
}

func options(cfg Config) *redis.UniversalOptions {
	setLogger(cfg)
	opt := &redis.UniversalOptions{
		Protocol:              2, // with 3 the client checks every reply for a push message
		Addrs:                 cfg.addrs(),
		ContextTimeoutEnabled: true, // else context deadlines are ignored
		DialTimeout:           cfg.Timeout,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,
		DialerRetries:         1,
		MinRetryBackoff:       5 * time.Millisecond,
		MaxRetryBackoff:       50 * time.Millisecond,
		DisableIdentity:       true, // CLIENT SETINFO needs Redis 7.2
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled, // a feature of Redis Enterprise
		},
	}
	cfg.Access.addTo(opt, cfg.Timeout)
	if !cfg.AllowVolatile {
		// A restart or a failover leads to new connections, so the settings are checked
		// before the first grab.
		opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cfg.durability.check(ctx, cn) }
	}
	return opt
}

// addHooks adds the hooks that the client of every server needs.
func addHooks(c *redis.Client, cfg Config) *redis.Client {
	cfg.Access.addRedactor(c)
	c.AddHook(pipelineErrors{})
	if !cfg.AllowVolatile {
		c.AddHook(newRecheckHook(c, cfg))
	}
	return c
}

// pipelineErrors sets the error of each command when a pipeline failed before any was sent.
// The library does not when the server refuses a new connection (WRONGPASS, DENIED, BUSY),
// and the results look empty.
type pipelineErrors struct{}

// DialHook implements redis.Hook.
func (pipelineErrors) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (pipelineErrors) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (pipelineErrors) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err != nil && !slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
			for _, c := range cmds {
				c.SetErr(err)
			}
		}
		return err
	}
}

// setLogger sends the client library's messages about connections to the log. The library
// has one logger for the process.
func setLogger(cfg Config) {
	setLoggerOnce.Do(func() { redis.SetLogger(clientLog{cfg.Logger, redactor{cfg.Access}}) })
}

var setLoggerOnce sync.Once

type clientLog struct {
	*slog.Logger
	redactor
}

func (l clientLog) Printf(ctx context.Context, format string, v ...any) {
	l.DebugContext(ctx, "redis client", slog.String("text", l.redact(fmt.Sprintf(format, v...))))
}
