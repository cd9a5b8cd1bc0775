package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/internal/visible"
	"hongbao/wire"
)

func newApprovalsCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "approvals",
		Short: "Approve or reject another person's decision, or withdraw your own request",
		Long: `Approve or reject another person's decision with the finance key of a second person.
A request without an answer expires after 24 hours; no money has moved by then.

approve checks the state again:
  - When the state no longer permits the decision, approve is refused with exit code 4
    and the decision ends.
  - When the decision would now do something else than its maker was shown, approve is
    refused with decision_changed. No money moves and the request stays open ("waiting,
    changed" in the list). Reject it, or have it withdrawn and made again.

withdraw is for the requester, while the request has no answer.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newApprovalsListCommand(env),
		newAnswerCommand(env, "approve", "Approve another person's decision", (*client.Staff).Approve),
		newAnswerCommand(env, "reject", "Reject another person's decision; no money moves", (*client.Staff).Reject),
		newAnswerCommand(env, "withdraw", "Withdraw your own request; no money moves", (*client.Staff).Withdraw))
	return group
}

var decisionStatuses = []string{string(payout.DecisionWaiting), string(payout.DecisionOpen), string(payout.DecisionCarriedOut),
	string(payout.DecisionOvertaken), string(payout.DecisionRejected), string(payout.DecisionExpired),
	string(payout.DecisionWithdrawn)}

// checkOneOf checks a flag with a fixed set of values. Empty means that the flag is not set.
func checkOneOf(name, value string, values []string) error {
	if value != "" && !slices.Contains(values, value) {
		return &usageError{fmt.Errorf("--%s %q is none of %s: write one of them", name, value, strings.Join(values, ", "))}
	}
	return nil
}

func newApprovalsListCommand(env environment) *cobra.Command {
	f, page, filter := newFinanceFlags(), pageFlags{}, client.ApprovalFilter{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List decisions that need or needed approval, newest first",
		Example: "  hongbao approvals list --status waiting\n  hongbao approvals list --status waiting --by-others   # what you may answer",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOneOf("status", filter.Status, decisionStatuses); err != nil {
				return err
			}
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.ApprovalItem], error) {
					return t.staff.ListApprovals(ctx, filter, p)
				}
				columns := []any{"approval", "what", "about", "amount", "to", "asked by", "why", "evidence", "status", "answered by", "until"}
				return printList(ctx, t.appCommand, page, fetch, columns, approvalRow)
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Status, "status", "", "only this `status`: "+strings.Join(decisionStatuses, ", "))
	paymentID.flag(cmd, &filter.PaymentID, "payment", "only this payout or refund `id`")
	flags.BoolVar(&filter.ByOthers, "by-others", false, "only decisions of others; of the waiting ones, those you may answer")
	complete(cmd, "status", decisionStatuses...)
	complete(cmd, "payment")
	return cmd
}

func approvalRow(a *wire.ApprovalItem) []any {
	about, amount, to := "", "", ""
	switch {
	case a.Payout != nil:
		about, amount, to = a.Payout.ID, formatYuan(a.Payout.Amount), a.Payout.UserID
	case a.Refund != nil:
		about, amount, to = a.Refund.ID, formatYuan(a.Refund.Amount), a.Refund.UserID
	}
	if a.Decision.OrderNo != nil { // it states what became of the money of this order number
		about = *a.Decision.OrderNo
	}
	status := a.Status
	if a.Changed {
		status += ", changed"
	}
	return []any{a.ID, a.Decision.Kind, about, amount, to, a.Decision.By, a.Decision.Reason, optionalText(a.Evidence), status,
		optionalText(a.AnsweredBy),
		formatTime(a.ExpiresAt)}
}

// aboutPayment says which payment a decision is about, and its status.
func aboutPayment(p *wire.Payout, r *wire.Refund) string {
	switch {
	case p != nil:
		return fmt.Sprintf("payout %s is %s", p.ID, p.Status)
	case r != nil:
		return fmt.Sprintf("refund %s is %s", r.ID, r.Status)
	}
	return "no payment changed"
}

// approvalAnswer is a client method that approves, rejects or withdraws a decision.
type approvalAnswer func(*client.Staff, context.Context, string, wire.Reason, ...client.Key) (*wire.Answered, error)

// newAnswerCommand returns the command that answers one request for approval, or withdraws it.
func newAnswerCommand(env environment, verb, short string, do approvalAnswer) *cobra.Command {
	f := newFinanceFlags()
	cmd := &cobra.Command{
		Use:               verb + " <approval id> --reason <text>",
		Short:             short,
		Example:           "  hongbao approvals " + verb + " aKQ3X7M2P5R6T4V2W3Y7Z5B6CD --reason 'bank slip checked'",
		Args:              approvalID.arg,
		ValidArgsFunction: completeApprovals(env, &f, verb != "withdraw"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				a, err := do(t.staff, ctx, args[0], f.decision(), client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				about := aboutPayment(a.Payout, a.Refund)
				if t.json {
					return t.printAnswer()
				}
				return printf(t.out, "%s, requested by %s, is %s; %s.\n", decisionName(a.Decision), a.Decision.By, a.Decision.Status, about)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

// completeApprovals completes the ids of waiting approvals; with byOthers those that the caller may answer.
func completeApprovals(env environment, f *staffFlags, byOthers bool) cobra.CompletionFunc {
	return completeItems(env, f, func(ctx context.Context, t *staffCommand) (found []cobra.Completion, err error) {
		list, err := t.staff.ListApprovals(ctx, client.ApprovalFilter{Status: string(payout.DecisionWaiting), ByOthers: byOthers},
			client.Page{Limit: 20})
		if err != nil {
			return nil, err
		}
		for _, a := range list.Items {
			found = append(found, cobra.CompletionWithDesc(a.ID,
				visible.Text(fmt.Sprintf("%s, requested by %s: %s", a.Decision.Kind, a.Decision.By, a.Decision.Reason))))
		}
		return found, nil
	})
}
