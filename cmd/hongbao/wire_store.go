package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/dataformat"
	"hongbao/internal/devstack"
	"hongbao/internal/payout"
	"hongbao/internal/store"
	"hongbao/migrations"
)

// migrationsTimeout bounds the check of MySQL at the start of a process.
const migrationsTimeout = 2 * time.Second

// openMigrated opens MySQL for every process except the doctor. It refuses a database of another data format (*dataformat.Error)
// or without a migration of this build (errNotMigrated): some steps would succeed and others fail. It accepts migrations of a
// newer build, so that a rollback is possible. When MySQL does not answer, it skips the check, because grabs do not need MySQL.
func openMigrated(ctx context.Context, cfg store.Config, logger *slog.Logger) (*store.Store, error) {
	if err := checkMigrated(ctx, cfg.DSN, logger); err != nil {
		return nil, err
	}
	return store.Open(cfg)
}

// openForProviders is openMigrated for a process that calls providers. The first start with a name binds it to its account in
// MySQL. With another account the provider is held (docs/runbook.md#provider-account); the process starts. When MySQL does not
// answer, it skips the check; sends check the account again.
func openForProviders(ctx context.Context, cfg store.Config, pays *providers, logger *slog.Logger) (*store.Store, error) {
	db, err := openMigrated(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, migrationsTimeout)
	defer cancel()
	for _, a := range pays.adapters {
		switch err := db.BindProvider(within, pays.entries[a.Name()].Kind, a.Limits().Adapter); {
		case errors.Is(err, payout.ErrWrongProvider):
			logger.ErrorContext(ctx, "The provider is held: its name belongs to another account (docs/runbook.md#provider-account).",
				slog.String("provider", a.Name()), slog.Any("error", err))
		case err != nil:
			logger.WarnContext(ctx, "The provider account could not be compared with that in MySQL; the process starts without this check.",
				slog.String("provider", a.Name()), slog.Any("error", err))
		}
	}
	return db, nil
}

// errNotMigrated means that MySQL lacks migrations of this build.
var errNotMigrated = errors.New("MySQL lacks migrations of this version")

// checkMigrated returns errNotMigrated when MySQL lacks migrations, a *dataformat.Error for another data format, and nil when
// MySQL does not answer.
func checkMigrated(ctx context.Context, dsn string, logger *slog.Logger) error {
	db, err := store.OpenSQL(dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, migrationsTimeout)
	defer cancel()
	missing, _, err := migrations.Difference(ctx, db)
	if _, other := errors.AsType[*dataformat.Error](err); other {
		return err
	}
	if err != nil {
		logger.WarnContext(ctx, "The migrations of MySQL could not be read; the process starts without this check.",
			slog.Any("error", err), slog.String("do", mysqlAdvice(err)))
		return nil
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %d, the first is %s; stop the API and workers of the previous version, then run: hongbao migrate up "+
			"(docs/runbook.md#upgrade)", errNotMigrated, len(missing), missing[0])
	}
	return nil
}

// runMigrate executes one action and prints its result to out.
func runMigrate(ctx context.Context, cfg migrateConfig, out io.Writer, logger *slog.Logger) error {
	db, err := store.OpenSQL(cfg.MySQLDSN.Reveal())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := migrations.CheckFormat(ctx, db); err != nil {
		return fmt.Errorf("migrate %s: %w", cfg.Action, err)
	}
	p, err := migrations.NewProvider(db, logger)
	if err != nil {
		return err
	}
	switch cfg.Action {
	case migrateUp:
		done, err := p.Up(ctx)
		if err != nil {
			return fmt.Errorf("migrate up: %w", err)
		}
		_, _ = fmt.Fprintf(out, "%d migrations applied.\n", len(done))
	case migrateDown:
		done, err := p.Down(ctx)
		if err != nil {
			return fmt.Errorf("migrate down: %w", err)
		}
		_, _ = fmt.Fprintf(out, "Migration %d reverted.\n", done.Source.Version)
	case migrateStatus:
		return showMigrations(ctx, p, out)
	}
	return nil
}

func showMigrations(ctx context.Context, p *migrations.Provider, out io.Writer) error {
	all, err := p.Status(ctx)
	if err != nil {
		return fmt.Errorf("migrate status: %w", err)
	}
	t := newGrid(out, "number", "migration", "state", "applied at (UTC)")
	for _, m := range all {
		at := ""
		if !m.AppliedAt.IsZero() {
			at = m.AppliedAt.UTC().Format("2006-01-02 15:04:05")
		}
		t.row(m.Source.Version, m.Source.Path, m.State, at)
	}
	t.render()
	return nil
}

// demoApp is the first app of the local stack. Its key is HONGBAO_APP_KEY in dev.env.
const demoApp = "demo"

// ensureKeys creates the apps and keys of the local stack unless they exist, and a new token for each empty key. It returns all
// keys.
func ensureKeys(ctx context.Context, dsn Secret, keys devstack.Keys) (devstack.Keys, error) {
	db, err := openMigrated(ctx, store.Config{DSN: dsn.Reveal(), MaxOpenConns: 2}, slog.New(slog.DiscardHandler))
	if err != nil {
		return keys, err
	}
	defer func() { _ = db.Close() }()
	for _, id := range []string{demoApp, "demo2"} {
		if err := db.EnsureApp(ctx, newApp(id, id)); err != nil {
			return keys, fmt.Errorf("create app %s: %w", id, err)
		}
	}
	for _, k := range []struct {
		token *string
		role  access.Role
		app   string
		owner string
	}{
		{&keys.App, access.RoleApp, demoApp, demoApp},
		{&keys.App2, access.RoleApp, "demo2", "demo2"},
		{&keys.Finance, access.RoleFinance, "", "finance"},
		{&keys.Finance2, access.RoleFinance, "", "finance2"},
		{&keys.Ops, access.RoleOps, "", "ops"},
		{&keys.Auditor, access.RoleAuditor, "", "auditor"},
		{&keys.Admin, access.RoleAdmin, "", "admin"},
	} {
		if *k.token == "" {
			*k.token, _ = access.NewToken(k.role)
		}
		id, ok := access.ParseToken(*k.token)
		if !ok {
			return keys, fmt.Errorf("the stored key of %s is damaged; run make reset", k.owner)
		}
		if err := db.EnsureKey(ctx, access.Key{ID: id, Role: k.role, AppID: k.app, Owner: k.owner,
			SecretHash: access.HashToken(*k.token)}); err != nil {
			return keys, fmt.Errorf("create key of %s: %w", k.owner, err)
		}
	}
	return keys, nil
}
