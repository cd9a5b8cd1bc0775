package main

import (
	"context"
	"io"
	"log/slog"

	"hongbao/devstack"
)

// prepare brings the schema of the local stack up to date and makes sure that
// its apps, its staff and their keys exist.
func prepare(ctx context.Context, env devstack.Env) (devstack.Keys, error) {
	dsn := Secret{env.MySQLDSN}
	err := runMigrate(ctx, migrateConfig{Action: migrateUp, MySQLDSN: dsn}, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		return devstack.Keys{}, err
	}
	return ensureKeys(ctx, dsn, env.Keys)
}
