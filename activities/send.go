package activities

import (
	"context"
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
	// Unbooked: the answer was not settled, or that is not known. The caller settles it, under
	// its own id, as an answer about OrderNo.
	Unbooked bool `json:"unbooked,omitempty"`
	// OrderNo is the order number that was sent, whatever the answer says; "" if the answer is
	// settled or nothing was sent.
	OrderNo string `json:"order_no,omitempty"`
}

// ended reports whether the payment needs no more steps and has one of these statuses.
func (o Outcome) ended(as ...payout.Status) bool {
	return !o.Unbooked && o.State.Step.Do == payout.ActionEnd && slices.Contains(as, o.State.Status)
}

// Send makes one send of a payment. It notes the send, calls the provider and settles the answer
// in one activity, so that no task queue delays the call after the note. While the provider fails
// or is held nothing is noted, and the step is deferred (Admission). If the row needs another
// step than a send, the state names it. An answer of the provider, or its silence, is an outcome;
// an error means that nothing was sent.
//
// It is repeatable at any time, also while an earlier attempt still runs. The note is committed
// before the call, and a repeat that finds it sends nothing and queries (rule R3). The row is not
// read again before the request leaves; only the time since the note is measured, on this
// machine's clock. That is enough, as for PayNow:
//   - This call made the note, under the row's lock. A later reader of the row finds the note and
//     queries first.
//   - The answer to that query cannot become final early. Until LeaveWithin and the landing
//     window after the note have passed, the send counts as open, so "never received" fails
//     nothing. Another order number is used only after the provider's final answer about this
//     one, which also holds for a repeat of it. Without such an answer it is used more than a day
//     after the last instant at which this one may be noted (Limits.Remembers; rules R4, R5). The
//     same order number with the same bytes may be sent again; the provider executes it once.
//   - A request does not leave later than LeaveWithin: this check catches a suspended process or
//     a delayed transaction.
func (a *Payments) Send(ctx context.Context, id string) (Outcome, error) {
	defer heartbeat(ctx)()
	return a.sendWithin(ctx, id, SendCallTimeout, SendSettleTimeout)
}

// sendInWorkflowTask is Send within a workflow task, with shorter timeouts. It sends nothing
// while the provider is slow or if call and settling could not end in time. The returned state
// then has the send still due.
func (a *Payments) sendInWorkflowTask(ctx context.Context, id string) (Outcome, error) {
	if a.fitsWorkflowTask(ctx, opOf(id)) {
		return a.sendWithin(ctx, id, PayNowCallTimeout, PayNowSettleTimeout)
	}
	st, err := a.Store.PaymentState(ctx, id)
	return Outcome{State: st}, typed(err)
}

// fitsWorkflowTask reports whether a provider call of this operation may run within a workflow
// task.
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

// sendNow makes the call of a send that was just noted, and settles the answer within the
// timeouts call and book. The end of the step does not cancel it, because an answer is better
// settled than lost. An answer that arrives after the send no longer counts as open is not
// settled here. A later send may be open by then, and this answer must not end it.
func (a *Payments) sendNow(ctx context.Context, begun payout.SendStart, noted time.Time, call, book time.Duration) Outcome {
	o := *begun.Order
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), call)
	seen := a.callProvider(callCtx, o)
	cancel()
	seen.ID = fmt.Sprintf("%s/%d", o.OrderNo, o.Send) // one answer per noted send
	unbooked := Outcome{State: begun.State, Observation: &seen, Unbooked: true, OrderNo: o.OrderNo}
	if elapsed(noted, a.clock()) >= payout.LeaveWithin+a.Provider.Limits().LandingWindow {
		return unbooked
	}
	bookCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), book)
	defer cancel()
	st, err := a.Store.Settle(bookCtx, seen, o.OrderNo)
	if err != nil {
		logger(ctx).Warn("Answer of the provider not settled yet; the run settles it.", "order_no", o.OrderNo, "error", err)
		return unbooked
	}
	return Outcome{State: st, Observation: &seen}
}
