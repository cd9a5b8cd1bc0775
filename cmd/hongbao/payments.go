package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// decided is the answer to a decision about a payment.
type decided struct {
	decision wire.Decision
	approval *wire.Approval
	about    string // the payment and its status
}

func ofPayout(d *wire.Decided) decided {
	return decided{d.Decision, d.Approval, aboutDecided("payout", d.Payout.ID, d.Payout.UserID, d.Payout.Amount, d.Payout.Status)}
}

func ofRefund(d *wire.DecidedRefund) decided {
	return decided{d.Decision, d.Approval, aboutDecided("refund", d.Refund.ID, d.Refund.UserID, d.Refund.Amount, d.Refund.Status)}
}

func aboutDecided(kind, id, user string, amount money.Fen, status wire.PayoutStatus) string {
	return fmt.Sprintf("%s %s of %s to %s is %s", kind, id, formatYuan(amount), user, status)
}

// decidedBy converts the result of a client method.
func decidedBy[D any](of func(*D) decided) func(*D, error) (decided, error) {
	return func(d *D, err error) (decided, error) {
		if err != nil {
			return decided{}, err
		}
		return of(d), nil
	}
}

// decision is a client method that decides about one payment.
type decision[D any] func(*client.Staff, context.Context, string, wire.Reason, ...client.Key) (*D, error)

// paymentDecision is a command that decides about one payment.
func paymentDecision[D any](of payments, verb, short, long string, decide decision[D], render func(*D) decided) command {
	return command{
		use:     verb + " <" + of.one + " id> --reason <text>",
		short:   short,
		long:    long,
		example: "  hongbao " + of.many + " " + verb + " " + of.example + " --reason 'ticket 4711'",
		args:    of.id.arg, complete: of.failed, as: callerFinance, writes: true,
		run: func(ctx context.Context, t *call) error {
			done, err := decide(t.staff, ctx, t.args[0], t.why(), t.key())
			if err != nil {
				return err
			}
			return t.printDecision(render(done))
		},
	}
}

// markPaid is a command that marks one payment as paid by other means.
func markPaid[D any](of payments, long string,
	mark func(*client.Staff, context.Context, string, wire.MarkPaid, ...client.Key) (*D, error), render func(*D) decided) command {
	evidence := ""
	return command{
		use:     "mark-paid <" + of.one + " id> --reason <text> --evidence <text>",
		short:   "Mark a " + of.one + " as paid by other means",
		long:    long,
		example: "  hongbao " + of.many + " mark-paid " + of.example + " --reason 'account closed' --evidence 'bank slip 2026-03-01/4711'",
		args:    of.id.arg, complete: of.failed, as: callerFinance, writes: true,
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&evidence, "evidence", "", "evidence of the payment, such as a bank slip (required)")
		},
		run: func(ctx context.Context, t *call) error {
			if evidence == "" {
				return &usageError{missingFlag("evidence")}
			}
			done, err := mark(t.staff, ctx, t.args[0], wire.MarkPaid{Reason: t.reason, Evidence: evidence}, t.key())
			if err != nil {
				return err
			}
			return t.printDecision(render(done))
		},
	}
}

// printDecision prints a decision and the approval that it waits for. It returns errNeedsApproval in that case.
func (t *call) printDecision(done decided) (err error) {
	d, waits, about := done.decision, done.approval, done.about
	switch {
	case t.json:
		err = t.printAnswer()
	case waits != nil:
		err = printf(t.out, "%s is requested; no money has moved: %s.\nA second person has to approve by %s:\n"+
			"  hongbao approvals approve %s --reason ...\n", decisionName(d), about, formatTime(waits.ExpiresAt), waits.ID)
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
	case "credit":
		return "Crediting the balance"
	case "debit":
		return "Debiting the balance"
	case "moved":
		return `Recording the outcome "moved"`
	case "not_moved":
		return `Recording the outcome "not_moved"`
	case "written_off":
		return `Recording the outcome "written_off"`
	}
	return d.Kind
}
