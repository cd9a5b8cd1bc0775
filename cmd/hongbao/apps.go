package main

import (
	"github.com/spf13/cobra"
)

// appsConfig holds the settings of `hongbao apps create`.
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
		Long: `Create an app: a backend that sends packets. Its salt is generated once and never
changes, because every packet id derives from it. The command fails when the app
exists, and changes nothing. "hongbao keys create --role app" creates its keys.`,
		Example: "  hongbao apps create mall --name 'Mall'",
		Args:    oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readConfig(cmd, cmdAppsCreate, env)
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
	addSettings(create, cmdAppsCreate)
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
