package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Payments are the steps of the attempt machine: charge, payout and refund alike.
type Payments struct {
	Cashbook Cashbook
	Provider Provider
	// Gate parks sends while the provider is in trouble; nil lets all through.
	Gate *Gate
	// Pools are asked before a late claim is booked, and before a charge is sent; nil: whoever
	// books sees to it himself.
	Pools LatePools
	// Now is the clock; nil: time.Now. A simulation brings its own.
	Now func() time.Time

	calls calls // how fast the provider is, for what is done within workflow tasks
}

// RecordClaim books a claim and makes its payout pending. Repeatable. A claim
// that cannot be booked is kept as a promise (rule R10): a payout of its own that
// has failed, until people decide, and a break. Its state is the answer then.
// A late claim is booked when its user is told of it (rule R9).
func (a *Payments) RecordClaim(ctx context.Context, c packet.Claim) (payout.State, error) {
	if err := a.toldOf(ctx, c); err != nil {
		return payout.State{}, typed(err)
	}
	st, err := BookClaim(ctx, a.Cashbook, c, a.Provider.Name())
	return st, typed(err)
}

// BookClaim books a claim that Redis tells its user, or keeps it as a promise. Repeatable.
// Errors: those of the book.
func BookClaim(ctx context.Context, book ClaimBook, c packet.Claim, provider string) (payout.State, error) {
	st, err := book.RecordClaim(ctx, c, provider)
	if errors.Is(err, packet.ErrConflict) || errors.Is(err, packet.ErrBooksClosed) {
		st, err = book.RecordShareConflict(ctx, c, provider, err.Error())
	}
	return st, err
}

// ReadPayment reads the program counter of a payment (rule R3).
func (a *Payments) ReadPayment(ctx context.Context, id string) (payout.State, error) {
	st, err := a.Cashbook.PaymentState(ctx, id)
	return st, typed(err)
}

// begin stores number and exact request and notes the send before it goes out, or
// says what to do instead. A repeat finds the note and asks: it never sends twice
// under one note. While the provider is in trouble or held, nothing is noted and the
// step is due later (Gate). noted is not later than the note.
func (a *Payments) begin(ctx context.Context, id string) (begun payout.SendStart, noted time.Time, err error) {
	op := opOf(id)
	if op == payout.OpCharge {
		if st, ended, err := a.lapse(ctx, id); ended || err != nil {
			return payout.SendStart{State: st}, noted, err
		}
	}
	if why, wait := a.Gate.admit(ctx, op, id); why != payout.NotDeferred {
		begun, err = a.parked(ctx, id, why, wait)
		return begun, noted, err
	}
	noted = a.clock()
	begun, err = a.Cashbook.BeginSend(ctx, id, a.Provider.Limits(), a.Provider.EncodeRequest)
	switch {
	case err != nil:
		a.Gate.cancel(op)
	case begun.Hold != nil:
		a.park(&begun.State, payout.DeferredHeld, a.Gate.hold(op, id))
	case begun.Order == nil:
		a.Gate.cancel(op)
	default:
		a.Gate.begun(id)
	}
	return begun, noted, typed(err)
}

// deliver makes the call of a noted send. Whatever happens is an observation.
func (a *Payments) deliver(ctx context.Context, o payout.Order) (seen payout.Observation) {
	began := a.clock()
	step := failpoint.ForPayment(o.OrderNo, failpoint.ChargeSend, failpoint.PayoutSend, failpoint.RefundSend)
	_ = failpoint.Do(step, func() error {
		seen = a.Provider.Send(ctx, o)
		return nil
	})
	now := a.clock()
	a.calls.note(o.Op, passed(began, now), now)
	a.Gate.report(ctx, o.Op, paymentOf(o.OrderNo), seen)
	return seen
}

// clockWithin bounds the reading of the books' clock before a question.
const clockWithin = 2 * time.Second

// Ask asks the provider about an order number. It moves nothing and may be repeated.
// When the question was put is told by the books' clock, which also says when people
// decided: a new number needs an answer to a question put after that (rule R5).
func (a *Payments) Ask(ctx context.Context, orderNo string) (payout.Observation, error) {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return payout.Observation{}, temporal.NewNonRetryableApplicationError(err.Error(), TypeDefect, err)
	}
	clockCtx, cancel := context.WithTimeout(ctx, clockWithin)
	asked, err := a.Cashbook.BeginQuery(clockCtx, orderNo, a.Provider.Limits().Adapter)
	cancel()
	if err != nil {
		return payout.Observation{}, typed(fmt.Errorf("ask about %s: %w", orderNo, err))
	}
	var seen payout.Observation
	_ = failpoint.Do(failpoint.OrderAsk, func() error { // whatever happens is an observation
		seen = a.Provider.Query(ctx, payout.OpOf(parts.Kind), orderNo)
		return nil
	})
	a.Gate.report(ctx, payout.OpOf(parts.Kind), parts.PaymentID, seen)
	seen.StartedAt, seen.EndedAt = asked, asked.Add(seen.EndedAt.Sub(seen.StartedAt))
	return seen, nil
}

// Settle writes what was observed: status, ledger, breaks and timeline in one
// transaction. Settling the same observation twice changes nothing. Of a number that the
// books do not have, because they were restored, nothing is written: the run goes on from
// the row (rule R3), and a recovery finds the number at the provider (rule R13). Nothing is
// written of what another provider says, either.
func (a *Payments) Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error) {
	st, err := a.Cashbook.Settle(ctx, o, asked)
	if errors.Is(err, payout.ErrWrongProvider) {
		logger(ctx).Error("An answer of another provider, or about another account there, is left out.", "order_no", asked, "error", err)
	}
	if errors.Is(err, packet.ErrNotFound) || errors.Is(err, payout.ErrWrongProvider) {
		st, err = a.Cashbook.PaymentState(ctx, paymentOf(asked))
	}
	if err != nil {
		return st, typed(fmt.Errorf("settle %s: %w", asked, err))
	}
	return st, nil
}

// CarryOut ends a decision whose numbers were all asked about: a cancelled
// payout becomes a refund to the sender. Repeatable.
func (a *Payments) CarryOut(ctx context.Context, id string) (payout.State, error) {
	st, err := a.Cashbook.CarryOut(ctx, id)
	return st, typed(err)
}

// lapse ends a charge instead of sending it when its packet can no longer be opened: it
// has expired by the clock of its pool, by which grabs are judged, and by that of the
// books, and nothing was ever sent (Cashbook.Lapse). The sender is spared a charge that
// would only be refunded. Whatever cannot be told now is no reason to stop: a packet that
// was charged too late is refunded in full (rule R2).
func (a *Payments) lapse(ctx context.Context, id string) (st payout.State, ended bool, err error) {
	parts, err := payout.Parse(id)
	if err != nil || a.Pools == nil {
		return st, false, nil //nolint:nilerr // what is no payment is told by whoever reads its row
	}
	view, err := a.Pools.View(ctx, parts.PacketID)
	if err != nil || view.State != packet.PoolFunding || view.Now.Before(view.Packet.ExpiresAt) {
		return st, false, nil //nolint:nilerr // see above
	}
	st, err = a.Cashbook.ExpireCharge(ctx, id)
	return st, err == nil && st.Step.Do == payout.ActionEnd, typed(err)
}
