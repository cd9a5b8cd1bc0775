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
)

func newApprovalsCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "approvals",
		Short: "Agree to another person's decision, refuse it, or withdraw one's own request",
		Long: `Agree to another person's decision, or refuse it, with the key of a person of
finance who did not ask for it. What nobody answers in 24 hours expires; nothing has
moved then. The state is looked at again. When it does not permit the decision any
more, agreeing is refused, exit code 4, and the decision has ended. When the decision
would not do what its maker was shown, agreeing is refused with decision_changed and
what it would do now: nothing happens, and it goes on waiting ("waiting, changed" in
the list). Reject it, or have it withdrawn and made again. The person who asked
withdraws the request while nobody has answered it.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newApprovalsListCommand(env),
		newAnswerCommand(env, "approve", "Agree to another person's decision", (*client.Staff).Approve),
		newAnswerCommand(env, "reject", "Refuse another person's decision; nothing moves", (*client.Staff).Reject),
		newAnswerCommand(env, "withdraw", "Withdraw your own request; nothing moves", (*client.Staff).Withdraw))
	return group
}

var decisionStatuses = []string{string(payout.DecisionWaiting), string(payout.DecisionOpen), string(payout.DecisionCarriedOut),
	string(payout.DecisionOvertaken), string(payout.DecisionRejected), string(payout.DecisionExpired),
	string(payout.DecisionWithdrawn)}

// oneOfFlag checks a flag that has one of a few values, or none.
func oneOfFlag(name, value string, values []string) error {
	if value != "" && !slices.Contains(values, value) {
		return &usageError{fmt.Errorf("--%s %q is none of %s", name, value, strings.Join(values, ", "))}
	}
	return nil
}

func newApprovalsListCommand(env environment) *cobra.Command {
	f, page, filter := newDesk(), pageFlags{}, client.ApprovalFilter{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List decisions that need, or needed, a second person, newest first",
		Example: "  hongbao approvals list --status waiting\n  hongbao approvals list --status waiting --by-others   # what you may answer",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOfFlag("status", filter.Status, decisionStatuses); err != nil {
				return err
			}
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *clerk) error {
				fetch := func(ctx context.Context, p client.Page) (*client.List[client.ApprovalItem], error) {
					return t.staff.ListApprovals(ctx, filter, p)
				}
				columns := []any{"approval", "what", "about", "amount", "to", "asked by", "why", "evidence", "status", "answered by", "until"}
				return tellList(ctx, t.teller, page, fetch, columns, approvalRow)
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Status, "status", "", "in this `status`: "+strings.Join(decisionStatuses, ", "))
	flags.StringVar(&filter.PaymentID, "payment", "", "about this payout or refund: its `id`")
	flags.BoolVar(&filter.ByOthers, "by-others", false, "decided by others than you; of those that wait, what you may answer")
	complete(cmd, "status", decisionStatuses...)
	complete(cmd, "payment")
	return cmd
}

func approvalRow(a *client.ApprovalItem) []any {
	about, sum, to := "", "", ""
	switch {
	case a.Payout != nil:
		about, sum, to = a.Payout.ID, shown(a.Payout.Amount), a.Payout.UserID
	case a.Refund != nil:
		about, sum, to = a.Refund.ID, shown(a.Refund.Amount), a.Refund.UserID
	}
	status := a.Status
	if a.Changed {
		status += ", changed"
	}
	return []any{a.ID, a.Decision.Kind, about, sum, to, a.Decision.By, a.Decision.Reason, orNone(a.Evidence), status, orNone(a.AnsweredBy),
		when(a.ExpiresAt)}
}

// approvalAnswer is a method of the client that answers an approval.
type approvalAnswer func(*client.Staff, context.Context, string, client.DecisionRequest) (*client.Answered, error)

func newAnswerCommand(env environment, verb, short string, do approvalAnswer) *cobra.Command {
	f := newDesk()
	cmd := &cobra.Command{
		Use:               verb + " <approval id> --reason <text>",
		Short:             short,
		Example:           "  hongbao approvals " + verb + " aKQ3X7M2P5R6T4V2W3Y7Z5B6C --reason 'bank slip checked'",
		Args:              oneArg,
		ValidArgsFunction: completeApprovals(env, &f, verb == "withdraw"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *clerk) error {
				a, err := do(t.staff, ctx, args[0], f.decision())
				if err != nil {
					return err
				}
				about := "nothing"
				switch {
				case a.Payout != nil:
					about = fmt.Sprintf("payout %s is %s", a.Payout.ID, a.Payout.Status)
				case a.Refund != nil:
					about = fmt.Sprintf("refund %s is %s", a.Refund.ID, a.Refund.Status)
				}
				if t.json {
					return t.raw(a.Raw)
				}
				return printf(t.out, "%s, asked for by %s, is %s; %s.\n", decisionName(a.Decision), a.Decision.By, a.Decision.Status, about)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

// completeApprovals offers what waits: for an answer of this person, or, when this person
// may have asked for it, everything.
func completeApprovals(env environment, f *staffFlags, asked bool) cobra.CompletionFunc {
	return completeItems(env, f, func(ctx context.Context, t *clerk) (found []cobra.Completion, err error) {
		list, err := t.staff.ListApprovals(ctx, client.ApprovalFilter{Status: string(payout.DecisionWaiting), ByOthers: !asked},
			client.Page{Limit: 20})
		if err != nil {
			return nil, err
		}
		for _, a := range list.Items {
			found = append(found, cobra.CompletionWithDesc(a.ID,
				visible.Text(fmt.Sprintf("%s, asked by %s: %s", a.Decision.Kind, a.Decision.By, a.Decision.Reason))))
		}
		return found, nil
	})
}
