package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/internal/store"
	"hongbao/worker"
	"hongbao/workflows"
)

// openPool opens the pool. It waits for an unavailable Redis, which may start later or be restarting, until ctx ends. Errors that
// a retry does not change are returned, with advice. epochs may be nil.
func openPool(ctx context.Context, cfg pool.Config, epochs pool.Epochs, logger *slog.Logger) (*pool.Pool, error) {
	cfg.Epochs, cfg.Logger = epochs, logger
	for {
		p, err := pool.Open(ctx, cfg)
		if do := redisAdvice(err); do != "" {
			return nil, fmt.Errorf("%w\n%s", err, do)
		}
		if err == nil || !errors.Is(err, pool.ErrUnavailable) || errors.Is(err, pool.ErrVolatile) {
			return p, err
		}
		logger.WarnContext(ctx, "Redis is not available yet.", slog.Any("error", err))
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("open pool: %w", context.Cause(ctx))
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// runWorker runs a worker until ctx ends.
func runWorker(ctx context.Context, cfg workerConfig, logger *slog.Logger) error {
	slog.SetDefault(logger)
	if err := armFailpoints(ctx, cfg.FailpointDir, logger); err != nil {
		return err
	}
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: cfg.ProviderURL, APIKey: cfg.ProviderKey.Reveal(),
		Account: cfg.ProviderAccount, Timeout: workflows.ProviderTimeout})
	if err != nil {
		return err
	}
	defer pay.Close()
	db, err := openForProvider(ctx, store.Config{DSN: cfg.MySQLDSN.Reveal(), MustCompare: true, Lanes: cfg.Redis.Lanes}, pay.Adapter(), logger)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	redis, err := openPool(ctx, cfg.Redis, db, logger)
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }()
	handoffs, err := pool.NewHandoffs(ctx, redis)
	if err != nil {
		return err
	}
	defer func() { _ = handoffs.Close() }()
	tracer, stopTracing, err := startTracing(ctx, cfg.Tracing, cmdWorker, logger)
	if err != nil {
		return err
	}
	defer stopTracing()
	metrics := worker.NewMetrics()
	temporal, refused, err := cfg.Temporal.dial(logger, metrics.Into, worker.TracedBy(tracer))
	if err != nil {
		return err
	}
	defer temporal.Close()

	admission, err := newAdmission(cfg, redis, pay.Name(), logger)
	if err != nil {
		return err
	}
	starter := worker.NewStarter(temporal, pay.Name()).LinkedTo(cfg.ConsoleURL)
	hour, minute := clock(cfg.ReconcileAt)
	w := worker.New(worker.Config{
		Client: temporal,
		Packets: &activities.Packets{Store: db, Pool: redis, Provider: pay, Starter: starter, SeedKey: key32(cfg.SeedKey),
			PoolRebuild: lostPoolRebuild(cfg, db, redis)},
		Payments: &activities.Payments{Store: db, Provider: pay, Admission: admission, Pools: redis},
		Starter:  starter, Handoffs: handoffs, Quarantine: db, Outbox: db, Watch: db, Live: redis, Holds: db, Returns: db,
		Reconcile: &worker.Reconcile{Steps: &activities.Reconciliations{Store: db, Provider: pay}, Store: db, Closes: db, Hour: hour,
			Minute: minute},
		Campaigns: &worker.Campaigns{Steps: &activities.Campaigns{Store: db, Pool: redis, SeedKey: key32(cfg.SeedKey), Provider: pay}, Store: db},
		Heartbeat: &worker.Heartbeat{Books: db, Copy: redis, Beats: true, Logger: logger},
		Rebuild:   rebuildConfig(cfg, db, redis, handoffs, starter, logger),
		Lanes:     cfg.Redis.Lanes, Logger: logger, Refused: refused, Retention: &worker.Retention{Book: db, Keep: cfg.Retain},
	})
	group, gctx := errgroup.WithContext(ctx)
	if cfg.Listen != "" {
		sources := healthSources(db, redis, pay.Name())
		sources["temporal"] = worker.NewQueues(temporal, cfg.Temporal.Namespace).HealthSnapshot
		health, err := withMetrics(w.Health(probes(db, redis, temporal, cfg.Temporal)), sources, admission, metrics, w)
		if err != nil {
			return err
		}
		group.Go(func() error { return serveHealth(gctx, cfg.Listen, health) })
	}
	group.Go(func() error { return w.Run(gctx) })
	return group.Wait()
}

// rebuildConfig returns nil when only operators rebuild lanes.
func rebuildConfig(cfg workerConfig, db *store.Store, redis *pool.Pool, handoffs *pool.Handoffs, starter *worker.Starter,
	logger *slog.Logger) *rebuild.Config {
	if cfg.PoolRebuild == rebuildManual {
		return nil
	}
	return &rebuild.Config{Books: db, Rows: db, Fences: redis, Pools: redis, Backlog: handoffs, Runs: starter, Lanes: cfg.Redis.Lanes,
		Logger: logger}
}

// lostPoolRebuild returns nil when only operators rebuild lanes: the loss of one packet's pool must not close its lane until an
// operator rebuilds it.
func lostPoolRebuild(cfg workerConfig, db *store.Store, redis *pool.Pool) *activities.PoolRebuild {
	if cfg.PoolRebuild == rebuildManual {
		return nil
	}
	return &activities.PoolRebuild{Fences: redis, MySQL: db}
}

// newAdmission returns the admission that defers payments. Without a rate it has no throttle and does not use Redis.
func newAdmission(cfg workerConfig, redis *pool.Pool, provider string, logger *slog.Logger) (*activities.Admission, error) {
	if cfg.ProviderRate == 0 {
		return activities.NewAdmission(provider, nil, logger), nil
	}
	throttle, err := pool.NewThrottle(redis, provider, cfg.ProviderRate)
	if err != nil {
		return nil, err
	}
	return activities.NewAdmission(provider, throttle, logger), nil
}

// serveHealth serves h at addr until ctx ends.
func serveHealth(ctx context.Context, addr string, h http.Handler) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("health listener: %w", err)
	}
	server := &http.Server{Handler: h, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("health listener: %w", err)
	}
	return nil
}
