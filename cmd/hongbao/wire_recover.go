package main

import (
	"context"
	"io"
	"log/slog"

	"hongbao/internal/recovery"
	"hongbao/internal/store"
	"hongbao/worker"
	"hongbao/workflows"
)

// withRecovery connects to MySQL, Redis, Temporal and the provider, and calls act.
func withRecovery(ctx context.Context, c config, errs io.Writer, act func(*recovery.Recovery) error) error {
	logger := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	if err := armFailpoints(ctx, c.text("crash-points"), logger); err != nil {
		return err
	}
	pays, err := c.openProviders(workflows.ProviderTimeout)
	if err != nil {
		return err
	}
	defer pays.Close()
	db, err := openForProviders(ctx, store.Config{DSN: c.secret("mysql-dsn").Reveal()}, pays, logger)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	pools, err := redisConfig(c)
	if err != nil {
		return err
	}
	pools.Observe = true
	redis, err := openPool(ctx, pools, nil, logger)
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }()
	temporal, err := c.temporal().dialNow(ctx, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	return act(&recovery.Recovery{Store: db, Pools: redis, Providers: pays.Registry, Lanes: redis.Lanes(),
		SeedKey: key32(c.secret("seed-key")),
		Starter: worker.NewStarter(temporal).LinkedTo(c.text("console-url")), Logger: logger})
}
