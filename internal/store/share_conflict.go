package store

import (
	"context"
	"errors"
	"fmt"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// RecordShareConflict records a share conflict (rule R10): a break and a payout failed with
// share_conflict. The payout gets the user's h number (payout.HonourNumber). A repeat for the same user finds the
// existing payout in any state. No transfer is made: staff decide. It returns the payout's state. On
// a restored MySQL nothing is recorded, as with RecordClaim. Errors: ErrNotFound (no such packet),
// payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) RecordShareConflict(ctx context.Context, c packet.Claim, detail string) (payout.State, error) {
	return s.saveShareConflict(ctx, c, detail, tx.mayRecordClaims)
}

// RecoverShareConflict is RecordShareConflict during a recovery. Errors: as RecordShareConflict;
// ErrMoved when MySQL is normal.
func (s *Store) RecoverShareConflict(ctx context.Context, c packet.Claim, detail string) (payout.State, error) {
	return s.saveShareConflict(ctx, c, detail, tx.restoredOnly)
}

func (s *Store) saveShareConflict(ctx context.Context, c packet.Claim, detail string, allowed func(tx) error) (payout.State, error) {
	var out payout.State
	err := s.inTx(ctx, failpoint.ClaimConflict, func(tx tx) error {
		// The lock serializes the choice of h numbers and keeps claims of the packet from being recorded
		// concurrently.
		var row packetRow
		err := tx.Raw("SELECT id, app_id, currency, payout_provider FROM packets WHERE id = ? FOR UPDATE", c.PacketID).Scan(&row).Error
		if err != nil {
			return err
		}
		if row.ID == "" {
			return fmt.Errorf("packet %s: %w", c.PacketID, ErrNotFound)
		}
		share := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
		switch err := tx.claimRefusal(c, ErrMoved); {
		case err == nil: // the claim was recorded since
			out, err = tx.stateOf(share)
			return err
		case !errors.Is(err, ErrMoved) && !errors.Is(err, ErrConflict):
			return err
		}
		if err := allowed(tx); err != nil {
			return err
		}
		err = tx.addBreak(c.PacketID, share, payout.Break{Kind: payout.BreakShareConflict, OrderNo: share, UserID: c.UserID,
			Detail: fmt.Sprintf("user %q has an acknowledged claim of %d fen: %s", c.UserID, c.Amount, detail)})
		if err != nil {
			return err
		}
		id, err := tx.shareConflictOf(c, row, detail)
		if err != nil {
			return err
		}
		out, err = tx.stateOf(id)
		return err
	})
	return out, err
}

// shareConflictOf returns the payment id of a user's share conflict and creates it when missing. The
// packet row is locked.
func (tx tx) shareConflictOf(c packet.Claim, row packetRow, detail string) (string, error) {
	var id string
	if err := tx.Model(&claimRow{}).Where("packet_id = ? AND kind = ? AND user_id = ?", c.PacketID, claimConflict, c.UserID).
		Pluck("payment_id", &id).Error; err != nil || id != "" {
		return id, err
	}
	free, err := tx.freeHonour(c.PacketID, c.UserID)
	if err != nil {
		return "", err
	}
	p := payout.NewShareConflict(payout.Payment{
		ID: free, PacketID: c.PacketID, App: row.AppID, UserID: c.UserID, Account: c.Account(),
		Amount: c.Amount, Currency: row.Currency, Remark: remark(c.PacketID), Provider: row.PayoutProvider,
	}, tx.now)
	if err := tx.insertPayment(p); err != nil {
		return "", err
	}
	if err := tx.Create(newClaimRow(c, claimConflict, p.ID, row.AppID)).Error; err != nil {
		return "", err
	}
	return p.ID, tx.addEvent(p.ID, payout.Event{Source: "ledger", Event: payout.EventNotRecorded, Outcome: string(p.Status),
		Code: p.Failure.Code, Args: map[string]string{"detail": detail}})
}

// freeHonour returns the id of a user's share conflict: that of the user's number, or of the next one
// that no other user of the packet has. The packet row is locked.
func (tx tx) freeHonour(packetID, userID string) (string, error) {
	for n := payout.HonourNumber(packetID, userID); ; n = payout.NextHonourNumber(n) {
		id := payout.ID(payout.KindHonour, packetID, n)
		var taken int64
		if err := tx.Model(&paymentRow{}).Where("id = ?", id).Count(&taken).Error; err != nil || taken == 0 {
			return id, err
		}
	}
}

