package activities

import (
	"context"
	"time"

	"hongbao/internal/payout"
)

// parked returns the payment as it is, with its send due later. What is not a
// send, because the row has moved, is not kept waiting.
func (a *Payments) readDeferred(ctx context.Context, id string, why payout.Deferral, wait time.Duration) (payout.SendStart, error) {
	st, err := a.Store.PaymentState(ctx, id)
	if err != nil {
		return payout.SendStart{}, typed(err)
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

// opOf is the operation that carries out a payment, by its id.
func opOf(id string) payout.Op {
	if id == "" {
		return ""
	}
	return payout.OpOf(payout.Kind(id[0]))
}

// paymentOf is the payment of an order number; of what is none, the number itself.
func paymentOf(orderNo string) string {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return orderNo
	}
	return parts.PaymentID
}
