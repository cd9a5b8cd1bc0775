package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/payout"
)

const (
	// SendCallTimeout bounds the provider call of Send. A call that takes longer is cut
	// off: it may have arrived, and is asked about.
	SendCallTimeout = 5 * time.Second
	// SendSettleTimeout bounds the booking of its answer.
	SendSettleTimeout = time.Second
)

// Outcome is what came of a send: the answer of PayNow and of Send.
type Outcome struct {
	State payout.State `json:"state"`
	// Observation is what the provider said; nil when nothing was sent.
	Observation *payout.Observation `json:"observation,omitempty"`
	// Unbooked: the answer could not be booked, or nobody knows whether it was. It
	// is to be settled, under its own id, as one about OrderNo.
	Unbooked bool `json:"unbooked,omitempty"`
	// OrderNo is the number that was sent, whatever the answer says; "" when the
	// answer is booked, or none was sent.
	OrderNo string `json:"order_no,omitempty"`
}

// ended reports whether the payment needs no more steps and has one of these statuses.
func (o Outcome) ended(as ...payout.Status) bool {
	return !o.Unbooked && o.State.Step.Do == payout.ActionEnd && slices.Contains(as, o.State.Status)
}

// Send makes one send of a payment: it notes it, calls the provider and books the
// answer, all in one step, so that no queue of tasks comes between the note and
// the call. While the provider is in trouble or held nothing is noted; the step
// comes back due later (Gate). When the row wants something else than a send the
// state says what. An answer of the provider, or its silence, is an outcome and
// never an error; an error means that nothing was sent.
//
// It may be repeated at any time, also while an earlier try is still at it: the
// note is committed before the call, and a repeat that finds it sends nothing and
// asks (rule R3). The row is not read again before the request leaves; only the
// time since the note is measured, on this machine's clock. That is enough, for the
// reasons that PayNow gives:
//   - The note was made by this call, under the row's lock. A later reader of the
//     row finds the note, and asks before all else.
//   - The answer to that reader cannot become final: until LeaveWithin and the
//     landing window after the note have passed, the send counts as open, so that
//     "never received" fails nothing. Another number is taken only after the
//     provider's final word about this one, which holds for a repeat of it too, or
//     a day and more after the last instant at which this one may be noted
//     (Limits.Remembers; rules R4, R5). The same number with the same bytes may be
//     sent again; the provider carries it out once.
//   - A request later than LeaveWithin does not leave: a process that was suspended,
//     or a transaction that waited, finds out here.
func (a *Payments) Send(ctx context.Context, id string) (Outcome, error) {
	defer heartbeat(ctx)()
	return a.sendWithin(ctx, id, SendCallTimeout, SendSettleTimeout)
}

// sendInWorkflowTask is Send within a workflow task: with less time for the call, and none
// while the provider is slow, or when the call and its booking could not end in time.
// The state says then that the send is still due.
func (a *Payments) sendInWorkflowTask(ctx context.Context, id string) (Outcome, error) {
	if a.fitsWorkflowTask(ctx, opOf(id)) {
		return a.sendWithin(ctx, id, PayNowCallTimeout, PayNowSettleTimeout)
	}
	st, err := a.Store.PaymentState(ctx, id)
	return Outcome{State: st}, typed(err)
}

// short reports whether a call of this kind may be made within a workflow task.
func (a *Payments) fitsWorkflowTask(ctx context.Context, op payout.Op) bool {
	by, ends := ctx.Deadline()
	return !a.calls.slow(op, a.clock()) && !(ends && time.Until(by) < PayNowCallTimeout+PayNowSettleTimeout)
}

func (a *Payments) sendWithin(ctx context.Context, id string, call, book time.Duration) (Outcome, error) {
	begun, noted, err := a.begin(ctx, id)
	if err != nil || begun.Order == nil {
		return Outcome{State: begun.State}, err
	}
	if elapsed(noted, a.clock()) >= payout.LeaveWithin {
		a.Admission.cancel(begun.Order.Op)
		return Outcome{State: begun.State}, nil
	}
	return a.sendNow(ctx, begun, noted, call, book), nil
}

// sendNow makes the call of a send that was just noted, and books the answer, for
// which there are call and book. It is not cut off by the end of the step, whose
// caller only knows then that nobody told him: what was sent is better booked.
// But an answer that comes when the send no longer counts as open is not booked
// beside the caller's back: a later send may be open by now, and is not to be taken
// for answered.
func (a *Payments) sendNow(ctx context.Context, begun payout.SendStart, noted time.Time, call, book time.Duration) Outcome {
	o := *begun.Order
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), call)
	seen := a.callProvider(callCtx, o)
	cancel()
	seen.ID = fmt.Sprintf("%s/%d", o.OrderNo, o.Send) // a noted send has one answer
	unbooked := Outcome{State: begun.State, Observation: &seen, Unbooked: true, OrderNo: o.OrderNo}
	if elapsed(noted, a.clock()) >= payout.LeaveWithin+a.Provider.Limits().LandingWindow {
		return unbooked
	}
	bookCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), book)
	defer cancel()
	st, err := a.Store.Settle(bookCtx, seen, o.OrderNo)
	if err != nil {
		logger(ctx).Warn("The provider's answer is not booked yet.", "order_no", o.OrderNo, "error", err)
		return unbooked
	}
	return Outcome{State: st, Observation: &seen}
}
