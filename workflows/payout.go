package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Payout pays one claim. The relay starts it with the claim. A decision, a notification or a
// repair starts a new run of the same id with only the payment id. It ends Completed when paid,
// Failed when finance must act.
func Payout(ctx workflow.Context, in PayoutInput) (payout.Status, error) {
	defer takeSignals(ctx)
	m := newPaymentRun(ctx, in.Console)
	st, err := m.enter(ctx, in)
	if err != nil {
		return "", err
	}
	if st, err = m.run(ctx, st); err != nil {
		return st.Status, err
	}
	if st.Step.Do != payout.ActionEnd {
		return st.Status, workflow.NewContinueAsNewError(ctx, PayoutWorkflow, PayoutInput{PaymentID: st.PaymentID, Console: in.Console})
	}
	return st.Status, m.finish(ctx, st, in.Claim == nil)
}

// Refund sends money back to a packet's sender, then closes the packet. It ends Failed when the
// provider refuses the sender's account; a retry by finance starts a new run.
func Refund(ctx workflow.Context, in RefundInput) (payout.Status, error) {
	defer takeSignals(ctx)
	m := newPaymentRun(ctx, in.Console)
	st, closed, err := m.refund(ctx, in)
	if err != nil {
		return "", err
	}
	if !closed {
		m.onFinal = func(ctx workflow.Context) error {
			_, err := step[packet.Facts](storeStep(ctx, "close the packet, retire its pool"), packets.FinishPacket,
				packet.Packet{ID: in.PacketID}, packet.Facts{})
			return err
		}
	}
	if st, err = m.run(ctx, st); err != nil {
		return st.Status, err
	}
	if st.Step.Do != payout.ActionEnd {
		return st.Status, workflow.NewContinueAsNewError(ctx, RefundWorkflow, in)
	}
	return st.Status, m.finish(ctx, st, false)
}

// refund brings a refund to its row: it makes a due send on the way and closes the packet.
func (m *paymentRun) refund(ctx workflow.Context, in RefundInput) (st payout.State, closed bool, err error) {
	done, err := local[activities.Refunded](ctx, "send the refund, close the packet", combined.RefundNow, in.PaymentID, in.PacketID)
	if err == nil {
		st, err = m.sent(ctx, done.Outcome)
		return st, done.PacketClosed, err
	}
	if temporal.IsCanceledError(err) {
		return st, false, err
	}
	st, err = step[payout.State](storeStep(ctx, "read the row"), payments.ReadPayment, in.PaymentID)
	return st, false, err
}

// Charge queries a charge that has ended, after a notification; while the charge is open, its
// packet's run does. The answer is settled; a refused charge is a normal outcome and no failed
// run.
func Charge(ctx workflow.Context, in PayoutInput) (payout.Status, error) {
	defer takeSignals(ctx)
	m := newPaymentRun(ctx, in.Console)
	st, err := step[payout.State](storeStep(ctx, "read the row"), payments.ReadPayment, in.PaymentID)
	if err != nil {
		return "", err
	}
	if st, err = m.run(ctx, st); err != nil {
		return st.Status, err
	}
	if st.Step.Do != payout.ActionEnd {
		return st.Status, workflow.NewContinueAsNewError(ctx, ChargeWorkflow, in)
	}
	return st.Status, nil
}

// Canary proves that a worker answers through its task queue.
func Canary(ctx workflow.Context, say string) (string, error) {
	return step[string](storeStep(ctx, "canary"), CanaryActivity, say)
}

// CanaryActivity is the registered name of the activity that Canary calls.
const CanaryActivity = "Echo"
