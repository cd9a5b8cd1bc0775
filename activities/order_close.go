package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// closeCallTimeout bounds the call that closes an order.
const closeCallTimeout = 5 * time.Second

// CloseOrder closes at the provider the current order of a payment, which waits for a person: it records that, withdraws
// the client data of a charge, calls the provider and records the result. An order whose close is not due is left alone.
// Repeatable. Only a query decides what has become of the order (rule R4).
func (a *Payments) CloseOrder(ctx context.Context, id string) (payout.State, error) {
	to, err := a.providerOf(ctx, id)
	if err != nil {
		return payout.State{}, temporalError(err)
	}
	closer, ok := to.(payout.OrderCloser)
	if !ok {
		err := fmt.Errorf("provider %s cannot close orders", to.Name())
		return payout.State{}, temporal.NewNonRetryableApplicationError(err.Error(), TypeDefect, err)
	}
	st, due, err := a.Store.BeginClose(ctx, id)
	if err != nil || !due {
		return st, temporalError(err)
	}
	parts, _ := payout.Parse(id)
	if a.Pools != nil && parts.Kind == payout.KindCharge {
		if err := a.Pools.StoreAction(ctx, parts.PacketID, nil); err != nil { // the close counts, not what is displayed
			logger(ctx).Warn("Client data of a charge not withdrawn.", "payment_id", id, "error", err)
		}
	}
	callCtx, cancel := context.WithTimeout(ctx, closeCallTimeout)
	defer cancel()
	closed := failpoint.Do(failpoint.ChargeClose, func() error { return closer.CloseOrder(callCtx, payout.OpOf(parts.Kind), st.Step.OrderNo) })
	if closed != nil {
		logger(ctx).Warn("Close of an order not answered; it is repeated.", "order_no", st.Step.OrderNo, "error", closed)
	}
	st, err = a.Store.EndClose(ctx, id, closed == nil)
	return st, temporalError(err)
}

// encoder returns the encoder of a payment's request, as Encoder.
func (a *Payments) encoder(ctx context.Context, id string, encode func(payout.Instruction) ([]byte, error),
) func(payout.Instruction) ([]byte, error) {
	return Encoder(ctx, a.SeedKey, id, encode)
}

// Encoder returns the encoder of a payment's request, which gets personal data opened. The request of a charge
// whose sender pays in an app is stored sealed; an adapter encrypts a recipient's name itself. A name that cannot
// be opened is omitted: the claim is recorded in any case, and a provider that needs the name refuses the payout.
func Encoder(ctx context.Context, key [32]byte, id string, encode func(payout.Instruction) ([]byte, error),
) func(payout.Instruction) ([]byte, error) {
	return func(in payout.Instruction) ([]byte, error) {
		parts, err := payout.Parse(id)
		if err != nil {
			return nil, err
		}
		if in.PayUntil.IsZero() {
			if in.RecipientName, err = packet.OpenText(key, parts.PacketID, in.SealedName); err != nil {
				logger(ctx).Error("Name of a recipient cannot be opened; the payout goes without it.", "payment_id", id, "error", err)
			}
			return encode(in)
		}
		if len(in.SealedPayer) > 0 {
			plain, err := packet.Open(key, parts.PacketID, in.SealedPayer)
			if err != nil {
				return nil, err
			}
			var payer packet.Payer
			if err := json.Unmarshal(plain, &payer); err != nil {
				return nil, fmt.Errorf("payer of packet %s: %w", parts.PacketID, err)
			}
			in.Payer, in.ReturnURL = payer.Payer, payer.ReturnURL
		}
		raw, err := encode(in)
		if err != nil {
			return nil, err
		}
		sealed, err := packet.Seal(key, parts.PacketID, raw)
		return append([]byte(sealedRequest), sealed...), err
	}
}

// sealedRequest marks a stored request that is sealed. No adapter's request begins so.
const sealedRequest = "sealed:"

// openRequest returns an order with the request that its adapter encoded.
func (a *Payments) openRequest(o payout.Order) (payout.Order, error) {
	sealed, ok := cutPrefix(o.Request, sealedRequest)
	if !ok {
		return o, nil
	}
	parts, err := payout.Parse(o.OrderNo)
	if err == nil {
		o.Request, err = packet.Open(a.SeedKey, parts.PacketID, sealed)
	}
	return o, err
}

func cutPrefix(b []byte, prefix string) ([]byte, bool) {
	if len(b) < len(prefix) || string(b[:len(prefix)]) != prefix {
		return b, false
	}
	return b[len(prefix):], true
}

// notSent is the observation of an order whose request cannot be opened: nothing left this process.
func notSent(to payout.Provider, o payout.Order, err error) payout.Observation {
	now := time.Now()
	return payout.Observation{Adapter: to.Limits().Adapter, Source: payout.SourceSend, Kind: payout.ObsNotSent, OrderNo: o.OrderNo,
		Message: err.Error(), StartedAt: now, EndedAt: now}
}
