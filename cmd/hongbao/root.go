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
		Short: "Red packets: funded, grabbed by a crowd, paid out, refunded",
		Long: `hongbao is a red-packet payout platform.

Settings come from flags and from environment variables. A flag beats the
variable, the variable beats the default; "hongbao <command> --help" lists all
three. A HONGBAO_ variable that no command knows is an error, and
a warning for "hongbao dev" and its commands. What exit codes
mean: "hongbao help exit-codes".`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
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
		newVerifyCommand(),
		newLedgerCommand(env),
		newRecoverCommand(env),
		newPoolCommand(env),
		newAuditCommand(env),
		newVersionCommand(),
		newExitCodesTopic(),
	)
	rejectEmptyValues(root)
	return root
}

// noArgs refuses arguments as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return &usageError{err}
	}
	return nil
}

// oneArg refuses any other number of arguments than one as a usage error.
func oneArg(cmd *cobra.Command, args []string) error {
	if err := cobra.ExactArgs(1)(cmd, args); err != nil {
		return &usageError{err}
	}
	return nil
}

// argument checks an argument as a setting of its kind would be.
func argument(k kind, value string) error {
	if err := k.check(value); err != nil {
		return &usageError{fmt.Errorf("the argument %w: %q", err, value)}
	}
	return nil
}

// version is set by the linker: -X main.version=...
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
