package store

import (
	"context"

	"hongbao/payout"
)

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
