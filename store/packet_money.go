package store

import (
	"context"

	"hongbao/money"
	"hongbao/payout"
)

// PayoutSums counts and adds up the recorded payouts of a packet by status, by
// reading each of them. Errors: ErrUnavailable.
func (s *Store) PayoutSums(ctx context.Context, packetID string) (map[payout.Status]payout.Sum, error) {
	var rows []struct {
		Status string
		N      int64
		Sum    int64
	}
	err := s.read(ctx).Raw(`SELECT status, COUNT(*) AS n, SUM(amount) AS sum FROM payments FORCE INDEX (payments_packet)
		WHERE packet_id = ? AND kind = 'p' GROUP BY status`, packetID).Scan(&rows).Error
	out := make(map[payout.Status]payout.Sum, len(rows))
	for _, r := range rows {
		out[payout.Status(r.Status)] = payout.Sum{Count: r.N, Amount: money.Fen(r.Sum)}
	}
	return out, classify(err)
}
