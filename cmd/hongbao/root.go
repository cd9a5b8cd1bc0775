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
the variable overrides the default; "hongbao <command> --help" lists all three.
HONGBAO_ENV_FILE names a file of NAME='value' lines, such as the dev.env of the local
stack, for variables that are not set. An unknown HONGBAO_ variable is an error; for
"hongbao dev" and its subcommands it is a warning. "hongbao help exit-codes" lists the
exit codes.`,
		Version:       versionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	env := newEnvironment(environ)
	addGroup(root, "app", "Commands for apps:",
		newPacketsCommand(env), newCampaignsCommand(env), newVerifyCommand())
	addGroup(root, "finance", "Commands for finance and audit:",
		newPayoutsCommand(env), newRefundsCommand(env), newApprovalsCommand(env), newShareConflictsCommand(env), newReconcileCommand(env),
		newCloseCommand(env), newLedgerCommand(env), newAuditCommand(env))
	addGroup(root, "operations", "Commands for operations:",
		newDoctorCommand(env), newProvidersCommand(env), newHoldsCommand(env), newPoolCommand(env), newRecoverCommand(env),
		newAppsCommand(env), newKeysCommand(env), newTicketKeysCommand(env))
	addGroup(root, "servers", "Servers:",
		newAPICommand(env), newWorkerCommand(env), newProviderCommand(env), newMigrateCommand(env), newDevCommand(env),
		newHealthcheckCommand())
	root.AddCommand(newVersionCommand(), newExitCodesTopic())
	rejectUnknownTopics(root)
	rejectEmptyValues(root)
	return root
}

// addGroup adds commands that "hongbao help" lists under a title.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	root.AddCommand(commands...)
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
			cmd.Println(versionText())
			return nil
		},
	}
}

// versionText returns the version and the Go version it was built with.
func versionText() string {
	goVersion := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
	}
	return fmt.Sprintf("hongbao %s %s", version, goVersion)
}
