package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/payout"
)

const (
	// SendCallTimeout bounds the provider call of Send. A call that times out may have arrived
	// and is queried.
	SendCallTimeout = 5 * time.Second
	// SendSettleTimeout bounds settling its answer.
	SendSettleTimeout = time.Second
)

// Outcome is the result of PayNow and of Send.
type Outcome struct {
	State payout.State `json:"state"`
	// Observation is the provider's answer; nil if nothing was sent.
	Observation *payout.Observation `json:"observation,omitempty"`
	// Unsettled: the observation was not settled, or it is not known whether it was. The caller
	// settles it as an observation of OrderNo; its id makes a repeat harmless.
	Unsettled bool `json:"unbooked,omitempty"`
	// OrderNo is the order number that was sent, even if the answer has another; "" unless
	// Unsettled.
	OrderNo string `json:"order_no,omitempty"`
}

// endedAs reports whether the payment needs no more steps and has one of these statuses.
func (o Outcome) endedAs(as ...payout.Status) bool {
	return !o.Unsettled && o.State.Step.Do == payout.ActionEnd && slices.Contains(as, o.State.Status)
}

// Send makes one send of a payment: it notes the send in the row, calls the provider and settles
// the answer. One activity does all three, so that no task queue delays the call after the note.
// An answer of the provider, or its silence, is an outcome; an error means that nothing was sent.
// Nothing is noted or sent while the step is deferred (Admission), or if the row needs another
// step; the returned state has that step.
//
// It may be repeated at any time, also while an earlier call of it still runs: the note is
// committed before the provider is called, and a repeat that finds a note queries instead (R3).
//
// Between note and call the row is not read again. Money still moves once (the same holds for
// PayNow), because:
//   - Only this call made the note, under the row's lock. Every later reader of the row queries.
//   - Such a query ends nothing too early: until LeaveWithin plus the landing window after the
//     note, the send counts as open, and "never received" is not a failure (R4).
//   - Another order number follows only a final answer about this one, which binds a late arrival
//     of this send too (R5). Without a final answer it follows more than a day after sends of this
//     one have stopped (Limits.Remembers).
//   - A second send of this order number has the same bytes; the provider executes it once.
//   - A request that has not left LeaveWithin after the note does not leave: the process may have
//     been suspended, or the transaction slow.
func (a *Payments) Send(ctx context.Context, id string) (Outcome, error) {
	defer heartbeat(ctx)()
	return a.sendWithin(ctx, id, SendCallTimeout, SendSettleTimeout)
}

// sendInWorkflowTask is Send within a workflow task, with shorter timeouts. It sends nothing
// while the provider is slow or if call and settling could not end in time. The returned state
// then has the send still due.
func (a *Payments) sendInWorkflowTask(ctx context.Context, id string) (Outcome, error) {
	if to, err := a.providerOf(ctx, id); err == nil && !a.fitsWorkflowTask(ctx, call{to.Name(), opOf(id)}) {
		st, err := a.Store.PaymentState(ctx, id)
		return Outcome{State: st}, temporalError(err)
	}
	return a.sendWithin(ctx, id, PayNowCallTimeout, PayNowSettleTimeout)
}

// fitsWorkflowTask reports whether a provider call may run within a workflow task.
func (a *Payments) fitsWorkflowTask(ctx context.Context, c call) bool {
	deadline, ok := ctx.Deadline()
	tooLate := ok && time.Until(deadline) < PayNowCallTimeout+PayNowSettleTimeout
	return !a.calls.slow(c, a.clock()) && !tooLate
}

func (a *Payments) sendWithin(ctx context.Context, id string, callTimeout, settleTimeout time.Duration) (Outcome, error) {
	to, err := a.providerOf(ctx, id)
	if errors.Is(err, payout.ErrProviderMissing) {
		begun, err := a.readDeferred(ctx, id, payout.DeferredProviderMissing, missingPause)
		return Outcome{State: begun.State}, err
	}
	if err != nil {
		return Outcome{}, temporalError(err)
	}
	begun, noted, err := a.begin(ctx, to, id)
	if err != nil || begun.Order == nil {
		return Outcome{State: begun.State}, err
	}
	if elapsed(noted, a.clock()) >= payout.LeaveWithin {
		a.Admissions[to.Name()].cancel(begun.Order.Op)
		return Outcome{State: begun.State}, nil
	}
	return a.sendNow(ctx, to, begun, noted, callTimeout, settleTimeout), nil
}

// sendNow makes the call of a send that was just noted, and settles the answer. The end of ctx
// cancels neither: an answer must not be lost. An answer that arrives after the send has ceased to
// count as open is not settled here, because a later send may be open by then, which this answer
// must not end.
func (a *Payments) sendNow(
	ctx context.Context, to payout.Provider, begun payout.SendStart, noted time.Time, callTimeout, settleTimeout time.Duration,
) Outcome {
	o := *begun.Order
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	seen := a.callProvider(callCtx, to, o)
	cancel()
	seen.ID = fmt.Sprintf("%s/%d", o.OrderNo, o.Send) // one answer per noted send
	unsettled := Outcome{State: begun.State, Observation: &seen, Unsettled: true, OrderNo: o.OrderNo}
	if elapsed(noted, a.clock()) >= payout.LeaveWithin+to.Limits().LandingWindow {
		return unsettled
	}
	settleCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	st, err := a.Store.Settle(settleCtx, seen, o.OrderNo)
	if err != nil {
		logger(ctx).Warn("Answer of the provider not settled yet; the run settles it.", "order_no", o.OrderNo, "error", err)
		return unsettled
	}
	return Outcome{State: st, Observation: &seen}
}
