package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/wire"
)

func approvalsCommand() command {
	return command{
		use:   "approvals",
		short: "Approve or reject another person's decision, or withdraw your own request",
		long: `Approve or reject another person's decision with the finance key of a second person.
A request without an answer expires after 24 hours; no money has moved by then.

approve checks the state again:
  - When the state no longer permits the decision, approve is refused with exit code 4
    and the decision ends.
  - When the decision would now do something else than its maker was shown, approve is
    refused with decision_changed. No money moves and the request stays open ("waiting,
    changed" in the list). Reject it, or have it withdrawn and made again.

withdraw is for the requester, while the request has no answer.`,
		sub: []command{
			approvalsList(),
			approvalAnswer("approve", "Approve another person's decision", (*client.Staff).Approve),
			approvalAnswer("reject", "Reject another person's decision; no money moves", (*client.Staff).Reject),
			approvalAnswer("withdraw", "Withdraw your own request; no money moves", (*client.Staff).Withdraw),
		},
	}
}

var decisionStatuses = []payout.DecisionStatus{payout.DecisionWaiting, payout.DecisionOpen, payout.DecisionCarriedOut,
	payout.DecisionOvertaken, payout.DecisionRejected, payout.DecisionExpired, payout.DecisionWithdrawn}

func approvalsList() command {
	var filter wire.ApprovalFilter
	return command{
		use:     "list",
		short:   "List decisions that need or needed approval, newest first",
		example: "  hongbao approvals list --status waiting\n  hongbao approvals list --status waiting --by-others   # what you may answer",
		as:      callerFinance, pages: true,
		flags: func(flags *pflag.FlagSet) {
			choice(flags, &filter.Status, "status", "only this `status`: ", decisionStatuses)
			paymentID.flag(flags, &filter.PaymentID, "payment", "only this payout or refund `id`")
			flags.BoolVar(&filter.ByOthers, "by-others", false, "only decisions of others; of the waiting ones, those you may answer")
		},
		run: func(ctx context.Context, t *call) error {
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.ApprovalItem], error) {
				return t.staff.ListApprovals(ctx, filter, p)
			}, []any{"approval", "what", "about", "amount", "to", "asked by", "why", "evidence", "status", "answered by", "until"}, approvalRow)
		},
	}
}

func approvalRow(a *wire.ApprovalItem) []any {
	about, amount, to := "", "", ""
	switch {
	case a.Payout != nil:
		about, amount, to = a.Payout.ID, formatYuan(a.Payout.Amount), a.Payout.UserID
	case a.Movement != nil:
		about, amount, to = a.Movement.App, formatYuan(a.Movement.Amount), a.Movement.Reference
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
		optionalText(a.AnsweredBy), formatTime(a.ExpiresAt)}
}

// aboutAnswered says what an answered decision is about.
func aboutAnswered(a *wire.Answered) string {
	if a.Movement != nil {
		return aboutMovement(a.Movement)
	}
	return aboutPayment(a.Payout, a.Refund)
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

// approvalAnswer is the command that answers one request for approval, or withdraws it.
func approvalAnswer(verb, short string, do decision[wire.Answered]) command {
	return command{
		use:     verb + " <approval id> --reason <text>",
		short:   short,
		example: "  hongbao approvals " + verb + " aKQ3X7M2P5R6T4V2W3Y7Z5B6CD --reason 'bank slip checked'",
		args:    approvalID.arg, as: callerFinance, writes: true,
		complete: func(ctx context.Context, t *call) ([]cobra.Completion, error) {
			filter := wire.ApprovalFilter{Status: string(payout.DecisionWaiting), ByOthers: verb != "withdraw"}
			list, err := t.staff.ListApprovals(ctx, filter, newest)
			return completions(list, err, func(a *wire.ApprovalItem) (string, string) {
				return a.ID, fmt.Sprintf("%s, requested by %s: %s", a.Decision.Kind, a.Decision.By, a.Decision.Reason)
			})
		},
		run: func(ctx context.Context, t *call) error {
			a, err := do(t.staff, ctx, t.args[0], t.why(), t.key())
			return t.shown(err, func() error {
				return printf(t.out, "%s, requested by %s, is %s; %s.\n", decisionName(a.Decision), a.Decision.By, a.Decision.Status,
					aboutAnswered(a))
			})
		},
	}
}
