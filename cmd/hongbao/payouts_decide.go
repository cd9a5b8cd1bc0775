package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// payoutDecision is a client method that decides about one payout.
type payoutDecision func(*client.Staff, context.Context, string, wire.Reason, ...client.Key) (*wire.Decided, error)

// newPayoutDecision returns a command that decides about one payout.
func newPayoutDecision(env environment, verb, short, long string, decide payoutDecision) *cobra.Command {
	f := newFinanceFlags()
	cmd := &cobra.Command{
		Use:               verb + " <payout id> --reason <text>",
		Short:             short,
		Long:              long,
		Example:           "  hongbao payouts " + verb + " p3q5k9v0c1m7e2u8h4r6t0003 --reason 'ticket 4711'",
		Args:              payoutID.arg,
		ValidArgsFunction: completePayouts(env, &f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				done, err := decide(t.staff, ctx, args[0], f.decision(), client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				return t.printPayoutDecision(done)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

// decision returns the request of a decision from the flags.
func (f *staffFlags) decision() wire.Reason {
	return wire.Reason{Reason: f.reason}
}

func newPayoutMarkPaidCommand(env environment) *cobra.Command {
	f, evidence := newFinanceFlags(), ""
	cmd := &cobra.Command{
		Use:   "mark-paid <payout id> --reason <text> --evidence <text>",
		Short: "Mark a payout as paid by other means",
		Long: `Mark a failed or returned payout as paid by other means, with evidence; also one that is
not final, after the provider's memory of its order number has ended. A second person has
to approve. A success that the provider reports later is a break.`,
		Example: "  hongbao payouts mark-paid p3q5k9v0c1m7e2u8h4r6t0003 --reason 'account closed' --evidence 'bank slip " +
			"2026-03-01/4711'",
		Args:              payoutID.arg,
		ValidArgsFunction: completePayouts(env, &f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if evidence == "" {
				return &usageError{missingFlag("evidence")}
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				done, err := t.staff.MarkPayoutPaid(ctx, args[0], wire.MarkPaid{Reason: f.reason,
					Evidence: evidence}, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				return t.printPayoutDecision(done)
			})
		},
	}
	f.add(cmd, true)
	addEvidence(cmd, &evidence)
	return cmd
}

func addEvidence(cmd *cobra.Command, evidence *string) {
	cmd.Flags().StringVar(evidence, "evidence", "", "evidence of the payment, such as a bank slip (required)")
	complete(cmd, "evidence")
}

// printPayoutDecision prints a decision about a payout.
func (t *staffCommand) printPayoutDecision(d *wire.Decided) error {
	return t.printDecision(d.Decision, d.Approval, fmt.Sprintf("payout %s of %s to %s is %s", d.Payout.ID, formatYuan(d.Payout.Amount),
		d.Payout.UserID, d.Payout.Status))
}

// printDecision prints a decision and the approval that it waits for. It returns errNeedsApproval in that case.
func (t *staffCommand) printDecision(d wire.Decision, waits *wire.Approval, about string) error {
	var err error
	switch {
	case t.json:
		err = t.printAnswer()
	case waits != nil:
		err = printf(t.out, "%s is requested; no money has moved: %s.\nA second person has to approve by %s:\n  hongbao approvals approve %s "+
			"--reason ...\n",
			decisionName(d), about, formatTime(waits.ExpiresAt), waits.ID)
	case d.Status == string(payout.DecisionWithdrawn):
		err = printf(t.out, "%s is withdrawn; no money has moved: %s.\n", decisionName(d), about)
	default:
		err = printf(t.out, "%s is decided (%s); %s.\n", decisionName(d), d.Status, about)
	}
	if err == nil && waits != nil {
		err = errNeedsApproval
	}
	return err
}

func decisionName(d wire.Decision) string {
	switch d.Kind {
	case "retry":
		return "Paying again"
	case "cancel":
		return "Cancelling"
	case "mark_paid":
		return "Marking as paid"
	case "ask":
		return "Querying the provider"
	case "moved":
		return `Recording the outcome "moved"`
	case "not_moved":
		return `Recording the outcome "not_moved"`
	}
	return d.Kind
}
