package main

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"hongbao/api"
	"hongbao/money"
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
	db, err := store.Open(store.Config{DSN: cfg.MySQLDSN.Reveal(), AwaitBooks: true})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	redis, err := openPool(ctx, cfg.Redis, db, logger)
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
	// Asked by /readyz, and how a payment's runs stand: the API starts no workflows, the
	// relay does.
	temporal, err := worker.Dial(cfg.TemporalAddress, cfg.TemporalNamespace, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	registry, watched, err := newVitals(vitals(db, redis, pay.Name()))
	if err != nil {
		return err
	}
	tracer, stopTracing, err := startTracing(ctx, cfg.Tracing, cmdAPI, logger)
	if err != nil {
		return err
	}
	defer stopTracing()
	server, err := api.New(api.Config{
		Metrics: registry, Tracer: tracer,
		PublicAddr: cfg.Listen, StaffAddr: cfg.StaffListen, MaxConns: cfg.MaxConnections,
		Pool: redis, Store: db, Provider: pay, Gate: redis.Gate, GatesOpen: redis.GatesOpen,
		PingTemporal: func(ctx context.Context) error {
			_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		},
		Runs: worker.NewRuns(temporal, cfg.TemporalNamespace).Of, TaskQueues: worker.NewQueues(temporal, cfg.TemporalNamespace).Look,
		BooksBelieved: db.BooksBelieved, Vitals: watched.Vitals,
		SeedKey: key32(cfg.SeedKey), ApprovalAmount: approvalAmount(cfg.ApprovalAmountFen), ProviderRate: cfg.ProviderRate,
		TemporalUIURL: cfg.TemporalUIURL, TemporalNamespace: cfg.TemporalNamespace, Version: version,
	})
	if err != nil {
		return err
	}
	if err := mountConsole(server, key32(cfg.SeedKey), redis); err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	heartbeat := &worker.Heartbeat{Books: db, Copy: redis, Logger: logger}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return heartbeat.Run(gctx) })
	group.Go(func() error { return server.Serve(gctx) })
	return group.Wait()
}

// approvalAmount is from which amount on a retry needs a second person. 0 is set for
// "always", and the API takes it for its default: nothing is less than one fen.
func approvalAmount(fen int64) money.Fen { return money.Fen(max(1, fen)) }
