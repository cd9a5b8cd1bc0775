package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/wire"
)

func payoutsCommand() command {
	return command{
		use:   "payouts",
		short: "Find failed payouts, show the cause, and retry, cancel or settle them",
		long: `Find failed payouts, show the cause, and retry, cancel or settle them, through the API's
staff listener with a finance key. In a second terminal beside "hongbao dev":

  . .hongbao/dev.env
  export HONGBAO_STAFF_URL HONGBAO_FINANCE_KEY
  hongbao payouts list --status failed
  hongbao payouts show p3q5k9v0c1m7e2u8h4r6t0003

Every decision needs a --reason; the audit records it. When a second person has to
approve, the command ends with exit code 5 and no money has moved. When the status does
not permit the decision, it is refused with exit code 4. "hongbao help exit-codes"
lists all exit codes.

Write amounts in fen (100 fen = ¥1); tables show yuan. --json prints the API's response
instead of tables, also of a refusal.`,
		example: `  hongbao payouts list --status failed --failure-code account_frozen --older-than 24h
  hongbao payouts retry --failure-code account_frozen            # a dry run
  hongbao payouts retry --failure-code account_frozen --reason 'bank has unfrozen them' --yes`,
		sub: []command{
			payoutsList(), payoutsShow(), payoutsRetry(),
			payoutDecision("cancel", "Cancel a payout and refund its amount to the sender",
				`Cancel a failed or returned payout and refund its amount to the sender of the packet. A
second person has to approve. Then the provider is queried about every order number.
When none has moved money, the payout is cancelled and a separate refund is sent.`, (*client.Staff).CancelPayout),
			payoutDecision("withdraw", "Withdraw the open cancel of a payout; no money moves",
				`Withdraw the open cancel of a payout: approved, and not carried out yet, for example because
the provider answers "in progress" for ever. Another decision can be made at once; the
next retry needs a second person at any amount. A cancel that waits for a second person
is withdrawn by "hongbao approvals withdraw".`, (*client.Staff).WithdrawCancel),
			markPaid(payouts, `Mark a failed or returned payout as paid by other means, with evidence; also one that is
not final, after the provider's memory of its order number has ended. A second person has
to approve. A success that the provider reports later is a break.`, (*client.Staff).MarkPayoutPaid, ofPayout),
			payoutDecision("ask", "Query the provider about every order number of a payout",
				`Query the provider about every order number of a payout, in any status once an attempt
was sent. A query moves no money; its answers are settled.`, (*client.Staff).AskPayout),
		},
	}
}

func payoutDecision(verb, short, long string, decide decision[wire.Decided]) command {
	return paymentDecision(payouts, verb, short, long, decide, ofPayout)
}

func payoutsList() command {
	var filter paymentFlags
	return command{
		use:   "list",
		short: "List payouts, newest first",
		long: `List payouts that match all filters, newest first. Only failed and returned payouts wait
for a decision.`,
		example: `  hongbao payouts list --status failed --failure-code account_frozen
  hongbao payouts list --status unknown --older-than 24h --all --json`,
		as: callerFinance, pages: true,
		flags: func(flags *pflag.FlagSet) { filterFlags(flags, &filter) },
		run: func(ctx context.Context, t *call) error {
			if err := checkFilter(t, &filter); err != nil {
				return err
			}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.Payout], error) {
				return t.staff.ListPayouts(ctx, filter.PayoutFilter, p)
			}, []any{"payout", "user", "amount", "status", "failure", "attempts", "created"}, func(p *wire.Payout) []any {
				return []any{p.ID, p.UserID, formatYuan(p.Amount), p.Status, failureCode(p.Failure), p.AttemptCount, formatTime(p.CreatedAt)}
			})
		},
	}
}

func payoutsShow() command {
	return command{
		use:   "show <payout id>",
		short: "Show a payout with its timeline and the effect of a retry",
		long: `Show a payout with its attempts, its timeline, the effect of a retry, and the link to
its workflow in the Temporal UI. --json prints the API's response.`,
		args: payoutID.arg, complete: payouts.failed, as: callerFinance,
		run: func(ctx context.Context, t *call) error {
			p, err := t.staff.Payout(ctx, t.args[0])
			return t.shown(err, func() error { return t.printPayout(p) })
		},
	}
}

func (t *call) printPayout(p *wire.PayoutDetail) error {
	share := "none: share conflict"
	if p.ShareIndex != nil {
		share = fmt.Sprint(*p.ShareIndex)
	}
	t.printFacts([][]any{
		{"payout", p.ID}, {"packet", p.PacketID}, {"share", share}, {"user", p.UserID}, {"amount", formatAmount(p.Amount)}, {"status", p.Status},
		{"waits for", waitsFor[p.Status]}, {"failure", failureText(p.Failure)}, {"next", nextAction(p.Failure)},
		{"a retry", retryText(p.Status, p.Retry)}, {"order number", optionalText(p.OrderNo)},
		{"provider", strings.TrimSpace(p.Provider + " " + optionalText(p.ProviderRef))}, {"created", formatTime(p.CreatedAt)},
		{"changed", formatTime(p.UpdatedAt)}, {"workflow", p.Workflow.ID}, {"Temporal UI", uiLink(p.Workflow)},
	})
	return t.printHistory(p.Attempts, p.Timeline, p.Temporal)
}
