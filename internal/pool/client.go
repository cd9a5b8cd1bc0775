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

// slotsReload is how old the map of slots to masters may get. Without it a
// replica that took over is only found by an answer of a living node, and the
// lanes of the dead master ask nobody else.
const slotsReload = 2 * time.Second

// newClient returns the client for everything but blocking reads.
func newClient(cfg Config) redis.UniversalClient {
	opt := options(cfg)
	opt.PoolSize = cfg.Lanes + 16 // of each master: every lane can flush while other calls go on
	opt.MinIdleConns = 4
	if cfg.Mode == ModeCluster {
		return newClusterClient(opt, retries, cfg)
	}
	opt.MaxRetries = retries
	return addReplicated(newServerClient(opt, cfg), cfg)
}

// newBlockingClient returns a client for one blocking read a lane. It never
// repeats a read by itself: the entries of a lost answer are pending for the
// consumer, and only the caller can go back for them.
func newBlockingClient(cfg Config) redis.UniversalClient {
	opt := options(cfg)
	opt.PoolSize = cfg.Lanes + 8 // of each master
	if cfg.Mode == ModeCluster {
		return newClusterClient(opt, -1, cfg)
	}
	opt.MaxRetries = -1
	return newServerClient(opt, cfg)
}

// newClusterClient returns a client with connections and time limits of their
// own for each master, so that a dead one holds up its own lanes only. attempts
// is how often a call is sent again, to another master too; -1: never.
func newClusterClient(opt *redis.UniversalOptions, attempts int, cfg Config) *redis.ClusterClient {
	c := opt.Cluster()
	c.NewClient = func(o *redis.Options) *redis.Client { return addReplicated(addHooks(redis.NewClient(o), cfg), cfg) }
	c.MaxRedirects = attempts
	c.MaxRetries = -1 // a master's own client would multiply them
	c.ClusterStateReloadInterval = slotsReload
	// Every command has its keys where the client finds them. With policies it
	// would ask some master for the table of commands first, and everybody would
	// wait behind a dead one.
	c.DisableRoutingPolicies = true
	return redis.NewClusterClient(c)
}

func options(cfg Config) *redis.UniversalOptions {
	setLogger(cfg)
	opt := &redis.UniversalOptions{
		Protocol:              2, // of 3 every answer is first looked at for a message pushed before it
		Addrs:                 cfg.addrs(),
		ContextTimeoutEnabled: true, // else deadlines of contexts are ignored
		DialTimeout:           cfg.Timeout,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,
		DialerRetries:         1,
		MinRetryBackoff:       5 * time.Millisecond,
		MaxRetryBackoff:       50 * time.Millisecond,
		DisableIdentity:       true, // CLIENT SETINFO is of Redis 7.2
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled, // a feature of Redis Enterprise
		},
	}
	cfg.Access.addTo(opt, cfg.Timeout)
	if !cfg.AllowVolatile {
		// A restarted Redis, and a replica that takes over, is met by new
		// connections, so its settings are checked before the first grab reaches it.
		opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cfg.durability.check(ctx, cn) }
	}
	return opt
}

// hooked adds to the client of one server what all of them need.
func addHooks(c *redis.Client, cfg Config) *redis.Client {
	cfg.Access.addRedactor(c)
	c.AddHook(pipelineErrors{})
	if !cfg.AllowVolatile {
		c.AddHook(newRecheckHook(c, cfg))
	}
	return c
}

// stamping gives each command of a pipeline the error that ended it before any was sent.
// The library gives them none when a new connection was refused by a reply of the server
// (WRONGPASS, DENIED, BUSY), and their results look empty.
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

// setLogger sends the client library's own messages, which are about
// connections, to the log. The library has one logger for the process.
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
