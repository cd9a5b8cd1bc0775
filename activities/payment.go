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

// Payments holds the activities of charges, payouts and refunds.
type Payments struct {
	Store     PaymentStore
	Providers *payout.Registry
	// Admissions defer sends while a provider fails or is held, by its name; without one all are
	// admitted.
	Admissions Admissions
	// Pools keeps stale claims, and is read before a charge is sent; nil disables both.
	Pools ClaimPools
	// SeedKey seals the personal data of charges and their client data, as in package packet.
	SeedKey [32]byte
	// Now is the clock; nil: time.Now. A simulation sets its own.
	Now func() time.Time

	calls     calls // the providers' speed, for sends within workflow tasks
	providers packetProviders
}

// RecordClaim records a claim and makes its payout pending. Repeatable. A claim that cannot be
// recorded is stored as a share conflict. That is a failed payout of its own, until
// staff decide, and a break. The returned state is then that payout's. So is a stale claim.
func (a *Payments) RecordClaim(ctx context.Context, c packet.Claim) (payout.State, error) {
	st, done, err := a.recordStale(ctx, c)
	if err == nil && !done {
		st, err = RecordClaimOrConflict(ctx, a.Store, c)
	}
	return st, temporalError(err)
}

// RecordClaimOrConflict records an acknowledged claim, or stores it as a share conflict.
// Repeatable. Errors: those of the store.
func RecordClaimOrConflict(ctx context.Context, book ClaimStore, c packet.Claim) (payout.State, error) {
	st, err := book.RecordClaim(ctx, c)
	if errors.Is(err, packet.ErrConflict) || errors.Is(err, packet.ErrBooksClosed) {
		st, err = book.RecordShareConflict(ctx, c, err.Error())
	}
	return st, err
}

// ReadPayment reads the state of a payment, which is the program counter (rule R3).
func (a *Payments) ReadPayment(ctx context.Context, id string) (payout.State, error) {
	st, err := a.Store.PaymentState(ctx, id)
	return st, temporalError(err)
}

// begin stores order number and exact request and notes the send before the call, or returns
// another next step. A repeat finds the note and queries: it never sends twice under one note.
// While the provider fails or is held, nothing is noted and the step is deferred (Admission).
// noted is at or before the note's commit.
func (a *Payments) begin(ctx context.Context, to payout.Provider, id string) (begun payout.SendStart, noted time.Time, err error) {
	op, admission := opOf(id), a.Admissions[to.Name()]
	if op == payout.OpCharge {
		if st, ended, err := a.expireCharge(ctx, id); ended || err != nil {
			return payout.SendStart{State: st}, noted, err
		}
	}
	if why, wait := admission.admit(ctx, op, id); why != payout.NotDeferred {
		begun, err = a.readDeferred(ctx, id, why, wait)
		return begun, noted, err
	}
	noted = a.clock()
	begun, err = a.Store.BeginSend(ctx, id, to.Limits(), a.encoder(ctx, id, to.EncodeRequest))
	switch {
	case err != nil:
		admission.cancel(op)
	case begun.Hold != nil:
		a.deferStep(&begun.State, payout.DeferredHeld, admission.deferBegun(op, id, payout.DeferredHeld, 0))
	case !begun.SpacedUntil.IsZero():
		wait := begun.SpacedUntil.Sub(begun.State.Clock)
		a.deferStep(&begun.State, payout.DeferredRefundSpacing, admission.deferBegun(op, id, payout.DeferredRefundSpacing, wait))
	case begun.Order == nil:
		admission.cancel(op)
	default:
		admission.sendNoted(id)
	}
	return begun, noted, temporalError(err)
}

// callProvider makes the call of a noted send. Every result is an observation.
func (a *Payments) callProvider(ctx context.Context, to payout.Provider, o payout.Order) (seen payout.Observation) {
	began := a.clock()
	step := failpoint.ForPayment(o.OrderNo, failpoint.ChargeSend, failpoint.PayoutSend, failpoint.RefundSend)
	_ = failpoint.Do(step, func() error {
		if o, err := a.openRequest(o); err != nil {
			seen = notSent(to, o, err)
		} else {
			seen = to.Send(ctx, o)
		}
		return nil
	})
	a.deliverAction(ctx, o.OrderNo, &seen)
	now := a.clock()
	a.calls.note(call{to.Name(), o.Op}, elapsed(began, now), now)
	a.Admissions[to.Name()].report(ctx, o.Op, paymentOf(o.OrderNo), seen)
	return seen
}

// clockTimeout bounds reading MySQL's clock before a query.
const clockTimeout = 2 * time.Second

