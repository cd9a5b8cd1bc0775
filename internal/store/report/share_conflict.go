package report

import (
	"context"

	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// shareConflicts counts and adds up the share conflicts that nobody has decided about.
func (r *HealthReader) shareConflicts(ctx context.Context, v *observe.HealthSnapshot) error {
	var sums struct{ N, Fen int64 }
	// raw: shares its text with the list
	err := r.source.read(ctx).Raw("SELECT COUNT(*) AS n, LEAST(COALESCE(SUM(y.amount), 0), ?) AS fen FROM "+mysql.OpenConflicts,
		int64(money.Saturated)).Scan(&sums).Error
	v.ShareConflicts, v.ShareConflictsFen = sums.N, sums.Fen
	return err
}

// PayoutProgress reads the state of the payouts of claims. A share conflict has its own payout, not
// that of its share, which is another user's. Unrecorded claims are missing from the map.
// Errors: ErrUnavailable.
func (s *Source) PayoutProgress(ctx context.Context, claims []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error) {
	out := make(map[payout.ClaimRef]payout.PayoutProgress, len(claims))
	if len(claims) == 0 {
		return out, nil
	}
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	}
	var rows []struct{ ID, UserID, Status, FailureCode string }
	err := s.read(ctx).Model(&mysql.PaymentRow{}).Select("id", "user_id", "status", "COALESCE(failure_code, '') AS failure_code").
		Where("id IN ?", ids).Find(&rows).Error
	if err != nil {
		return out, mysql.Classify(err)
	}
	type booked struct{ user, status, failure string }
	of := make(map[string]booked, len(rows))
	for _, r := range rows {
		of[r.ID] = booked{r.UserID, r.Status, r.FailureCode}
	}
	var packets, users []string
	for i, c := range claims {
		if b, ok := of[ids[i]]; ok && b.user == c.UserID {
			out[c] = payout.PayoutProgress{ID: ids[i], Status: payout.Status(b.status), FailureCode: b.failure}
			continue
		}
		packets, users = append(packets, c.PacketID), append(users, c.UserID)
	}
	return out, s.addConflictProgress(ctx, out, claims, packets, users)
}

// RecipientAction reads the sealed client data with which the recipient of a payout confirms; nil: there is none,
// or it does not wait for its recipient. Errors: ErrUnavailable.
func (s *Source) RecipientAction(ctx context.Context, payoutID string) ([]byte, error) {
	var row struct{ SealedAction []byte }
	err := s.read(ctx).Raw(`SELECT a.sealed_action FROM payments p JOIN attempts a ON a.order_no = p.order_no
		WHERE p.id = ? AND p.status = ?`, payoutID, string(payout.StatusAwaitingRecipient)).Scan(&row).Error // raw: JOIN
	return row.SealedAction, mysql.Classify(err)
}

// addConflictProgress adds the payouts of share conflicts for claims without one.
func (s *Source) addConflictProgress(ctx context.Context, out map[payout.ClaimRef]payout.PayoutProgress, claims []payout.ClaimRef, packets,
	users []string) error {
	if len(packets) == 0 {
		return nil
	}
	var rows []struct{ PacketID, UserID, PaymentID, Status, FailureCode string }
	err := s.read(ctx).Raw(`SELECT c.packet_id, c.user_id, c.payment_id, y.status, COALESCE(y.failure_code, '') AS failure_code
		FROM claims c JOIN payments y ON y.id = c.payment_id
		WHERE c.packet_id IN ? AND c.kind = 'conflict' AND c.user_id IN ?`, packets, users).Scan(&rows).Error
	for _, r := range rows {
		for _, c := range claims {
			if _, known := out[c]; !known && c.PacketID == r.PacketID && c.UserID == r.UserID {
				out[c] = payout.PayoutProgress{ID: r.PaymentID, Status: payout.Status(r.Status), FailureCode: r.FailureCode}
			}
		}
	}
	return mysql.Classify(err)
}

// ShareConflicts adds up the share conflicts of a packet. Errors: ErrUnavailable.
func (s *Source) ShareConflicts(ctx context.Context, packetID string) (staff.ShareConflicts, error) {
	var sums struct{ Count, Amount, Free int64 }
	err := s.read(ctx).Raw(`SELECT COUNT(*) AS count, COALESCE(SUM(y.amount), 0) AS amount, COALESCE(SUM(IF(s.user_id IS NULL, y.amount, 0)),
		0) AS free
		FROM claims c JOIN payments y ON y.id = c.payment_id LEFT JOIN shares s ON s.packet_id = c.packet_id AND s.share_index = c.share_index
		WHERE c.packet_id = ? AND c.kind = 'conflict'`, packetID).Scan(&sums).Error
	return staff.ShareConflicts{Count: sums.Count, Amount: money.Fen(sums.Amount), Free: money.Fen(sums.Free)}, mysql.Classify(err)
}
