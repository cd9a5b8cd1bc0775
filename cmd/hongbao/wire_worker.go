package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
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

func workerCommand() command {
	return command{use: "worker", short: "Run the workflows: charge, pay, refund, and hand grabs over to them", as: local(cmdWorker),
		run: func(ctx context.Context, t *call) error { return runWorker(ctx, t.config, t.config.logger(t.notes)) }}
}

// runWorker runs a worker until ctx ends.
func runWorker(ctx context.Context, c config, logger *slog.Logger) error {
	slog.SetDefault(logger)
	redisCfg, err := redisConfig(c)
	if err != nil {
		return err
	}
	if err := armFailpoints(ctx, c.text("crash-points"), logger); err != nil {
		return err
	}
	pays, err := c.openProviders(workflows.ProviderTimeout)
	if err != nil {
		return err
	}
	defer pays.Close()
	db, err := openForProviders(ctx, store.Config{DSN: c.secret("mysql-dsn").Reveal(), MustCompare: true, Lanes: redisCfg.Lanes}, pays,
		logger)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	redis, err := openPool(ctx, redisCfg, db, logger)
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }()
	handoffs, err := pool.NewHandoffs(ctx, redis)
	if err != nil {
		return err
	}
	defer func() { _ = handoffs.Close() }()
	tracer, stopTracing, err := startTracing(ctx, tracingConfig{Endpoint: c.text("otlp-endpoint"), Sampler: samplerFromCaller}, cmdWorker,
		logger)
	if err != nil {
		return err
	}
	defer stopTracing()
	metrics, server := worker.NewMetrics(), c.temporal()
	temporal, refused, err := server.dial(logger, metrics.Into, worker.TracedBy(tracer))
	if err != nil {
		return err
	}
	defer temporal.Close()

	admissions, err := newAdmissions(pays, redis, logger)
	if err != nil {
		return err
	}
	parts := workerParts{db: db, redis: redis, handoffs: handoffs, temporal: temporal, pays: pays, admissions: admissions}
	w := worker.New(parts.config(c, refused, logger))
	group, gctx := errgroup.WithContext(ctx)
	if listen := c.text("listen"); listen != "" {
		sources := healthSources(c, db, redis, pays.Names())
		sources["temporal"] = worker.NewQueues(temporal, server.Namespace).HealthSnapshot
		health, err := withMetrics(w.Health(probes(db, redis, temporal, server)), sources, admissions, metrics, w)
		if err != nil {
			return err
		}
		group.Go(func() error { return serveHealth(gctx, listen, health) })
	}
	group.Go(func() error { return w.Run(gctx) })
	return group.Wait()
}

// workerParts are the connections of a worker.
type workerParts struct {
	db         *store.Store
	redis      *pool.Pool
	handoffs   *pool.Handoffs
	temporal   client.Client
	pays       *providers
	admissions activities.Admissions
}

// config returns the configuration of the worker that uses the parts. refused is as dial returns it.
func (p workerParts) config(c config, refused func(context.Context) error, logger *slog.Logger) worker.Config {
	db, redis := p.db, p.redis
	starter := worker.NewStarter(p.temporal).LinkedTo(c.text("console-url"))
	seedKey := key32(c.secret("seed-key"))
	hour, minute := clock(c.text("reconcile-at"))
	return worker.Config{
		Client: p.temporal,
		Packets: &activities.Packets{Store: db, Pool: redis, Starter: starter, SeedKey: seedKey,
			PoolRebuild: lostPoolRebuild(c, db, redis)},
		Payments: &activities.Payments{Store: db, Providers: p.pays.Registry, Pools: redis, SeedKey: seedKey,
			Admissions: p.admissions},
		Starter: starter, Handoffs: p.handoffs, Quarantine: db, Outbox: db, Watch: db, Live: redis, Holds: db, Returns: db,
		Reconcile: &worker.Reconcile{Steps: &activities.Reconciliations{Store: db, Providers: p.pays.Registry}, Store: db,
			Closes: report.New(db.MySQL()), Hour: hour, Minute: minute},
		Campaigns: &worker.Campaigns{Store: db,
			Steps: &activities.Campaigns{Store: db, Pool: redis, SeedKey: seedKey, Providers: p.pays.Registry}},
		Heartbeat: &worker.Heartbeat{Store: db, Copy: redis, Beats: true, Logger: logger},
		Rebuild:   rebuildConfig(c, db, redis, p.handoffs, starter, logger),
		Lanes:     redis.Lanes(), Logger: logger, Refused: refused, Retention: &worker.Retention{Book: db, Keep: c.retain()},
	}
}

// rebuildConfig returns nil when only operators rebuild lanes.
func rebuildConfig(c config, db *store.Store, redis *pool.Pool, handoffs *pool.Handoffs, starter *worker.Starter,
	logger *slog.Logger) *rebuild.Config {
	if c.text("pool-rebuild") == rebuildManual {
		return nil
	}
	return &rebuild.Config{Store: db, Rows: db, Fences: redis, Pools: redis, Backlog: handoffs, Runs: starter, Lanes: redis.Lanes(),
		Logger: logger}
}

// lostPoolRebuild returns nil when only operators rebuild lanes: the loss of one packet's pool must not close its lane until an
// operator rebuilds it.
func lostPoolRebuild(c config, db *store.Store, redis *pool.Pool) *activities.PoolRebuild {
	if c.text("pool-rebuild") == rebuildManual {
		return nil
	}
	return &activities.PoolRebuild{Fences: redis, MySQL: db}
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

// retain is for how long rows of tables are kept; tables that keep theirs for ever left out.
func (c config) retain() map[staff.RetainedTable]time.Duration {
	out := map[staff.RetainedTable]time.Duration{}
	for _, r := range staff.Retentions {
		if days := c.number(retainFlag(r.Table)); days > 0 {
			out[r.Table] = time.Duration(days) * 24 * time.Hour
		}
	}
	return out
}
