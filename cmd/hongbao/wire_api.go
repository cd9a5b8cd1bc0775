package main

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"hongbao/api"
	"hongbao/console"
	"hongbao/internal/money"
	"hongbao/internal/provider"
	"hongbao/internal/store"
	"hongbao/worker"
)

// runAPI serves until ctx ends. Its ports are open from the first moment: what it waits for
// may hang, and /livez, /readyz and a 503 distinguish that from a missing process.
func runAPI(ctx context.Context, cfg apiConfig, logger *slog.Logger) error {
	slog.SetDefault(logger)
	if err := armFailpoints(ctx, cfg.FailpointDir, logger); err != nil {
		return err
	}
	starting, err := api.NewStarting(ctx, cfg.Listen, cfg.StaffListen)
	if err != nil {
		return err
	}
	defer starting.Close()
	err = serveAPI(ctx, cfg, starting, logger)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		logger.InfoContext(ctx, "api stops while it starts", slog.Any("cause", context.Cause(ctx)))
		return nil // nothing had begun
	}
	return err
}

// serveAPI waits for the parts of the API and serves.
func serveAPI(ctx context.Context, cfg apiConfig, starting *api.Starting, logger *slog.Logger) error {
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: cfg.ProviderURL, APIKey: cfg.ProviderKey.Reveal(),
		Account: cfg.ProviderAccount, WebhookSecret: cfg.SandboxWebhookSecret.Reveal()})
	if err != nil {
		return err
	}
	defer pay.Close()
	starting.Awaits("mysql")
	db, err := openForProvider(ctx, store.Config{DSN: cfg.MySQLDSN.Reveal(), MustCompare: true}, pay.Adapter(), logger)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	starting.Awaits("redis")
	redis, err := openPool(ctx, cfg.Redis, db, logger)
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }()
	// Asked by /readyz, and how a payment's runs stand: the API starts no workflows, the
	// relay does.
	temporal, refused, err := cfg.Temporal.dial(logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	registry, watched, err := newRegistry(healthSources(db, redis, pay.Name()))
	if err != nil {
		return err
	}
	tracer, stopTracing, err := startTracing(ctx, cfg.Tracing, cmdAPI, logger)
	if err != nil {
		return err
	}
	defer stopTracing()
	asks, closeRisk, err := cfg.Risk.check()
	if err != nil {
		return err
	}
	defer closeRisk()
	server, err := api.New(api.Config{
		Metrics: registry, Tracer: tracer,
		PublicAddr: cfg.Listen, StaffAddr: cfg.StaffListen, Starting: starting,
		MaxConns: cfg.MaxConnections, ConnsPerAddress: cfg.ConnectionsPerAddress,
		Pool: redis, Store: db, Provider: pay, Fence: redis.Fence, LanesOpen: redis.CheckFences,
		PingTemporal: func(ctx context.Context) error { return worker.Ping(ctx, temporal, cfg.Temporal.Namespace) },
		Runs:         worker.NewRuns(temporal, cfg.Temporal.Namespace).Of, TaskQueues: worker.NewQueues(temporal, cfg.Temporal.Namespace).Look,
		MySQLCurrent: db.BooksBelieved, HealthSnapshot: watched.HealthSnapshot,
		SeedKey: key32(cfg.SeedKey), MirrorKey: deriveKey(key32(cfg.SeedKey), "hongbao copy of apps v1"),
		PublicTokens:   refusedTokens(cfg.TryOut, logger),
		ApprovalAmount: approvalAmount(cfg.ApprovalAmountFen), ProviderRate: cfg.ProviderRate,
		Limits: cfg.Limits, Limiter: redis, Risk: asks, RiskRefuseUnanswered: cfg.Risk.RefuseUnanswered, RiskRefuseFrom: cfg.Risk.RefuseFrom,
		TemporalUIURL: cfg.TemporalUIURL, TemporalNamespace: cfg.Temporal.Namespace, Version: version,
	})
	if err != nil {
		return err
	}
	if err := mountConsole(server, keys32(cfg.SessionKey)); err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	heartbeat := &worker.Heartbeat{Books: db, Copy: redis, Logger: logger}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return heartbeat.Run(gctx) })
	group.Go(func() error { return server.Serve(gctx) })
	group.Go(func() error { return logRefused(gctx, refused, logger) })
	return group.Wait()
}

// logRefused says once when Temporal does not take this process. It is no error that ends
// it: grabs need no Temporal, and its certificates and keys must not stop them.
func logRefused(ctx context.Context, refused func(context.Context) error, logger *slog.Logger) error {
	if err := refused(ctx); err != nil {
		logger.ErrorContext(ctx, "Temporal does not take this process. Grabs go on and wait.", slog.Any("error", err))
	}
	return nil
}

// refusedTokens are the hashes of the tokens that open nothing: the public ones, unless
// this is a try-out.
func refusedTokens(tryOut bool, logger *slog.Logger) [][]byte {
	if !tryOut {
		return publicTokens()
	}
	logger.Warn("This is a try-out: secrets and keys that everybody knows are taken.")
	return nil
}

// approvalAmount is from which amount on a retry needs a second person. 0 is set for
// "always", and the API takes it for its default: nothing is less than one fen.
func approvalAmount(fen int64) money.Fen { return money.Fen(max(1, fen)) }

// mountConsole gives the staff listener its pages for people.
func mountConsole(server *api.Server, keys [][32]byte) error {
	desk, err := console.New(console.Config{StaffAPI: server, SessionKeys: keys})
	if err != nil {
		return err
	}
	server.MountConsole(desk, console.Folders...)
	return nil
}