// PayoutProgress reads the state of the payouts of claims. A share conflict has its own payout, not
// that of its share, which is another user's (rule R10). Unrecorded claims are missing from the map.
// Errors: ErrUnavailable.
func (s *Store) PayoutProgress(ctx context.Context, claims []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error) {
	out := make(map[payout.ClaimRef]payout.PayoutProgress, len(claims))
	if len(claims) == 0 {
		return out, nil
	}
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	}
	var rows []struct{ ID, UserID, Status string }
	if err := s.read(ctx).Model(&paymentRow{}).Select("id", "user_id", "status").Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return out, classify(err)
	}
	type booked struct{ user, status string }
	of := make(map[string]booked, len(rows))
	for _, r := range rows {
		of[r.ID] = booked{r.UserID, r.Status}
	}
	var packets, users []string
	for i, c := range claims {
		if b, ok := of[ids[i]]; ok && b.user == c.UserID {
			out[c] = payout.PayoutProgress{ID: ids[i], Status: payout.Status(b.status)}
			continue
		}
		packets, users = append(packets, c.PacketID), append(users, c.UserID)
	}
	return out, s.addConflictProgress(ctx, out, claims, packets, users)
}

// addConflictProgress adds the payouts of share conflicts for claims without one.
func (s *Store) addConflictProgress(ctx context.Context, out map[payout.ClaimRef]payout.PayoutProgress, claims []payout.ClaimRef, packets,
	users []string) error {
	if len(packets) == 0 {
		return nil
	}
	var rows []struct{ PacketID, UserID, PaymentID, Status string }
	err := s.read(ctx).Raw(`SELECT c.packet_id, c.user_id, c.payment_id, y.status FROM claims c JOIN payments y ON y.id = c.payment_id
		WHERE c.packet_id IN ? AND c.kind = 'conflict' AND c.user_id IN ?`, packets, users).Scan(&rows).Error
	for _, r := range rows {
		for _, c := range claims {
			if _, known := out[c]; !known && c.PacketID == r.PacketID && c.UserID == r.UserID {
				out[c] = payout.PayoutProgress{ID: r.PaymentID, Status: payout.Status(r.Status)}
			}
		}
	}
	return classify(err)
}

// ShareConflicts adds up the share conflicts of a packet. Errors: ErrUnavailable.
func (s *Store) ShareConflicts(ctx context.Context, packetID string) (staff.ShareConflicts, error) {
	var sums struct{ Count, Amount, Free int64 }
	err := s.read(ctx).Raw(`SELECT COUNT(*) AS count, COALESCE(SUM(y.amount), 0) AS amount, COALESCE(SUM(IF(s.user_id IS NULL, y.amount, 0)),
		0) AS free
		FROM claims c JOIN payments y ON y.id = c.payment_id LEFT JOIN shares s ON s.packet_id = c.packet_id AND s.share_index = c.share_index
		WHERE c.packet_id = ? AND c.kind = 'conflict'`, packetID).Scan(&sums).Error
	return staff.ShareConflicts{Count: sums.Count, Amount: money.Fen(sums.Amount), Free: money.Fen(sums.Free)}, classify(err)
}

// ShareConflictUsers lists the users with a share conflict in a packet: acknowledged claims without
// a share. Errors: ErrUnavailable.
func (s *Store) ShareConflictUsers(ctx context.Context, packetID string) ([]string, error) {
	var users []string
	err := s.read(ctx).Model(&claimRow{}).Where("packet_id = ? AND kind = ?", packetID, claimConflict).Pluck("user_id", &users).Error
	return users, classify(err)
}

// ClaimUsers lists the users with a recorded claim in a packet, with or without a share; one with both
// is listed twice. Errors: ErrUnavailable.
func (s *Store) ClaimUsers(ctx context.Context, packetID string) ([]string, error) {
	var users []string
	err := s.read(ctx).Model(&claimRow{}).Where("packet_id = ? AND kind IN ('share', 'conflict')", packetID).Pluck("user_id", &users).Error
	return users, classify(err)
}
