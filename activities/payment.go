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
	Store    PaymentStore
	Provider Provider
	// Gate parks sends while the provider is in trouble; nil lets all through.
	Admission *Admission
	// Pools are asked before a late claim is booked, and before a charge is sent; nil: whoever
	// books sees to it himself.
	Pools ClaimPools
	// Now is the clock; nil: time.Now. A simulation brings its own.
	Now func() time.Time

	calls calls // how fast the provider is, for what is done within workflow tasks
}

// RecordClaim books a claim and makes its payout pending. Repeatable. A claim
// that cannot be booked is kept as a promise (rule R10): a payout of its own that
// has failed, until people decide, and a break. Its state is the answer then.
// A late claim is booked when its user is told of it (rule R9).
func (a *Payments) RecordClaim(ctx context.Context, c packet.Claim) (payout.State, error) {
	if err := a.checkStaleClaim(ctx, c); err != nil {
		return payout.State{}, typed(err)
	}
	st, err := RecordClaimOrConflict(ctx, a.Store, c, a.Provider.Name())
	return st, typed(err)
}

// RecordClaimOrConflict books a claim that Redis tells its user, or keeps it as a promise. Repeatable.
// Errors: those of the book.
func RecordClaimOrConflict(ctx context.Context, book ClaimStore, c packet.Claim, provider string) (payout.State, error) {
	st, err := book.RecordClaim(ctx, c, provider)
	if errors.Is(err, packet.ErrConflict) || errors.Is(err, packet.ErrBooksClosed) {
		st, err = book.RecordShareConflict(ctx, c, provider, err.Error())
	}
	return st, err
}

// ReadPayment reads the program counter of a payment (rule R3).
func (a *Payments) ReadPayment(ctx context.Context, id string) (payout.State, error) {
	st, err := a.Store.PaymentState(ctx, id)
	return st, typed(err)
}

// begin stores number and exact request and notes the send before it goes out, or
// says what to do instead. A repeat finds the note and asks: it never sends twice
// under one note. While the provider is in trouble or held, nothing is noted and the
// step is due later (Gate). noted is not later than the note.
func (a *Payments) begin(ctx context.Context, id string) (begun payout.SendStart, noted time.Time, err error) {
	op := opOf(id)
	if op == payout.OpCharge {
		if st, ended, err := a.expireCharge(ctx, id); ended || err != nil {
			return payout.SendStart{State: st}, noted, err
		}
	}
	if why, wait := a.Admission.admit(ctx, op, id); why != payout.NotDeferred {
		begun, err = a.readDeferred(ctx, id, why, wait)
		return begun, noted, err
	}
	noted = a.clock()
	begun, err = a.Store.BeginSend(ctx, id, a.Provider.Limits(), a.Provider.EncodeRequest)
	switch {
	case err != nil:
		a.Admission.cancel(op)
	case begun.Hold != nil:
		a.deferStep(&begun.State, payout.DeferredHeld, a.Admission.deferHeld(op, id))
	case begun.Order == nil:
		a.Admission.cancel(op)
	default:
		a.Admission.sendNoted(id)
	}
	return begun, noted, typed(err)
}

// deliver makes the call of a noted send. Whatever happens is an observation.
func (a *Payments) callProvider(ctx context.Context, o payout.Order) (seen payout.Observation) {
	began := a.clock()
	step := failpoint.ForPayment(o.OrderNo, failpoint.ChargeSend, failpoint.PayoutSend, failpoint.RefundSend)
	_ = failpoint.Do(step, func() error {
		seen = a.Provider.Send(ctx, o)
		return nil
	})
	now := a.clock()
	a.calls.note(o.Op, elapsed(began, now), now)
	a.Admission.report(ctx, o.Op, paymentOf(o.OrderNo), seen)
	return seen
}

// clockTimeout bounds the reading of the books' clock before a question.
const clockTimeout = 2 * time.Second

// Ask asks the provider about an order number. It moves nothing and may be repeated.
// When the question was put is told by the books' clock, which also says when people
// decided: a new number needs an answer to a question put after that (rule R5).
func (a *Payments) Ask(ctx context.Context, orderNo string) (payout.Observation, error) {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return payout.Observation{}, temporal.NewNonRetryableApplicationError(err.Error(), TypeDefect, err)
	}
	clockCtx, cancel := context.WithTimeout(ctx, clockTimeout)
	asked, err := a.Store.BeginQuery(clockCtx, orderNo, a.Provider.Limits().Adapter)
	cancel()
	if err != nil {
		return payout.Observation{}, typed(fmt.Errorf("ask about %s: %w", orderNo, err))
	}
	var seen payout.Observation
	_ = failpoint.Do(failpoint.OrderAsk, func() error { // whatever happens is an observation
		seen = a.Provider.Query(ctx, payout.OpOf(parts.Kind), orderNo)
		return nil
	})
	a.Admission.report(ctx, payout.OpOf(parts.Kind), parts.PaymentID, seen)
	seen.StartedAt, seen.EndedAt = asked, asked.Add(seen.EndedAt.Sub(seen.StartedAt))
	return seen, nil
}

// Settle writes what was observed: status, ledger, breaks and timeline in one
// transaction. Settling the same observation twice changes nothing. Of a number that the
// books do not have, because they were restored, nothing is written: the run goes on from
// the row (rule R3), and a recovery finds the number at the provider (rule R13). Nothing is
// written of what another provider says, either.
func (a *Payments) Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error) {
	st, err := a.Store.Settle(ctx, o, asked)
	if errors.Is(err, payout.ErrWrongProvider) {
		logger(ctx).Error("An answer of another provider, or about another account there, is left out.", "order_no", asked, "error", err)
	}
	if errors.Is(err, packet.ErrNotFound) || errors.Is(err, payout.ErrWrongProvider) {
		st, err = a.Store.PaymentState(ctx, paymentOf(asked))
	}
	if err != nil {
		return st, typed(fmt.Errorf("settle %s: %w", asked, err))
	}
	return st, nil
}

// CarryOut ends a decision whose numbers were all asked about: a cancelled
// payout becomes a refund to the sender. Repeatable.
func (a *Payments) CarryOut(ctx context.Context, id string) (payout.State, error) {
	st, err := a.Store.CarryOut(ctx, id)
	return st, typed(err)
}

// lapse ends a charge instead of sending it when its packet can no longer be opened: it
// has expired by the clock of its pool, by which grabs are judged, and by that of the
// books, and nothing was ever sent (Cashbook.Lapse). The sender is spared a charge that
// would only be refunded. Whatever cannot be told now is no reason to stop: a packet that
// was charged too late is refunded in full (rule R2).
func (a *Payments) expireCharge(ctx context.Context, id string) (st payout.State, ended bool, err error) {
	parts, err := payout.Parse(id)
	if err != nil || a.Pools == nil {
		return st, false, nil //nolint:nilerr // what is no payment is told by whoever reads its row
	}
	view, err := a.Pools.View(ctx, parts.PacketID)
	if err != nil || view.State != packet.PoolFunding || view.Now.Before(view.Packet.ExpiresAt) {
		return st, false, nil //nolint:nilerr // see above
	}
	st, err = a.Store.ExpireCharge(ctx, id)
	return st, err == nil && st.Step.Do == payout.ActionEnd, typed(err)
}
