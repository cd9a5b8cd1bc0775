package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/visible"
	"hongbao/wire"
)

func newRefundsCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "refunds",
		Short: "Find failed refunds, and retry, cancel or settle them",
		Long: `Find failed refunds to senders, and retry, cancel or settle them: the unclaimed remainder of a
packet (remainder), and the amount of a cancelled payout (cancel). Decisions work as
those about payouts: "hongbao payouts --help".`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newRefundsListCommand(env), newRefundsShowCommand(env), newRefundsRetryCommand(env), newRefundsMarkPaidCommand(env),
		newRefundDecision(env, "cancel", "Cancel a refund that its sender must not get",
			`Cancel a refund that its sender must not get: the provider has returned the charge of the
packet, or the cancelled payout has reached its recipient after all. A second person has to
approve. "show" says whether a refund can be cancelled.`, (*client.Staff).CancelRefund),
		newRefundDecision(env, "withdraw", "Withdraw the open cancel of a refund, which goes on",
			`Withdraw a cancel that is open while every order number is queried. The refund goes on.`, (*client.Staff).WithdrawRefundCancel))
	return group
}

func newRefundsListCommand(env environment) *cobra.Command {
	f, filter, page, late := newFinanceFlags(), filterFlags{}, pageFlags{}, false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List refunds, newest first",
		Long:    "List refunds that match all filters, newest first. The user of a refund is the sender.",
		Example: "  hongbao refunds list --status failed\n  hongbao refunds list --late",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, err := filter.read(cmd)
			if err != nil {
				return err
			}
			want.Late = late
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.Refund], error) {
					return t.staff.ListRefunds(ctx, client.RefundFilter(want), p)
				}
				return printList(ctx, t.appCommand, page, fetch, []any{"refund", "kind", "sender", "amount", "status", "failure", "created"},
					func(r *wire.Refund) []any {
						return []any{r.ID, r.Kind, r.UserID, formatYuan(r.Amount), r.Status, failureCode(r.Failure), formatTime(r.CreatedAt)}
					})
			})
		},
	}
	f.add(cmd, false)
	filter.add(cmd)
	cmd.Flags().BoolVar(&late, "late", false, "only refunds that are due for 5 minutes or longer and not final")
	page.add(cmd)
	return cmd
}

func newRefundsShowCommand(env environment) *cobra.Command {
	f := newFinanceFlags()
	cmd := &cobra.Command{
		Use:               "show <refund id>",
		Short:             "Show a refund with its timeline and the effect of a retry",
		Args:              refundID.arg,
		ValidArgsFunction: completeRefunds(env, &f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				r, err := t.staff.Refund(ctx, args[0])
				if err != nil {
					return err
				}
				if t.json {
					return t.printAnswer()
				}
				t.printFacts([][]any{
					{"refund", r.ID}, {"packet", r.PacketID}, {"kind", r.Kind}, {"of payout", optionalText(r.PayoutID)}, {"sender", r.UserID},
					{"amount", formatAmount(r.Amount)}, {"status", r.Status}, {"waits for", waitsFor[r.Status]},
					{"failure", failureText(r.Failure)}, {"next", nextAction(r.Failure)},
					{"a retry", retryText(r.Status, r.Retry)}, {"cancellable", r.Cancellable},
					{"order number", optionalText(r.OrderNo)}, {"created", formatTime(r.CreatedAt)},
					{"changed", formatTime(r.UpdatedAt)}, {"workflow", r.Workflow.ID}, {"Temporal UI", uiLink(r.Workflow)},
				})
				return t.printHistory(r.Attempts, r.Timeline, r.Temporal)
			})
		},
	}
	f.add(cmd, false)
	return cmd
}

func newRefundsRetryCommand(env environment) *cobra.Command {
	f := newRetryFlags(refundRetries)
	return f.command(&cobra.Command{
		Use:   "retry <refund id> --reason <text> | retry --failure-code <code> ...",
		Short: "Retry a refund, or all refunds that filters select",
		Long: `Retry a failed or returned refund. The provider is queried about every earlier order
number before anything is sent. Without an id the command retries all refunds that the
filters select, like "hongbao payouts retry": without --yes it is a dry run.`,
		Example: `  hongbao refunds retry r3q5k9v0c1m7e2u8h4r6t0000 --reason 'sender has opened the account again'
  hongbao refunds retry --failure-code account_frozen
  hongbao refunds retry --failure-code account_frozen --reason 'bank has unfrozen them' --yes`,
		ValidArgsFunction: completeRefunds(env, &f.staffFlags),
	}, env)
}

// refundDecision is a client method that decides about one refund.
type refundDecision func(*client.Staff, context.Context, string, wire.Reason, ...client.Key) (*wire.DecidedRefund, error)

// newRefundDecision returns a command that decides about one refund.
func newRefundDecision(env environment, verb, short, long string, decide refundDecision) *cobra.Command {
	f := newFinanceFlags()
	cmd := &cobra.Command{
		Use:               verb + " <refund id> --reason <text>",
		Short:             short,
		Long:              long,
		Example:           "  hongbao refunds " + verb + " r3q5k9v0c1m7e2u8h4r6t0004 --reason 'ticket 4711'",
		Args:              refundID.arg,
		ValidArgsFunction: completeRefunds(env, &f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				done, err := decide(t.staff, ctx, args[0], f.decision(), client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				return t.printRefundDecision(done)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

func newRefundsMarkPaidCommand(env environment) *cobra.Command {
	f, evidence := newFinanceFlags(), ""
	cmd := &cobra.Command{
		Use:   "mark-paid <refund id> --reason <text> --evidence <text>",
		Short: "Mark a refund as paid by other means",
		Long: "Mark a refund as paid by other means, with evidence. A second person has to approve. A\nremainder that is marked as paid " +
			"closes its packet.",
		Args:              refundID.arg,
		ValidArgsFunction: completeRefunds(env, &f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if evidence == "" {
				return &usageError{missingFlag("evidence")}
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				done, err := t.staff.MarkRefundPaid(ctx, args[0], wire.MarkPaid{Reason: f.reason,
					Evidence: evidence}, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				return t.printRefundDecision(done)
			})
		},
	}
	f.add(cmd, true)
	addEvidence(cmd, &evidence)
	return cmd
}

func (t *staffCommand) printRefundDecision(d *wire.DecidedRefund) error {
	return t.printDecision(d.Decision, d.Approval, fmt.Sprintf("refund %s of %s to %s is %s", d.Refund.ID, formatYuan(d.Refund.Amount),
		d.Refund.UserID, d.Refund.Status))
}

func completeRefunds(env environment, f *staffFlags) cobra.CompletionFunc {
	return completeItems(env, f, func(ctx context.Context, t *staffCommand) (found []cobra.Completion, err error) {
		list, err := t.staff.ListRefunds(ctx, client.RefundFilter{Status: wire.PayoutFailed}, client.Page{Limit: 20})
		if err != nil {
			return nil, err
		}
		for _, r := range list.Items {
			found = append(found, cobra.CompletionWithDesc(r.ID,
				visible.Text(fmt.Sprintf("%s to %s, %s", formatYuan(r.Amount), r.UserID, failureCode(r.Failure)))))
		}
		return found, nil
	})
}
