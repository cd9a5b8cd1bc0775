package store

import (
	"context"
	"errors"
	"fmt"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
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
		var row mysql.PacketRow
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
func (tx tx) shareConflictOf(c packet.Claim, row mysql.PacketRow, detail string) (string, error) {
	var id string
	if err := tx.Model(&mysql.ClaimRow{}).Where("packet_id = ? AND kind = ? AND user_id = ?", c.PacketID, mysql.ClaimConflict, c.UserID).
		Pluck("payment_id", &id).Error; err != nil || id != "" {
		return id, err
	}
	free, err := tx.freeHonour(c.PacketID, c.UserID)
	if err != nil {
		return "", err
	}
	p := payout.NewShareConflict(payout.Payment{
		ID: free, PacketID: c.PacketID, App: row.AppID, UserID: c.UserID, Account: c.Account(), SealedName: c.SealedName,
		Authorization: c.Authorization,
		Amount:        c.Amount, Currency: row.Currency, Remark: remark(c.PacketID), Provider: row.PayoutProvider,
	}, tx.now)
	if err := tx.insertPayment(p); err != nil {
		return "", err
	}
	if err := tx.Create(mysql.NewClaimRow(c, mysql.ClaimConflict, p.ID, row.AppID)).Error; err != nil {
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
		if err := tx.Model(&mysql.PaymentRow{}).Where("id = ?", id).Count(&taken).Error; err != nil || taken == 0 {
			return id, err
		}
	}
}

// ShareConflictUsers lists the users with a share conflict in a packet: acknowledged claims without
// a share. Errors: ErrUnavailable.
func (s *Store) ShareConflictUsers(ctx context.Context, packetID string) ([]string, error) {
	var users []string
	err := s.read(ctx).Model(&mysql.ClaimRow{}).Where("packet_id = ? AND kind = ?", packetID, mysql.ClaimConflict).Pluck("user_id",
		&users).Error
	return users, mysql.Classify(err)
}

// ClaimUsers lists the users with a recorded claim in a packet, with or without a share; one with both
// is listed twice. Errors: ErrUnavailable.
func (s *Store) ClaimUsers(ctx context.Context, packetID string) ([]string, error) {
	var users []string
	err := s.read(ctx).Model(&mysql.ClaimRow{}).Where("packet_id = ? AND kind IN ('share', 'conflict')", packetID).Pluck("user_id",
		&users).Error
	return users, mysql.Classify(err)
}