// Ask queries the provider about an order number. It moves nothing and is repeatable. A query that has to wait for the
// throttle is an error that repeats the step after the wait: no answer is settled, and the query stays due. The start
// of the query is a time of MySQL's clock, which also times decisions. A new order number needs
// an answer to a query that began after the decision (rule R5).
func (a *Payments) Ask(ctx context.Context, orderNo string) (payout.Observation, error) {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return payout.Observation{}, temporal.NewNonRetryableApplicationError(err.Error(), TypeDefect, err)
	}
	clockCtx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	to, err := a.providerOf(clockCtx, parts.PaymentID)
	var asked time.Time
	if err == nil {
		if wait := a.queryWait(clockCtx, to, parts.PaymentID, orderNo); wait > 0 {
			return payout.Observation{}, throttled(orderNo, wait)
		}
		asked, err = a.Store.BeginQuery(clockCtx, orderNo, to.Limits().Adapter)
	}
	if err != nil {
		return payout.Observation{}, temporalError(fmt.Errorf("query order %s: %w", orderNo, err))
	}
	var seen payout.Observation
	_ = failpoint.Do(failpoint.OrderQuery, func() error { // every result is an observation
		seen = to.Query(ctx, payout.OpOf(parts.Kind), orderNo)
		return nil
	})
	if seen.Kind == payout.ObsNeedsRecipient {
		a.deliverAction(ctx, orderNo, &seen)
	}
	seen.ActionLost = seen.Kind == payout.ObsNeedsPayer && a.actionLost(ctx, parts.PacketID)
	a.Admissions[to.Name()].report(ctx, payout.OpOf(parts.Kind), parts.PaymentID, seen)
	seen.StartedAt, seen.EndedAt = asked, asked.Add(seen.EndedAt.Sub(seen.StartedAt))
	return seen, nil
}

// queryWait returns how long the query of an order number has to wait for the throttle.
func (a *Payments) queryWait(ctx context.Context, to payout.Provider, id, orderNo string) time.Duration {
	admission, op := a.Admissions[to.Name()], OpRoutineQuery
	if !admission.throttlesQueries() {
		return 0
	}
	if st, err := a.Store.PaymentState(ctx, id); err == nil {
		switch st.Status {
		case payout.StatusPending, payout.StatusSending, payout.StatusUnknown:
			op = OpQuery
		}
	}
	return admission.awaitThrottle(ctx, op, orderNo)
}

// Settle writes an observation: status, ledger, breaks and timeline in one transaction. It is
// idempotent. Nothing is written about an order number that a restored MySQL lacks. The run
// continues from the row (rule R3), and a recovery finds the order at the provider.
// Nothing is written about an answer of another provider either.
func (a *Payments) Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error) {
	st, err := a.Store.Settle(ctx, o, asked)
	if errors.Is(err, payout.ErrWrongProvider) {
		logger(ctx).Error("Ignored an answer of another provider or merchant account.", "order_no", asked, "error", err)
	}
	if errors.Is(err, packet.ErrNotFound) || errors.Is(err, payout.ErrWrongProvider) {
		st, err = a.Store.PaymentState(ctx, paymentOf(asked))
	}
	if err != nil {
		return st, temporalError(fmt.Errorf("settle %s: %w", asked, err))
	}
	return st, nil
}

// CarryOut completes a decision after all its order numbers were queried: a cancelled payout
// becomes a refund to the sender. Repeatable.
func (a *Payments) CarryOut(ctx context.Context, id string) (payout.State, error) {
	st, err := a.Store.CarryOut(ctx, id)
	return st, temporalError(err)
}

// expireCharge ends a charge instead of sending it when its packet can no longer open. The packet
// has expired by the pool's clock and by MySQL's, and nothing was sent. This avoids a charge that
// would only be refunded. A failed check does not stop the charge: a packet that is charged too
// late is refunded in full (rule R2).
func (a *Payments) expireCharge(ctx context.Context, id string) (st payout.State, ended bool, err error) {
	parts, err := payout.Parse(id)
	if err != nil || a.Pools == nil {
		return st, false, nil //nolint:nilerr // reading the row reports an invalid id
	}
	view, err := a.Pools.View(ctx, parts.PacketID)
	over := !view.Now.Before(view.Packet.ExpiresAt) || view.Packet.PayWithin > 0 // its deadline is MySQL's to judge
	if err != nil || view.State != packet.PoolFunding || !over {
		return st, false, nil //nolint:nilerr // see above
	}
	st, err = a.Store.ExpireCharge(ctx, id)
	return st, err == nil && st.Step.Do == payout.ActionEnd, temporalError(err)
}
