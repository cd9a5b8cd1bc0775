package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/wire"
)

// retryFlags are the flags of "payouts retry" and "refunds retry", for one and for many.
type retryFlags struct {
	of       payments
	filter   paymentFlags
	yes      bool
	dryRun   bool
	evidence string // of one retry of a payment that is not final
}

func payoutsRetry() command {
	f := retryFlags{of: payouts}
	return f.command(command{
		use:   "retry <payout id> --reason <text> | retry --failure-code <code> ...",
		short: "Retry a payout, or all payouts that filters select",
		long: `Retry a failed or returned payout. The provider is queried about every earlier order
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
		example: `  hongbao payouts retry p3q5k9v0c1m7e2u8h4r6t0003 --reason 'account unfrozen, ticket 4711'
  hongbao payouts retry p3q5k9v0c1m7e2u8h4r6t0003 --reason 'in progress for a year' --evidence 'letter of the provider'
  hongbao payouts retry --failure-code account_frozen --older-than 1h
  hongbao payouts retry --failure-code account_frozen --older-than 1h --reason 'bank has unfrozen them' --yes`,
	})
}

func refundsRetry() command {
	f := retryFlags{of: refunds}
	return f.command(command{
		use:   "retry <refund id> --reason <text> | retry --failure-code <code> ...",
		short: "Retry a refund, or all refunds that filters select",
		long: `Retry a failed or returned refund. The provider is queried about every earlier order
number before anything is sent. Without an id the command retries all refunds that the
filters select, like "hongbao payouts retry": without --yes it is a dry run.`,
		example: `  hongbao refunds retry r3q5k9v0c1m7e2u8h4r6t0000 --reason 'sender has opened the account again'
  hongbao refunds retry --failure-code account_frozen
  hongbao refunds retry --failure-code account_frozen --reason 'bank has unfrozen them' --yes`,
	})
}

// command adds the common flags and actions of retries to a command.
func (f *retryFlags) command(c command) command {
	c.as, c.writes, c.timeout, c.complete = callerFinance, true, time.Hour, f.of.failed // an hour for many payments
	c.args = optional(f.of.id.arg)
	c.choose, c.dry, c.run = f.check, f.dry, f.retry
	c.flags = func(flags *pflag.FlagSet) {
		filterFlags(flags, &f.filter)
		flags.StringVar(&f.evidence, "evidence", "", "evidence that the earlier order numbers will not pay; with an id")
		flags.BoolVar(&f.yes, "yes", false, "retry the selected ones instead of a dry run")
		flags.BoolVar(&f.dryRun, "dry-run", false, "show the effect without deciding; default without an id, unless --yes is set")
	}
	return c
}

// optional accepts no argument, or those that check accepts.
func optional(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return check(cmd, args)
	}
}

func (f *retryFlags) dry(t *call) bool { return f.dryRun || len(t.args) == 0 && !f.yes }

func (f *retryFlags) retry(ctx context.Context, t *call) error {
	r := retrier{t, f.of}
	switch {
	case len(t.args) == 0:
		return r.retryMany(ctx, f.filter.RefundFilter, t.idempotencyKey, f.dry(t))
	case f.dry(t):
		return r.previewOne(ctx, t.args[0])
	}
	done, err := f.of.retry(ctx, t.staff, t.args[0], wire.Retry{Reason: t.reason, Evidence: f.evidence}, t.key())
	if err != nil {
		return err
	}
	return t.printDecision(done)
}

// check checks the flags against each other.
func (f *retryFlags) check(t *call) (caller, error) {
	given, one := givenFilters(t), len(t.args) == 1
	err := checkFilter(t, &f.filter)
	switch {
	case err != nil:
	case f.yes && f.dryRun:
		err = errors.New("--yes and --dry-run contradict each other: give one of them")
	case one && len(given) > 0:
		err = fmt.Errorf("%s cannot be combined with an id: give one of them", given[0])
	case !one && f.evidence != "":
		err = errors.New("--evidence is about one payment: give its id")
	case !one && f.filter.Status != "" && !retryable(f.filter.Status):
		err = fmt.Errorf("--status %s: only failed, returned and unknown %s can be paid again", f.filter.Status, f.of.many)
	case !one && len(given) == 0:
		err = fmt.Errorf("give an id, or a filter that selects %s, such as --status failed", f.of.many)
	}
	if err != nil {
		return caller{}, &usageError{err}
	}
	return callerFinance, nil
}

// retryable reports whether a status may permit a retry.
func retryable(s wire.PayoutStatus) bool {
	return s == wire.PayoutFailed || s == wire.PayoutReturned || s == wire.PayoutUnknown
}
