package report

import (
	"context"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// PayoutSums counts and adds up the payouts of a packet by status. It reads each of them. Errors:
// ErrUnavailable.
func (s *Source) PayoutSums(ctx context.Context, packetID string) (map[payout.Status]staff.Sum, error) {
	var rows []struct {
		Status string
		N      int64
		Sum    int64
	}
	err := s.read(ctx).Raw(`SELECT status, COUNT(*) AS n, SUM(amount) AS sum FROM payments FORCE INDEX (payments_packet)
		WHERE packet_id = ? AND kind = 'p' GROUP BY status`, packetID).Scan(&rows).Error
	out := make(map[payout.Status]staff.Sum, len(rows))
	for _, r := range rows {
		out[payout.Status(r.Status)] = staff.Sum{Count: r.N, Amount: money.Fen(r.Sum)}
	}
	return out, mysql.Classify(err)
}
