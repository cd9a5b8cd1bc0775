package main

import (
	"context"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/wire"
)

func refundsCommand() command {
	return command{
		use:   "refunds",
		short: "Find failed refunds, and retry, cancel or settle them",
		long: `Find failed refunds to senders, and retry, cancel or settle them: the unclaimed remainder of a
packet (remainder), and the amount of a cancelled payout (cancel). Decisions work as
those about payouts: "hongbao payouts --help".`,
		sub: []command{
			refundsList(), refundsShow(), refundsRetry(),
			markPaid(refunds, `Mark a refund as paid by other means, with evidence. A second person has to approve. A
remainder that is marked as paid closes its packet.`, (*client.Staff).MarkRefundPaid, ofRefund),
			refundDecision("cancel", "Cancel a refund that its sender must not get",
				`Cancel a refund that its sender must not get: the provider has returned the charge of the
packet, or the cancelled payout has reached its recipient after all. A second person has to
approve. "show" says whether a refund can be cancelled.`, (*client.Staff).CancelRefund),
			refundDecision("withdraw", "Withdraw the open cancel of a refund, which goes on",
				`Withdraw a cancel that is open while every order number is queried. The refund goes on.`, (*client.Staff).WithdrawRefundCancel),
		},
	}
}

func refundDecision(verb, short, long string, decide decision[wire.DecidedRefund]) command {
	return paymentDecision(refunds, verb, short, long, decide, ofRefund)
}

func refundsList() command {
	var filter paymentFlags
	return command{
		use:     "list",
		short:   "List refunds, newest first",
		long:    "List refunds that match all filters, newest first. The user of a refund is the sender.",
		example: "  hongbao refunds list --status failed\n  hongbao refunds list --late",
		as:      callerFinance, pages: true,
		flags: func(flags *pflag.FlagSet) {
			filterFlags(flags, &filter)
			flags.BoolVar(&filter.Late, "late", false, "only refunds that are due for 5 minutes or longer and not final")
		},
		run: func(ctx context.Context, t *call) error {
			if err := checkFilter(t, &filter); err != nil {
				return err
			}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.Refund], error) {
				return t.staff.ListRefunds(ctx, filter.RefundFilter, p)
			}, []any{"refund", "kind", "sender", "amount", "status", "failure", "created"}, func(r *wire.Refund) []any {
				return []any{r.ID, r.Kind, r.UserID, formatYuan(r.Amount), r.Status, failureCode(r.Failure), formatTime(r.CreatedAt)}
			})
		},
	}
}

func refundsShow() command {
	return command{
		use: "show <refund id>", short: "Show a refund with its timeline and the effect of a retry",
		args: refundID.arg, complete: refunds.failed, as: callerFinance,
		run: func(ctx context.Context, t *call) error {
			r, err := t.staff.Refund(ctx, t.args[0])
			return t.shown(err, func() error {
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
}
