package main

import (
	"context"
	"io"
	"log/slog"

	"hongbao/internal/provider"
	"hongbao/internal/recovery"
	"hongbao/internal/store"
	"hongbao/worker"
	"hongbao/workflows"
)

// openRecover connects to MySQL, Redis, Temporal and the provider. end closes all connections; it is nil with an error.
func openRecover(ctx context.Context, c config, errs io.Writer) (r *recovery.Recovery, end func(), err error) {
	logger := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var opened []func()
	closeAll := func() {
		for i := len(opened) - 1; i >= 0; i-- {
			opened[i]()
		}
	}
	defer func() {
		if err != nil {
			closeAll() // end is nil here
		}
	}()
	if err := armFailpoints(ctx, c.text("crash-points"), logger); err != nil {
		return nil, nil, err
	}
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: c.text("provider-url"), APIKey: c.secret("provider-key").Reveal(),
		Account: c.text("provider-account"), Timeout: workflows.ProviderTimeout})
	if err != nil {
		return nil, nil, err
	}
	opened = append(opened, pay.Close)
	db, err := openForProvider(ctx, store.Config{DSN: c.secret("mysql-dsn").Reveal()}, pay.Adapter(), logger)
	if err != nil {
		return nil, nil, err
	}
	opened = append(opened, func() { _ = db.Close() })
	pools, err := redisConfig(c)
	if err != nil {
		return nil, nil, err
	}
	pools.Observe = true
	redis, err := openPool(ctx, pools, nil, logger)
	if err != nil {
		return nil, nil, err
	}
	opened = append(opened, func() { _ = redis.Close() })
	temporal, err := c.temporal().dialNow(ctx, logger)
	if err != nil {
		return nil, nil, err
	}
	opened = append(opened, temporal.Close)
	starter, seed := worker.NewStarter(temporal, pay.Name()).LinkedTo(c.text("console-url")), key32(c.secret("seed-key"))
	return &recovery.Recovery{
		Store: db, Pools: redis, Provider: pay, Starter: starter, Lanes: redis.Lanes(), SeedKey: seed, Logger: logger,
	}, closeAll, nil
}
