package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
)

// retryFlags are those of "payouts retry" and "refunds retry", for one and for many.
type retryFlags struct {
	staffFlags
	of     retryKind
	filter filterFlags
	yes    bool
	dryRun bool
}

func newPayoutsRetryCommand(env environment) *cobra.Command {
	f := newRetryFlags(payoutRetries)
	cmd := &cobra.Command{
		Use:   "retry <payout id> --reason <text> | retry --failure-code <code> ...",
		Short: "Pay a payout again, or all that filters select",
		Long: `Pay a payout again that failed or came back: every earlier order number is asked
about before anything is sent. From the installation's approval amount on a second
person has to agree first.

Without an id it is about all payouts that the filters select, failed and returned
ones unless --status says otherwise. Without --yes nothing is decided: it says which
payouts there are, with which order number each would be paid, the same or a new one
and why, and which need a second person. With --yes exactly these are decided about,
each once, however many there are; whatever fails in the meantime is left alone.
When that is broken off, run it again with the --idempotency-key it prints.`,
		Example: `  hongbao payouts retry p3q5k9v0c1m7e2u8h4r6t0003 --reason 'account unfrozen, ticket 4711'
  hongbao payouts retry --failure-code account_frozen --older-than 1h
  hongbao payouts retry --failure-code account_frozen --older-than 1h --reason 'bank has unfrozen them' --yes`,
		ValidArgsFunction: completePayouts(env, &f.staffFlags),
	}
	return f.command(cmd, env)
}

func newRetryFlags(of retryKind) *retryFlags {
	f := &retryFlags{staffFlags: newFinanceFlags(), of: of}
	f.timeout = time.Hour // there may be many
	return f
}

// command adds to a command what retries have in common.
func (f *retryFlags) command(cmd *cobra.Command, env environment) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return paymentID(f.of.one, f.of.kinds...)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.retry(cmd, env, args) }
	f.add(cmd, true)
	f.filter.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, "of those that filters select: decide, do not only say")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would happen; without an id that is so unless there is --yes")
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
		return &usageError{errors.New("--yes and --dry-run contradict each other")}
	case len(args) == 1 && len(given) > 0:
		return &usageError{fmt.Errorf("%s goes without an id", given[0])}
	case len(args) == 0 && want.Status != "" && !retryable(want.Status):
		return &usageError{fmt.Errorf("--status %s: only failed, returned and unknown %s can be paid again", want.Status, f.of.many)}
	case len(args) == 0 && len(given) == 0:
		return &usageError{fmt.Errorf("an id is needed, or a filter: which %s?", f.of.many)}
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
		return f.of.decide(ctx, t, args[0], f.decision())
	})
}

// mendable reports whether a retry may be possible in a status.
func retryable(s client.PayoutStatus) bool {
	return s == client.PayoutFailed || s == client.PayoutReturned || s == client.PayoutUnknown
}
