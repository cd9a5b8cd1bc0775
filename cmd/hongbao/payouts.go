package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/internal/visible"
	"hongbao/wire"
)

// newFinanceFlags returns the flags of a command for finance.
func newFinanceFlags() staffFlags { return staffFlags{command: cmdFinance, key: "finance-key"} }

func newPayoutsCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "payouts",
		Short: "Find failed payouts, show the cause, and retry, cancel or settle them",
		Long: `Find failed payouts, show the cause, and retry, cancel or settle them, through the API's
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
		Example: `  hongbao payouts list --status failed --failure-code account_frozen --older-than 24h
  hongbao payouts retry --failure-code account_frozen            # a dry run
  hongbao payouts retry --failure-code account_frozen --reason 'bank has unfrozen them' --yes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newPayoutsListCommand(env), newPayoutsShowCommand(env), newPayoutsRetryCommand(env),
		newPayoutDecision(env, "cancel", "Cancel a payout and refund its amount to the sender",
			`Cancel a failed or returned payout and refund its amount to the sender of the packet. A
second person has to approve. Then the provider is queried about every order number.
When none has moved money, the payout is cancelled and a separate refund is sent.`, (*client.Staff).CancelPayout),
		newPayoutDecision(env, "withdraw", "Withdraw the open cancel of a payout; no money moves",
			`Withdraw the open cancel of a payout: approved, and not carried out yet, for example because
the provider answers "in progress" for ever. Another decision can be made at once; the
next retry needs a second person at any amount. A cancel that waits for a second person
is withdrawn by "hongbao approvals withdraw".`, (*client.Staff).WithdrawCancel),
		newPayoutMarkPaidCommand(env),
		newPayoutDecision(env, "ask", "Query the provider about every order number of a payout",
			`Query the provider about every order number of a payout, in any status once an attempt
was sent. A query moves no money; its answers are settled.`, (*client.Staff).AskPayout))
	return group
}

func newPayoutsListCommand(env environment) *cobra.Command {
	f, filter, page := newFinanceFlags(), filterFlags{}, pageFlags{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List payouts, newest first",
		Long: `List payouts that match all filters, newest first. Only failed and returned payouts wait
for a decision.`,
		Example: `  hongbao payouts list --status failed --failure-code account_frozen
  hongbao payouts list --status unknown --older-than 24h --all --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, err := filter.read(cmd)
			if err != nil {
				return err
			}
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.Payout], error) {
					return t.staff.ListPayouts(ctx, want, p)
				}
				return printList(ctx, t.appCommand, page, fetch, []any{"payout", "user", "amount", "status", "failure", "attempts", "created"},
					payoutRow)
			})
		},
	}
	f.add(cmd, false)
	filter.add(cmd)
	page.add(cmd)
	return cmd
}

func payoutRow(p *wire.Payout) []any {
	return []any{p.ID, p.UserID, formatYuan(p.Amount), p.Status, failureCode(p.Failure), p.AttemptCount, formatTime(p.CreatedAt)}
}

func failureCode(f *wire.PayoutFailure) string {
	if f == nil {
		return ""
	}
	return f.Code
}

func newPayoutsShowCommand(env environment) *cobra.Command {
	f := newFinanceFlags()
	cmd := &cobra.Command{
		Use:   "show <payout id>",
		Short: "Show a payout with its timeline and the effect of a retry",
		Long: `Show a payout with its attempts, its timeline, the effect of a retry, and the link to
its workflow in the Temporal UI. --json prints the API's response.`,
		Args:              payoutID.arg,
		ValidArgsFunction: completePayouts(env, &f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error { return t.showPayout(ctx, args[0]) })
		},
	}
	f.add(cmd, false)
	return cmd
}

func (t *staffCommand) showPayout(ctx context.Context, id string) error {
	p, err := t.staff.Payout(ctx, id)
	if err != nil {
		return err
	}
	if t.json {
		return t.printAnswer()
	}
	share := "none: share conflict"
	if p.ShareIndex != nil {
		share = fmt.Sprint(*p.ShareIndex)
	}
	t.printFacts([][]any{
		{"payout", p.ID}, {"packet", p.PacketID}, {"share", share}, {"user", p.UserID}, {"amount", formatAmount(p.Amount)}, {"status", p.Status},
		{"waits for", waitsFor[p.Status]}, {"failure", failureText(p.Failure)}, {"next", nextAction(p.Failure)},
		{"a retry", retryText(p.Status, p.Retry)},
		{"order number", optionalText(p.OrderNo)}, {"provider", strings.TrimSpace(p.Provider + " " + optionalText(p.ProviderRef))},
		{"created", formatTime(p.CreatedAt)}, {"changed", formatTime(p.UpdatedAt)}, {"workflow", p.Workflow.ID}, {"Temporal UI",
			uiLink(p.Workflow)},
	})
	return t.printHistory(p.Attempts, p.Timeline, p.Temporal)
}

// waitsFor describes the event that a payment in a status waits for.
var waitsFor = map[wire.PayoutStatus]string{wire.PayoutPending: "being sent", wire.PayoutSending: "the provider's answer",
	wire.PayoutUnknown:           "the outcome of a query to the provider",
	wire.PayoutAwaitingRecipient: "the recipient to accept the money at the provider"}

