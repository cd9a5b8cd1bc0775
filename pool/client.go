package pool

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// newClient returns the client for everything but blocking reads.
func newClient(cfg Config) *redis.Client {
	opt := options(cfg)
	opt.PoolSize = cfg.Lanes + 16 // every lane can flush while other calls go on
	opt.MinIdleConns = 4
	return redis.NewClient(opt)
}

// newBlockingClient returns a client for one blocking read a lane. It never
// repeats a read by itself: the entries of a lost answer are pending for the
// consumer, and only the caller can go back for them.
func newBlockingClient(cfg Config) *redis.Client {
	opt := options(cfg)
	opt.PoolSize = cfg.Lanes + 8
	opt.MaxRetries = -1
	return redis.NewClient(opt)
}

func options(cfg Config) *redis.Options {
	setLogger(cfg.Logger)
	opt := &redis.Options{
		Addr:                  cfg.Addr,
		ContextTimeoutEnabled: true, // else deadlines of contexts are ignored
		DialTimeout:           cfg.Timeout,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,
		DialerRetries:         1,
		MaxRetries:            retries,
		MinRetryBackoff:       5 * time.Millisecond,
		MaxRetryBackoff:       50 * time.Millisecond,
		DisableIdentity:       true, // CLIENT SETINFO is of Redis 7.2
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled, // a feature of Redis Enterprise
		},
	}
	if !cfg.AllowVolatile {
		// A restarted Redis is met by new connections, so its settings are
		// checked before the first grab reaches it.
		opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return checkDurable(ctx, cn) }
	}
	return opt
}

// setLogger sends the client library's own messages, which are about
// connections, to the log. The library has one logger for the process.
func setLogger(logger *slog.Logger) {
	setLoggerOnce.Do(func() { redis.SetLogger(clientLog{logger}) })
}

var setLoggerOnce sync.Once

type clientLog struct{ *slog.Logger }

func (l clientLog) Printf(ctx context.Context, format string, v ...any) {
	l.DebugContext(ctx, "redis client", slog.String("text", fmt.Sprintf(format, v...)))
}
