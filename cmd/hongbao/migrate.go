package main

import (
	"github.com/spf13/cobra"
)

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

func newMigrateCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database schema",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	actions := []struct {
		action migrateAction
		short  string
	}{
		{migrateUp, "Apply all missing migrations"},
		{migrateDown, "Roll back the last migration; the data in its tables is lost"},
		{migrateStatus, "List the migrations and the times at which they were applied"},
	}
	for _, a := range actions {
		cmd := &cobra.Command{
			Use:   string(a.action),
			Short: a.short,
			Args:  noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := readConfig(cmd, cmdMigrate, env)
				if err != nil {
					return err
				}
				cfg := migrateConfig{Action: a.action, MySQLDSN: c.secret("mysql-dsn")}
				return runMigrate(cmd.Context(), cfg, cmd.OutOrStdout(), c.logger(cmd.ErrOrStderr()))
			},
		}
		addSettings(cmd, cmdMigrate)
		group.AddCommand(cmd)
	}
	return group
}