// printFacts prints a table of names and values, without the empty values.
func (t *appCommand) printFacts(lines [][]any) {
	show := newGrid(t.out)
	for _, line := range lines {
		if line[1] != "" {
			show.row(line...)
		}
	}
	show.render()
}

// printHistory prints attempts, timeline and pending activities of a payment.
func (t *staffCommand) printHistory(attempts []wire.Attempt, timeline []wire.TimelineEntry, temporal wire.TemporalRuns) error {
	if len(attempts) > 0 {
		show := newGrid(t.out, "attempt", "order number", "outcome", "code", "sent", "ended")
		for _, a := range attempts {
			show.row(a.No, a.OrderNo, optionalText(a.Outcome), optionalText(a.Code), formatOptionalTime(a.StartedAt), formatOptionalTime(a.EndedAt))
		}
		show.render()
	}
	if len(timeline) > 0 {
		show := newGrid(t.out, "at", "who", "what happened")
		for _, e := range wire.Spans(timeline) {
			if e.Count > 1 {
				e.What += fmt.Sprintf(" (%d times, last at %s)", e.Count, formatTime(e.LastAt))
			}
			show.row(formatTime(e.At), e.Source, e.What)
		}
		show.render()
	}
	switch temporal.State {
	case "away":
		return printf(t.notes, "Temporal did not answer: the history lacks its events.\n")
	case "gone":
		return printf(t.notes, "Temporal has no run of this payment, or has deleted it.\n")
	}
	if len(temporal.Pending) == 0 {
		return nil
	}
	show := newGrid(t.out, "pending step", "state", "try", "next try", "last failure")
	for _, p := range temporal.Pending {
		show.row(p.Name, p.State, p.Attempt, formatOptionalTime(p.NextAt), optionalText(p.LastFailure))
	}
	show.render()
	return nil
}

func failureText(f *wire.PayoutFailure) string {
	if f == nil {
		return ""
	}
	return f.Code + ": " + f.Message
}

func nextAction(f *wire.PayoutFailure) string {
	if f == nil {
		return ""
	}
	return f.NextAction
}

// uiLink returns the URL of a workflow in the Temporal UI, or "" when none is configured.
func uiLink(w wire.WorkflowLink) string {
	if !strings.HasPrefix(w.URL, "http://") && !strings.HasPrefix(w.URL, "https://") {
		return ""
	}
	return w.URL
}

// dryRunReason is the reason of a dry run: the API requires one.
const dryRunReason = "dry run"

// retryText describes the effect of a retry now, or "" for a status that permits none.
func retryText(status wire.PayoutStatus, would wire.RetryPreview) string {
	if !would.Possible && !retryable(status) {
		return ""
	}
	if !would.Possible {
		return "is refused: " + optionalText(would.Code)
	}
	number, why := optionalText(would.OrderNo), orderNumberReason(status, would)
	text := fmt.Sprintf("queries every earlier order number, then sends the new order number %s: %s", number, why)
	if would.SameOrderNo {
		text = fmt.Sprintf("sends the same order number %s again: %s", number, why)
	}
	if would.Evidence {
		text += "; needs --evidence"
	}
	if would.SecondPerson {
		text += "; a second person has to approve first"
	}
	return text
}

// orderNumberReason says why a retry sends its order number, or "" when it sends none.
func orderNumberReason(status wire.PayoutStatus, would wire.RetryPreview) string {
	switch {
	case would.OrderNo == nil:
		return ""
	case would.SameOrderNo:
		return "the provider never received it"
	case status == wire.PayoutReturned:
		return "the last one was returned"
	case !retryable(status) || status == wire.PayoutUnknown:
		return "the provider's memory of the last one has ended"
	}
	if number, err := payout.Parse(*would.OrderNo); err == nil && number.Attempt == 1 {
		return "nothing was sent before"
	}
	return "the last one failed for good"
}

// completePayouts completes the newest payouts that wait for a decision.
func completePayouts(env environment, f *staffFlags) cobra.CompletionFunc {
	return completeItems(env, f, func(ctx context.Context, t *staffCommand) (found []cobra.Completion, err error) {
		list, err := t.staff.ListPayouts(ctx, client.PayoutFilter{Status: wire.PayoutFailed}, client.Page{Limit: 20})
		if err != nil {
			return nil, err
		}
		for _, p := range list.Items {
			found = append(found, cobra.CompletionWithDesc(p.ID,
				visible.Text(fmt.Sprintf("%s to %s, %s", formatYuan(p.Amount), p.UserID, failureCode(p.Failure)))))
		}
		return found, nil
	})
}

// completeItems completes the first argument with the results of find. Errors complete nothing: a shell waits for the
// answer.
func completeItems(env environment, f *staffFlags, find func(context.Context, *staffCommand) ([]cobra.Completion,
	error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		quick := staffFlags{command: f.command, key: f.key, timeout: 2 * time.Second, reason: "completion"}
		err := quick.run(cmd, env, func(ctx context.Context, t *staffCommand) (err error) {
			found, err = find(ctx, t)
			return err
		}, client.WithRetry(client.Retry{Tries: 1}))
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
