package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"hongbao/packet"
	"hongbao/payout"
)

// Payments are the steps of the attempt machine: charge, payout and refund alike.
type Payments struct {
	Cashbook Cashbook
	Provider Provider
}

// RecordClaim books a claim and makes its payout pending. Repeatable. A claim
// that cannot be booked ends in an error of TypeShareConflict and a break.
func (a *Payments) RecordClaim(ctx context.Context, c packet.Claim) (payout.State, error) {
	st, err := a.Cashbook.RecordClaim(ctx, c, a.Provider.Name())
	if errors.Is(err, packet.ErrConflict) || errors.Is(err, packet.ErrBooksClosed) {
		if nerr := a.Cashbook.NoteShareConflict(ctx, c, err.Error()); nerr != nil {
			return st, typed(nerr)
		}
		return st, temporal.NewNonRetryableApplicationError(err.Error(), TypeShareConflict, err)
	}
	return st, typed(err)
}

// ReadPayment reads the program counter of a payment (rule R3).
func (a *Payments) ReadPayment(ctx context.Context, id string) (payout.State, error) {
	st, err := a.Cashbook.PaymentState(ctx, id)
	return st, typed(err)
}

// BeginSend stores number and exact request and notes the send before it goes
// out, or says what to do instead. A repeat after a lost answer finds its own
// note and asks: it never sends twice under one note.
func (a *Payments) BeginSend(ctx context.Context, id string) (payout.Begun, error) {
	begun, err := a.Cashbook.BeginSend(ctx, id, a.Provider.Limits(), a.Provider.EncodeRequest)
	return begun, typed(err)
}

// Sent is the answer of Pay.
type Sent struct {
	// Overtaken: another run has gone on since the send was noted; nothing was sent.
	Overtaken   bool               `json:"overtaken,omitempty"`
	Observation payout.Observation `json:"observation"`
}

// Pay makes the one call that moves money, with the stored bytes. It runs at
// most once a noted send; whatever goes wrong is an observation, and the row is
// looked at right before, so that a run that was reset or overtaken sends nothing.
func (a *Payments) Pay(ctx context.Context, o payout.Order) (Sent, error) {
	current, err := a.Cashbook.StillCurrent(ctx, o.OrderNo, o.Send)
	now := time.Now().UTC()
	if err != nil {
		activity.GetLogger(ctx).Warn("Payment not sent: its row could not be read.", "order_no", o.OrderNo, "error", err)
		return Sent{Observation: payout.Observation{Source: payout.SourceSend, Kind: payout.ObsNotSent, OrderNo: o.OrderNo, Code: "row_unreadable",
			StartedAt: now, EndedAt: now}}, nil
	}
	if !current {
		return Sent{Overtaken: true}, nil
	}
	return Sent{Observation: a.Provider.Send(ctx, o)}, nil
}

// Ask asks the provider about an order number. It moves nothing and may be repeated.
func (a *Payments) Ask(ctx context.Context, orderNo string) (payout.Observation, error) {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return payout.Observation{}, temporal.NewNonRetryableApplicationError(err.Error(), TypeDefect, err)
	}
	return a.Provider.Ask(ctx, payout.OpOf(parts.Kind), orderNo), nil
}

// Settle writes what was observed: status, ledger, breaks and timeline in one
// transaction. Settling the same observation twice changes nothing.
func (a *Payments) Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error) {
	st, err := a.Cashbook.Settle(ctx, o, asked)
	if err != nil {
		return st, typed(fmt.Errorf("settle %s: %w", asked, err))
	}
	return st, nil
}
