package activities

import (
	"context"
	"time"

	"hongbao/internal/payout"
)

// readDeferred reads the payment and defers its send. A step that is no longer a send, because
// the row has changed, is not deferred.
func (a *Payments) readDeferred(ctx context.Context, id string, why payout.Deferral, wait time.Duration) (payout.SendStart, error) {
	st, err := a.Store.PaymentState(ctx, id)
	if err != nil {
		return payout.SendStart{}, temporalError(err)
	}
	a.deferStep(&st, why, wait)
	return payout.SendStart{State: st}, nil
}

func (a *Payments) deferStep(st *payout.State, why payout.Deferral, wait time.Duration) {
	if st.Step.Do != payout.ActionSend {
		return
	}
	at := st.Clock.Add(wait)
	if at.After(st.Step.At) {
		st.Step.At, st.Step.Deferred = at, why
	}
}

// opOf returns the operation of a payment, by its id.
func opOf(id string) payout.Op {
	if id == "" {
		return ""
	}
	return payout.OpOf(payout.Kind(id[0]))
}

// paymentOf returns the payment id of an order number, or the argument if it is no order number.
func paymentOf(orderNo string) string {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return orderNo
	}
	return parts.PaymentID
}
