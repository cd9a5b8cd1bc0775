package store

import (
	"context"
	"errors"
	"time"

	"hongbao/payout"
)

// askedLately is how long an answer about an order number stands against a list that says
// otherwise: whoever looks at a proof again and again must not use up the provider's patience.
const askedLately = time.Minute

// AskReturned has the provider asked about an order number that it lists as come back, when
// its success is booked and its return is not, as a notification does: it moves nothing by
// itself. One that was answered in the last minute is left alone, as is one that the books do
// not have. Errors: ErrUnavailable.
func (s *Store) AskReturned(ctx context.Context, orderNo string) error {
	err := s.askAbout(ctx, orderNo, "provider", "came back, and nobody told of it: asked", func(tx tx, a payout.Attempt) bool {
		return !a.Booked || a.ReturnBooked || tx.now.Sub(a.AskedAt) < askedLately
	})
	if errors.Is(err, ErrNotFound) || errors.Is(err, payout.ErrBadOrderNo) { // not of ours: a difference
		return nil
	}
	return err
}

// ReturnsKnown tells what the books know of order numbers whose money has come back. A
// number that they do not have is left out. Errors: ErrUnavailable.
func (s *Store) ReturnsKnown(ctx context.Context, orderNos []string) (map[string]payout.ReturnKnown, error) {
	if len(orderNos) == 0 {
		return nil, nil
	}
	var rows []struct {
		OrderNo      string
		Booked       bool
		ReturnBooked bool
		AskRequested bool
		Status       string
	}
	err := s.read(ctx).Raw(`SELECT a.order_no, a.booked, a.return_booked, a.ask_requested, p.status FROM attempts a JOIN payments p ON p.id = a.payment_id
		WHERE a.order_no IN ?`, orderNos).Scan(&rows).Error
	if err != nil {
		return nil, classify(err)
	}
	out := make(map[string]payout.ReturnKnown, len(rows))
	for _, r := range rows {
		out[r.OrderNo] = payout.ReturnKnown{Booked: r.ReturnBooked, Waiting: !r.Booked && payout.Status(r.Status).Open(), Asked: r.AskRequested}
	}
	return out, nil
}
