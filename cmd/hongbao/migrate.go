package main

import "context"

// migrateAction is an action on the schema.
type migrateAction string

const (
	migrateUp     migrateAction = "up"
	migrateDown   migrateAction = "down"
	migrateStatus migrateAction = "status"
)

// migrateConfig holds the settings of `hongbao migrate`.
type migrateConfig struct {
	Action   migrateAction
	MySQLDSN Secret
}

func migrateCommand() command {
	step := func(action migrateAction, short string) command {
		return command{use: string(action), short: short, as: local(cmdMigrate), run: func(ctx context.Context, t *call) error {
			return runMigrate(ctx, migrateConfig{Action: action, MySQLDSN: t.config.secret("mysql-dsn")}, t.out, t.config.logger(t.notes))
		}}
	}
	return command{
		use: "migrate", short: "Migrate the database schema",
		sub: []command{
			step(migrateUp, "Apply all missing migrations"),
			step(migrateDown, "Roll back the last migration; the data in its tables is lost"),
			step(migrateStatus, "List the migrations and the times at which they were applied"),
		},
	}
}
