package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

// retryFlags are the flags of "payouts retry" and "refunds retry", for one and for many.
type retryFlags struct {
	staffFlags
	of     retryKind
	filter filterFlags
	yes    bool
	dryRun bool
	// evidence is that of one retry of a payment that is not final.
	evidence string
}

func newPayoutsRetryCommand(env environment) *cobra.Command {
	f := newRetryFlags(payoutRetries)
	cmd := &cobra.Command{
		Use:   "retry <payout id> --reason <text> | retry --failure-code <code> ...",
		Short: "Retry a payout, or all payouts that filters select",
		Long: `Retry a failed or returned payout. The provider is queried about every earlier order
number before anything is sent. From the installation's approval amount on, a second
person has to approve first.

A payout that is not final can be retried after the provider's memory of its order number
has ended. That needs --evidence that the earlier order numbers will not pay, unless the
provider no longer knows them, and always a second person.

Without an id the command retries all payouts that the filters select: failed and
returned ones, unless --status is set. Without --yes it is a dry run that lists the
payouts, their order numbers (the same or a new one, and why) and those that need
approval. With --yes each listed payout is retried once; payouts that fail later are not
included. After an interruption run the command again with the --idempotency-key that it
prints.`,
		Example: `  hongbao payouts retry p3q5k9v0c1m7e2u8h4r6t0003 --reason 'account unfrozen, ticket 4711'
  hongbao payouts retry p3q5k9v0c1m7e2u8h4r6t0003 --reason 'in progress for a year' --evidence 'letter of the provider'
  hongbao payouts retry --failure-code account_frozen --older-than 1h
  hongbao payouts retry --failure-code account_frozen --older-than 1h --reason 'bank has unfrozen them' --yes`,
		ValidArgsFunction: completePayouts(env, &f.staffFlags),
	}
	return f.command(cmd, env)
}

func newRetryFlags(of retryKind) *retryFlags {
	f := &retryFlags{staffFlags: newFinanceFlags(), of: of}
	f.timeout = time.Hour // for many payouts
	return f
}

// command adds the common flags and actions of retries to a command.
func (f *retryFlags) command(cmd *cobra.Command, env environment) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return f.of.id.arg(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.retry(cmd, env, args) }
	f.add(cmd, true)
	f.filter.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.evidence, "evidence", "", "evidence that the earlier order numbers will not pay; with an id")
	complete(cmd, "evidence")
	flags.BoolVar(&f.yes, "yes", false, "retry the selected ones instead of a dry run")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show the effect without deciding; default without an id, unless --yes is set")
	return cmd
}

func (f *retryFlags) retry(cmd *cobra.Command, env environment, args []string) error {
	given := f.filter.given(cmd)
	want, err := f.filter.read(cmd)
	if err != nil {
		return err
	}
	switch {
	case f.yes && f.dryRun:
		return &usageError{errors.New("--yes and --dry-run contradict each other: give one of them")}
	case len(args) == 1 && len(given) > 0:
		return &usageError{fmt.Errorf("%s cannot be combined with an id: give one of them", given[0])}
	case len(args) == 0 && f.evidence != "":
		return &usageError{errors.New("--evidence is about one payment: give its id")}
	case len(args) == 0 && want.Status != "" && !retryable(want.Status):
		return &usageError{fmt.Errorf("--status %s: only failed, returned and unknown %s can be paid again", want.Status, f.of.many)}
	case len(args) == 0 && len(given) == 0:
		return &usageError{fmt.Errorf("give an id, or a filter that selects %s, such as --status failed", f.of.many)}
	}
	dry := f.dryRun || len(args) == 0 && !f.yes
	if dry && f.reason == "" {
		f.reason = dryRunReason
	}
	return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
		r := retrier{t, f.of}
		switch {
		case len(args) == 0:
			return r.retryMany(ctx, want, f.idempotencyKey, dry)
		case dry:
			return r.previewOne(ctx, args[0])
		}
		return f.of.decide(ctx, t, args[0], wire.Retry{Reason: f.reason, Evidence: f.evidence}, client.Key(f.idempotencyKey))
	})
}

// retryable reports whether a status may permit a retry.
func retryable(s wire.PayoutStatus) bool {
	return s == wire.PayoutFailed || s == wire.PayoutReturned || s == wire.PayoutUnknown
}
