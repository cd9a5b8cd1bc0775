package store

import (
	"context"
	"errors"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// RequestReturnQuery requests a query of an order number that the provider lists as returned and
// whose return is not booked. No money moves. An answer younger than stands overrides the list. Not
// queried: unknown order numbers, those that ended without moving money, and charges: staff decide
// about a returned charge (payout.BreakContradiction). Errors: ErrUnavailable.
func (s *Store) RequestReturnQuery(ctx context.Context, orderNo string, stands time.Duration) (payout.ReturnQuery, error) {
	was := payout.ReturnQueryNotNeeded
	err := s.requestQuery(ctx, orderNo, payout.Event{Source: "provider", Event: payout.EventReturnListed},
		func(tx tx, p payout.Payment, a payout.Attempt) bool {
			switch {
			case p.Kind == payout.KindCharge, a.ReturnBooked, !a.Booked && !p.Status.Open():
				was = payout.ReturnQueryNotNeeded
			case tx.now.Sub(a.QueriedAt).Abs() < stands:
				was = payout.ReturnQueryAnswered
			default:
				was = payout.ReturnQueryRequested
			}
			return was != payout.ReturnQueryRequested
		})
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, payout.ErrBadOrderNo): // not ours: a difference
		return payout.ReturnQueryNotNeeded, nil
	case err != nil:
		return payout.ReturnQueryNotNeeded, err
	}
	return was, nil
}

// RecordedReturns reads what MySQL has of returned order numbers. Unknown ones are missing from the
// map. Errors: ErrUnavailable.
func (s *Store) RecordedReturns(ctx context.Context, orderNos []string) (map[string]payout.KnownReturn, error) {
	if len(orderNos) == 0 {
		return nil, nil
	}
	var rows []struct {
		OrderNo      string
		Booked       bool
		ReturnBooked bool
		AskWanted    bool
		Status       string
	}
	err := s.read(ctx).Raw(`SELECT a.order_no, a.booked, a.return_booked, a.ask_wanted_at IS NOT NULL AS ask_wanted, p.status FROM attempts a
		JOIN payments p ON p.id = a.payment_id
		WHERE a.order_no IN ?`, orderNos).Scan(&rows).Error
	if err != nil {
		return nil, mysql.Classify(err)
	}
	out := make(map[string]payout.KnownReturn, len(rows))
	for _, r := range rows {
		out[r.OrderNo] = payout.KnownReturn{Booked: r.ReturnBooked, Waiting: !r.Booked && payout.Status(r.Status).Open(),
			QueryRequested: r.AskWanted}
	}
	return out, nil
}
