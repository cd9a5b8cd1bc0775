package harness

import (
	"context"
	"encoding/json"
	"fmt"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// The steps of the workflows, as far as a test wants them.

// Fund charges the sender of a staged packet and opens its pool. It rejects the packet when the charge fails,
// and refunds it when the charge may not be used.
func (s *Stack) Fund(ctx context.Context, packetID string) error {
	view, err := s.Pool.View(ctx, packetID)
	if err != nil {
		return err
	}
	seed := packet.DeriveSeed(s.Config.SeedKey, packetID)
	sealed, err := packet.SealSeed(s.Config.SeedKey, packetID, seed)
	if err != nil {
		return err
	}
	guests, err := s.Pool.Eligible(ctx, packetID)
	if err != nil {
		return err
	}
	if len(guests) == 0 {
		guests = nil
	}
	if _, err := s.Store.RecordPacket(ctx, view.Packet, sealed, guests); err != nil {
		return err
	}
	charge, err := s.Drive(ctx, payout.ID(payout.KindCharge, packetID, 0))
	if err != nil {
		return err
	}
	if charge.Status != payout.StatusPaid {
		f := packet.Failure{Code: charge.Failure.Code, Message: charge.Failure.Message}
		if err := s.Store.RejectPacket(ctx, packetID, f); err != nil {
			return err
		}
		return s.Pool.Reject(ctx, packetID, f)
	}
	shares, err := packet.Split(seed, view.Packet.SplitParams())
	if err != nil {
		return err
	}
	status, err := s.Store.Fund(ctx, packetID, shares)
	if err != nil {
		return err
	}
	if status == packet.StatusClosing {
		return s.Finish(ctx, packetID, packet.CloseUnopened)
	}
	return s.Pool.OpenPool(ctx, packetID, shares, nil)
}

// Drive does the next step of a payment until none is left, and returns its last state. A
// send that a busy machine lets leave too late is unknown until its landing window ends.
func (s *Stack) Drive(ctx context.Context, paymentID string) (st payout.State, err error) {
	var seen string
	ended := wait.Reached(wait.Limit(), func() bool {
		if st, err = s.Store.PaymentState(ctx, paymentID); err != nil || st.Step.Do == payout.ActionEnd {
			return true
		}
		seen, err = s.step(ctx, paymentID, st.Step)
		return err != nil
	})
	if !ended {
		return payout.State{}, fmt.Errorf("payment %s: not at its end within %v: %s, %s", paymentID, wait.Limit(), st.Status, seen)
	}
	return st, err
}

// step does one step of a payment, and says what it has seen.
func (s *Stack) step(ctx context.Context, paymentID string, next payout.Step) (seen string, err error) {
	orderNo := next.OrderNo
	var o payout.Observation
	switch next.Do {
	case payout.ActionCarryOut:
		_, err := s.Store.CarryOut(ctx, paymentID)
		return "to be carried out", err
	case payout.ActionSend:
		start, err := s.Store.BeginSend(ctx, paymentID, s.Provider.Limits(), s.Provider.EncodeRequest)
		if err != nil || start.Order == nil {
			return fmt.Sprintf("nothing to send, hold %+v", start.Hold), err
		}
		orderNo, o = start.Order.OrderNo, s.Provider.Send(ctx, *start.Order)
		if err := s.deliverAction(ctx, orderNo, &o); err != nil {
			return "", err
		}
	case payout.ActionQuery:
		parts, err := payout.Parse(paymentID)
		if err != nil {
			return "", err
		}
		o = s.Provider.Query(ctx, payout.OpOf(parts.Kind), orderNo)
	default:
		return "", fmt.Errorf("payment %s: step %q is unknown", paymentID, next.Do)
	}
	_, err = s.Store.Settle(ctx, o, orderNo)
	return fmt.Sprintf("%s %s: %s %s", o.Source, o.Kind, o.Code, o.Message), err
}

// deliverAction gives the sender of an unpaid packet what their app needs to pay.
func (s *Stack) deliverAction(ctx context.Context, orderNo string, o *payout.Observation) error {
	if o.Kind != payout.ObsNeedsPayer || o.Action == nil {
		return nil
	}
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(o.Action)
	if err != nil {
		return err
	}
	sealed, err := packet.Seal(s.Config.SeedKey, parts.PacketID, raw)
	if err != nil {
		return err
	}
	o.Until = o.Action.ValidUntil
	return s.Pool.StoreAction(ctx, parts.PacketID, sealed)
}

// Record records every claim of a pool and pays it. It returns the ids of the payouts, by user.
func (s *Stack) Record(ctx context.Context, packetID string) (payouts map[string]string, err error) {
	claims, err := s.Pool.Claims(ctx, packetID)
	if err != nil {
		return nil, err
	}
	payouts = map[string]string{}
	for _, c := range claims {
		st, err := s.Store.RecordClaim(ctx, c)
		if err != nil {
			return payouts, err
		}
		if _, err := s.Drive(ctx, st.PaymentID); err != nil {
			return payouts, err
		}
		payouts[c.UserID] = st.PaymentID
	}
	return payouts, nil
}

// Close ends the grabs of a packet, records and pays its claims, and fixes its remainder. It
// returns the id of the refund, which is not sent yet; "" without a remainder.
func (s *Stack) Close(ctx context.Context, packetID string, reason packet.CloseReason) (refund string, err error) {
	if _, err := s.Store.BeginClosing(ctx, packetID, reason); err != nil {
		return "", err
	}
	if _, err := s.Pool.ClosePool(ctx, packetID, reason); err != nil {
		return "", err
	}
	if _, err := s.Record(ctx, packetID); err != nil {
		return "", err
	}
	rest, err := s.Store.CloseBooks(ctx, packetID, "")
	if err != nil || rest == 0 {
		return "", err
	}
	return payout.ID(payout.KindRefund, packetID, 0), nil
}

// Finish closes a packet, refunds its remainder, and retires its pool.
func (s *Stack) Finish(ctx context.Context, packetID string, reason packet.CloseReason) error {
	refund, err := s.Close(ctx, packetID, reason)
	if err != nil {
		return err
	}
	if refund != "" {
		if _, err := s.Drive(ctx, refund); err != nil {
			return err
		}
	}
	view, err := s.Pool.View(ctx, packetID)
	if err != nil {
		return err
	}
	closed, err := s.Store.FinishPacket(ctx, packetID, view.First)
	if err != nil {
		return err
	}
	if !closed {
		return fmt.Errorf("packet %s: not every payment is at its end", packetID)
	}
	return s.Pool.Retire(ctx, packetID)
}
