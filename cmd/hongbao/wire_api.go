package main

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/client"

	"hongbao/api"
	"hongbao/money"
	"hongbao/pool"
	"hongbao/provider"
	"hongbao/store"
	"hongbao/worker"
)

// runAPI serves until ctx ends.
func runAPI(ctx context.Context, cfg apiConfig, logger *slog.Logger) error {
	slog.SetDefault(logger)
	if err := armCrashPoints(ctx, cfg.CrashPoints, logger); err != nil {
		return err
	}
	db, err := store.Open(store.Config{DSN: cfg.MySQLDSN.Reveal()})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	redis, err := openPool(ctx, pool.Config{Addr: cfg.RedisAddr, Mode: pool.Mode(cfg.RedisMode), Lanes: cfg.Lanes, AllowVolatile: cfg.AllowVolatileRedis, Replicas: cfg.RedisReplicas, Logger: logger}, logger)
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }()
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: cfg.ProviderURL, APIKey: cfg.ProviderKey.Reveal(),
		WebhookSecret: cfg.SandboxWebhookSecret.Reveal()})
	if err != nil {
		return err
	}
	defer pay.Close()
	// Only asked by /readyz: the API starts no workflows, the relay does.
	temporal, err := worker.Dial(cfg.TemporalAddress, cfg.TemporalNamespace, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	registry, err := newVitals(db, redis)
	if err != nil {
		return err
	}
	server, err := api.New(api.Config{
		Metrics:    registry,
		PublicAddr: cfg.Listen, StaffAddr: cfg.StaffListen, MaxConns: cfg.MaxConnections,
		Pool: redis, Store: db, Provider: pay,
		PingTemporal: func(ctx context.Context) error {
			_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		},
		SeedKey: key32(cfg.SeedKey), ApprovalAmount: money.Fen(cfg.ApprovalAmountFen), ProviderRate: cfg.ProviderRate,
		TemporalUIURL: cfg.TemporalUIURL, TemporalNamespace: cfg.TemporalNamespace, Version: version,
	})
	if err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	return server.Serve(ctx)
}
