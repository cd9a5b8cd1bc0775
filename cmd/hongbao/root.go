package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// newRoot builds the command tree. environ is the environment in the form of
// os.Environ.
func newRoot(environ []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "hongbao",
		Short: "Run and operate a red-packet payout platform",
		Long: `hongbao is a red-packet payout platform: API, worker, database migrations, staff
commands and a local stack in one program.

Settings come from flags and from environment variables. A flag overrides the variable,
the variable overrides the default; "hongbao <command> --help" lists all three. An
unknown HONGBAO_ variable is an error; for "hongbao dev" and its subcommands it is a
warning. "hongbao help exit-codes" lists the exit codes.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	env := newEnvironment(environ)
	root.AddCommand(
		newAPICommand(env),
		newWorkerCommand(env),
		newProviderCommand(env),
		newMigrateCommand(env),
		newAppsCommand(env),
		newKeysCommand(env),
		newTicketKeysCommand(env),
		newHealthcheckCommand(),
		newDevCommand(env),
		newPacketsCommand(env),
		newCampaignsCommand(env),
		newDoctorCommand(env),
		newPayoutsCommand(env),
		newRefundsCommand(env),
		newApprovalsCommand(env),
		newReconcileCommand(env),
		newCloseCommand(env),
		newProvidersCommand(env),
		newHoldsCommand(env),
		newShareConflictsCommand(env),
		newVerifyCommand(),
		newLedgerCommand(env),
		newRecoverCommand(env),
		newPoolCommand(env),
		newAuditCommand(env),
		newVersionCommand(),
		newExitCodesTopic(),
	)
	rejectUnknownTopics(root)
	rejectEmptyValues(root)
	return root
}

// argument checks an argument like a setting of its kind.
func argument(k kind, value string) error {
	if err := k.check(value); err != nil {
		return &usageError{fmt.Errorf("argument %q %w", value, err)}
	}
	return nil
}

// version is the product version, set by the linker: -X main.version=...
var version = "dev"

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the Go version it was built with",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			goVersion := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				goVersion = info.GoVersion
			}
			cmd.Printf("hongbao %s %s\n", version, goVersion)
			return nil
		},
	}
}
