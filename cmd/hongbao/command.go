package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/visible"
	"hongbao/wire"
)

// caller is what a command runs with: its settings, and for a command that calls the API those of the URL and the key.
type caller struct {
	command  string // in the table of settings
	url, key string // settings; "" = the command does not call the API
}

// The callers of the API.
var (
	callerApp     = caller{cmdPackets, "url", "app-key"}
	callerFinance = caller{cmdFinance, "staff-url", "finance-key"}
	callerOps     = caller{cmdOps, "staff-url", "ops-key"}
	callerAdmin   = caller{cmdKeys, "staff-url", "admin-key"}
	callerAuditor = caller{cmdAuditor, "staff-url", "auditor-key"}
)

// local is the caller of a command that needs no API.
func local(command string) caller { return caller{command: command} }

// command describes a command, or a group of commands.
type command struct {
	use, short, long, example string
	sub                       []command
	args                      cobra.PositionalArgs // nil = none
	valid                     cobra.CompletionFunc // completes arguments; nil = as complete
	flags                     func(*pflag.FlagSet) // declares the command's own flags
	as                        caller
	run                       func(context.Context, *call) error // nil = print the help

	// The rest is for commands that call the API.

	writes  bool             // adds --reason and --idempotency-key
	dry     func(*call) bool // the run decides nothing and needs no reason; nil = never
	pages   bool             // adds --limit, --cursor and --all
	timeout time.Duration    // default of --timeout; 0 = one minute, noTimeout = none
	retry   client.Retry
	// or is another caller of the command. choose checks flags and returns the caller of a run; nil = as.
	or     caller
	choose func(*call) (caller, error)
	// complete finds values of the first argument.
	complete func(context.Context, *call) ([]cobra.Completion, error)
}

// noTimeout is the default of --timeout for commands that wait for ever.
const noTimeout = time.Duration(-1)

// call is one run of a command.
type call struct {
	cmd        *cobra.Command
	env        environment
	config     config
	args       []string
	in         io.Reader
	out, notes io.Writer // notes gets remarks; out gets the result alone
	callFlags

	// Of a command that calls the API:
	app    *client.Client
	staff  *client.Staff
	answer func() []byte // the last answer of the API
}

// callFlags are the flags, besides settings, of commands that call the API.
type callFlags struct {
	json           bool
	timeout        time.Duration
	reason         string
	idempotencyKey string
	page           pageFlags
}

// build returns the command for the command tree.
func (c command) build(env environment) *cobra.Command {
	cmd := &cobra.Command{Use: c.use, Short: c.short, Long: c.long, Example: c.example, Args: c.args, ValidArgsFunction: c.valid}
	if c.args == nil {
		cmd.Args = noArgs
	}
	t := &call{cmd: cmd, env: env}
	c.addFlags(cmd.Flags(), &t.callFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.run == nil {
			return cmd.Help()
		}
		t.args, t.in, t.out, t.notes = args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
		return c.start(cmd.Context(), t)
	}
	if c.complete != nil {
		cmd.ValidArgsFunction = c.completeFirst(t)
	}
	for _, below := range c.sub {
		cmd.AddCommand(below.build(env))
	}
	return cmd
}

func (c command) addFlags(flags *pflag.FlagSet, f *callFlags) {
	addSettings(flags, c.as.command)
	addSettings(flags, c.or.command)
	if c.as.key != "" {
		timeout := time.Minute
		switch {
		case c.timeout == noTimeout:
			timeout = 0
		case c.timeout > 0:
			timeout = c.timeout
		}
		flags.BoolVar(&f.json, "json", false, "print the API's response instead of tables")
		flags.DurationVar(&f.timeout, "timeout", timeout, "give up after this `duration`; 0 = never")
	}
	if c.writes {
		flags.StringVar(&f.reason, "reason", "", "reason, stored in the audit (required)")
		flags.StringVar(&f.idempotencyKey, "idempotency-key", "",
			"`key` of this request: a repeat with the same key does nothing; default: a new key")
	}
	if c.pages {
		f.page.add(flags)
	}
	if c.flags != nil {
		c.flags(flags)
	}
}

// start reads the settings, creates the client and runs the command within the timeout. A write without a reason is
// refused before anything is sent.
func (c command) start(ctx context.Context, t *call) (err error) {
	as := c.as
	if c.choose != nil {
		if as, err = c.choose(t); err != nil {
			return err
		}
	}
	if as.command != "" {
		if t.config, err = readConfig(t.cmd, as.command, t.env); err != nil {
			return err
		}
	}
	if c.writes && t.reason == "" {
		if c.dry == nil || !c.dry(t) {
			return &usageError{missingFlag("reason")}
		}
		t.reason = dryRunReason
	}
	if c.pages {
		if err := t.page.check(); err != nil {
			return err
		}
	}
	if as.key == "" {
		return c.run(ctx, t)
	}
	ctx, cancel, err := within(ctx, t.timeout)
	if err != nil {
		return err
	}
	defer cancel()
	url, stop, err := t.connect(as, c.retry)
	if err != nil {
		return &usageError{err}
	}
	defer stop()
	ctx, t.answer = client.KeepAnswer(ctx)
	return t.problemText(withURL(c.run(ctx, t), url))
}

// connect creates the client of a caller.
func (t *call) connect(as caller, retry client.Retry) (url string, stop func(), err error) {
	url = t.config.text(as.url)
	key, options := t.config.secret(as.key).Reveal(), []client.Option{client.WithUserAgent("hongbao-cli/" + version), client.WithRetry(retry)}
	if as == callerApp {
		if t.app, err = client.New(url, key, options...); err != nil {
			return "", nil, err
		}
		return url, t.app.Close, nil
	}
	if t.staff, err = client.NewStaff(url, key, options...); err != nil {
		return "", nil, err
	}
	return url, t.staff.Close, nil
}

// within returns ctx with the timeout of --timeout; 0 = none.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, error) {
	switch {
	case timeout < 0:
		return nil, nil, &usageError{fmt.Errorf("parse --timeout %q: write 0s or more; 0s = no limit", timeout)}
	case timeout == 0:
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, cancel, nil
}

// why is the reason of a write.
func (t *call) why() wire.Reason { return wire.Reason{Reason: t.reason} }

// key is the idempotency key of a write.
func (t *call) key() client.Key { return client.Key(t.idempotencyKey) }

// shown returns err, or prints the answer of the API: as received with --json, otherwise as text.
func (t *call) shown(err error, text func() error) error {
	switch {
	case err != nil:
		return err
	case t.json:
		return t.printAnswer()
	}
	return text()
}

// completeFirst completes the first argument. Errors complete nothing: a shell waits for the answer.
func (c command) completeFirst(t *call) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		quick := command{as: c.as, retry: client.Retry{Tries: 1}, run: func(ctx context.Context, t *call) (err error) {
			found, err = c.complete(ctx, t)
			return err
		}}
		t.timeout = 2 * time.Second
		if quick.start(cmd.Context(), t) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// newest is the page of a list that completions display.
var newest = client.Page{Limit: 20}

// completions are the items of a list with a description of each.
func completions[T any](list *wire.List[T], err error, of func(*T) (id, about string)) (found []cobra.Completion, _ error) {
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		id, about := of(&list.Items[i])
		found = append(found, cobra.CompletionWithDesc(id, visible.Text(about)))
	}
	return found, nil
}
