package main

import (
	"github.com/spf13/cobra"
)

// appsConfig is what `hongbao apps create` is told.
type appsConfig struct {
	MySQLDSN Secret
	ID       string
	Name     string
}

func newAppsCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "apps",
		Short: "Create and list the apps that may send packets",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	create := &cobra.Command{
		Use:   "create <id>",
		Short: "Create an app",
		Long: `Create an app: a backend that sends packets. Its salt is made now and never
changes, because every packet id derives from it. An app that exists is left as
it is, and the command fails. "hongbao keys create --role app" makes its keys.`,
		Example: "  hongbao apps create mall --name 'Mall'",
		Args:    oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readConfig(cmd, cmdAppsNew, env)
			if err != nil {
				return err
			}
			if err := argument(kindAppID, args[0]); err != nil {
				return err
			}
			cfg := appsConfig{MySQLDSN: c.secret("mysql-dsn"), ID: args[0], Name: c.text("name")}
			return createApp(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	addSettings(create, cmdAppsNew)
	list := &cobra.Command{
		Use:   "list",
		Short: "List the apps",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdAppsList, env)
			if err != nil {
				return err
			}
			return listApps(cmd.Context(), c.secret("mysql-dsn"), cmd.OutOrStdout())
		},
	}
	addSettings(list, cmdAppsList)
	group.AddCommand(create, list)
	return group
}
