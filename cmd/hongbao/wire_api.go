package main

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"hongbao/api"
	"hongbao/console"
	"hongbao/internal/money"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/worker"
)

func apiCommand() command {
	return command{use: "api", short: "Serve the HTTP API on a public and a staff listener", as: local(cmdAPI),
		run: func(ctx context.Context, t *call) error { return runAPI(ctx, t.config, t.config.logger(t.notes)) }}
}

// runAPI runs the API until ctx ends. It listens before it connects to MySQL and Redis: while it waits for them, /livez,
// /readyz and responses with 503 show that the process runs.
func runAPI(ctx context.Context, c config, logger *slog.Logger) error {
	slog.SetDefault(logger)
	if err := armFailpoints(ctx, c.text("crash-points"), logger); err != nil {
		return err
	}
	starting, err := api.NewStarting(ctx, c.text("listen"), c.text("staff-listen"))
	if err != nil {
		return err
	}
	defer starting.Close()
	err = serveAPI(ctx, c, starting, logger)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		logger.InfoContext(ctx, "api stops while it starts", slog.Any("cause", context.Cause(ctx)))
		return nil // an interrupted start is no failure
	}
	return err
}

// serveAPI connects to everything that the API uses, which may wait for MySQL and Redis, and serves until ctx ends.
func serveAPI(ctx context.Context, c config, starting *api.Starting, logger *slog.Logger) error {
	pays, err := c.openProviders(0)
	if err != nil {
		return err
	}
	defer pays.Close()
	starting.Awaits("mysql")
	db, err := openForProviders(ctx, store.Config{DSN: c.secret("mysql-dsn").Reveal(), MustCompare: true}, pays, logger)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	starting.Awaits("redis")
	redisCfg, err := redisConfig(c)
	if err != nil {
		return err
	}
	redis, err := openPool(ctx, redisCfg, db, logger)
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }()
	// Only for /readyz and for the state of a payment's workflows: the relay, not the API, starts workflows.
	temporalCfg := c.temporal()
	temporal, refused, err := temporalCfg.dial(logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	sources := healthSources(c, db, redis, pays.Names())
	sources["providers"] = (&providerBalances{providers: pays.All(), payable: report.New(db.MySQL()).Payable}).source
	registry, watched, err := newRegistry(sources)
	if err != nil {
		return err
	}
	tracer, stopTracing, err := startTracing(ctx, tracingConfig{Endpoint: c.text("otlp-endpoint"), Sampler: c.text("traces-sampler"),
		Ratio: c.text("traces-sampler-arg")}, cmdAPI, logger)
	if err != nil {
		return err
	}
	defer stopTracing()
	risk := c.risk()
	riskCheck, closeRisk, err := risk.open()
	if err != nil {
		return err
	}
	defer closeRisk()
	seedKey := key32(c.secret("seed-key"))
	server, err := api.New(api.Config{
		Metrics: registry, Tracer: tracer,
		PublicAddr: c.text("listen"), StaffAddr: c.text("staff-listen"), Starting: starting,
		MaxConns: int(c.number("max-connections")), ConnsPerAddress: int(c.number("connections-per-address")),
		Pool: redis, Store: apiStore{db, report.New(db.MySQL())}, Providers: pays.Registry, Rates: pays.rates(),
		Fence: redis.ClaimsVersion, Probes: probes(db, redis, temporal, temporalCfg),
		Runs: worker.NewRuns(temporal, temporalCfg.Namespace).Of, TaskQueues: worker.NewQueues(temporal, temporalCfg.Namespace).Look,
		HealthSnapshot: watched.HealthSnapshot,
		SeedKey:        seedKey, MirrorKey: deriveKey(seedKey, "hongbao copy of apps v1"),
		PublicTokens:   refusedTokens(c.boolean("try-out"), logger),
		ApprovalAmount: approvalAmount(c.number("approval-amount")),
		Limits: api.Limits{User: c.limit("limit-user"), Address: c.limit("limit-address"), Key: c.limit("limit-key"),
			Wins: c.limit("limit-wins")},
		Limiter: redis, Risk: riskCheck, RiskRefuseUnanswered: risk.RefuseUnanswered, RiskRefuseFrom: risk.RefuseFrom,
		TemporalUIURL: c.text("temporal-ui-url"), TemporalNamespace: temporalCfg.Namespace, Version: version,
	})
	if err != nil {
		return err
	}
	heartbeat := &worker.Heartbeat{Store: db, Copy: redis, Logger: logger}
	return listenAPI(ctx, server, keys32(c.secret("session-key")), heartbeat, refused, logger)
}

// listenAPI serves API and console until ctx ends. refused is as dial returns it.
func listenAPI(ctx context.Context, server *api.Server, sessionKeys [][32]byte, heartbeat *worker.Heartbeat,
	refused func(context.Context) error, logger *slog.Logger) error {
	if err := mountConsole(server, sessionKeys); err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return heartbeat.Run(gctx) })
	group.Go(func() error { return server.Serve(gctx) })
	group.Go(func() error { return logRefused(gctx, refused, logger) })
	return group.Wait()
}

// apiStore is MySQL as the API uses it: what writes, and the reports for staff.
type apiStore struct {
	*store.Store
	*report.Source
}

// logRefused logs when Temporal refuses this process, such as for its certificate or key. It always returns nil: grabs need no
// Temporal, so the API continues to run.
func logRefused(ctx context.Context, refused func(context.Context) error, logger *slog.Logger) error {
	if err := refused(ctx); err != nil {
		logger.ErrorContext(ctx, "Temporal refuses this process. Grabs are accepted; their payouts wait.", slog.Any("error", err))
	}
	return nil
}

// refusedTokens returns the hashes of the tokens that the API refuses: the public ones, unless this is a try-out.
func refusedTokens(tryOut bool, logger *slog.Logger) [][]byte {
	if !tryOut {
		return publicTokens()
	}
	logger.Warn("This is a try-out: public secrets and keys are accepted.")
	return nil
}

// approvalAmount returns the amount from which a retry needs a second person. The setting 0 means every amount; for the API, 0
// means its default. So 0 becomes 1 fen, the lowest amount.
func approvalAmount(fen int64) money.Fen { return money.Fen(max(1, fen)) }

// mountConsole adds the pages of the console to the staff listener.
func mountConsole(server *api.Server, keys [][32]byte) error {
	pages, err := console.New(console.Config{StaffAPI: server, SessionKeys: keys})
	if err != nil {
		return err
	}
	server.MountConsole(pages, console.Folders...)
	return nil
}
