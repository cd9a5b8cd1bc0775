package main

import (
	"context"
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
	for _, g := range groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			cmd := c.build(env)
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(versionCommand().build(env), newExitCodesTopic())
	rejectUnknownTopics(root)
	completeFlags(root)
	rejectEmptyValues(root)
	return root
}

// commandGroup is what "hongbao help" lists under a title.
type commandGroup struct {
	id, title string
	commands  []command
}

func groups() []commandGroup {
	return []commandGroup{
		{"app", "Commands for apps:", []command{packetsCommand(), campaignsCommand(), verifyCommand()}},
		{"finance", "Commands for finance and audit:", []command{payoutsCommand(), refundsCommand(), chargesCommand(), approvalsCommand(),
			balancesCommand(), shareConflictsCommand(), reconcileCommand(), closeCommand(), ledgerCommand(), auditCommand()}},
		{"operations", "Commands for operations:", []command{doctorCommand(), staffGroup(), providersCommand(), holdsCommand(), poolCommand(),
			recoverCommand(), appsCommand(), keysCommand(), ticketKeysCommand()}},
		{"servers", "Servers:", []command{apiCommand(), workerCommand(), providerCommand(), migrateCommand(), devCommand(),
			healthcheckCommand()}},
	}
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

func versionCommand() command {
	return command{use: "version", short: "Print the version and the Go version it was built with",
		run: func(_ context.Context, t *call) error { return printf(t.out, "%s\n", versionText()) }}
}

// versionText returns the version and the Go version it was built with.
func versionText() string {
	goVersion := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
	}
	return fmt.Sprintf("hongbao %s %s", version, goVersion)
}
