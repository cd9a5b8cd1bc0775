package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"hongbao/crash"
	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
)

// RecordClaim books a claim once: the share row is claimed by an UPDATE that can
// succeed once, the payout row is made pending, holding moves to owed, all in
// one transaction. A repeat changes nothing. Returns the payout's state.
// Errors: ErrNotFound (no such packet or share), ErrBooksClosed, ErrConflict
// (share taken by another, or another amount: rule R10), ErrUnavailable.
func (s *Store) RecordClaim(ctx context.Context, c packet.Claim, provider string) (payout.State, error) {
	id := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	var out payout.State
	err := s.inTx(ctx, crash.ClaimBook, func(tx tx) error {
		var row packetRow
		if err := tx.Raw("SELECT * FROM packets WHERE id = ? LOCK IN SHARE MODE", c.PacketID).Scan(&row).Error; err != nil {
			return err
		}
		if row.ID == "" {
			return fmt.Errorf("packet %s: %w", c.PacketID, ErrNotFound)
		}
		var share shareRow
		if err := tx.Raw("SELECT * FROM shares WHERE packet_id = ? AND share_index = ? FOR UPDATE", c.PacketID, c.ShareIndex).Scan(&share).Error; err != nil {
			return err
		}
		switch {
		case share.PacketID == "":
			return fmt.Errorf("packet %s: share %d: %w", c.PacketID, c.ShareIndex, ErrNotFound)
		case share.Amount != int64(c.Amount):
			return fmt.Errorf("packet %s: share %d is %d fen, claim says %d: %w", c.PacketID, c.ShareIndex, share.Amount, c.Amount, ErrConflict)
		case share.UserID != nil && *share.UserID != c.UserID:
			return fmt.Errorf("packet %s: share %d: claimed by another: %w", c.PacketID, c.ShareIndex, ErrConflict)
		case share.UserID != nil:
			p, attempts, err := tx.load(id, false)
			if err != nil {
				return err
			}
			out = state(p.payment(), attempts)
			return nil
		case row.BooksClosedAt != nil:
			return fmt.Errorf("packet %s: %w", c.PacketID, ErrBooksClosed)
		}
		p := payout.Payment{
			ID: id, Kind: payout.KindPayout, PacketID: c.PacketID, App: row.AppID, UserID: c.UserID, ShareIndex: c.ShareIndex, Account: c.Account(),
			Amount: c.Amount, Currency: row.Currency, Remark: remark(c.PacketID), Provider: provider, Status: payout.StatusPending,
			CreatedAt: tx.now, UpdatedAt: tx.now,
		}
		out = state(p, nil)
		return tx.bookClaim(c, p)
	})
	if duplicate(err) {
		err = fmt.Errorf("packet %s: user has another share: %w", c.PacketID, ErrConflict)
	}
	return out, err
}

func (tx tx) bookClaim(c packet.Claim, p payout.Payment) error {
	res := tx.Exec(`UPDATE shares SET app_id = ?, user_id = ?, nickname = ?, avatar_url = ?, recipient = ?, claimed_at = ?
		WHERE packet_id = ? AND share_index = ? AND user_id IS NULL`,
		p.App, c.UserID, c.Nickname, c.AvatarURL, optString(c.Recipient), c.ClaimedAt.UTC(), c.PacketID, c.ShareIndex)
	if res.Error != nil {
		return res.Error
	}
	if res.RowsAffected != 1 {
		return fmt.Errorf("packet %s: share %d: %w", c.PacketID, c.ShareIndex, ErrMoved)
	}
	if err := tx.insertPayment(p); err != nil {
		return err
	}
	return tx.post(c.PacketID, payout.NewPosting(payout.PostClaim, p.ID, c.Amount))
}

// NoteShareConflict keeps a promise that could not be booked as a break (rule R10): nothing is lost from sight.
func (s *Store) NoteShareConflict(ctx context.Context, c packet.Claim, detail string) error {
	id := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	return s.inTx(ctx, crash.ClaimConflict, func(tx tx) error {
		return tx.addBreak(c.PacketID, id, payout.Break{Kind: payout.BreakShareConflict, OrderNo: id, UserID: c.UserID,
			Detail: fmt.Sprintf("user %q was promised %d fen: %s", c.UserID, c.Amount, detail)})
	})
}

// AccountedFor counts the claims of a packet that MySQL knows: claimed shares,
// and promises that could not be booked and are kept as breaks (rule R10).
func (s *Store) AccountedFor(ctx context.Context, packetID string) (int, error) {
	var n int
	err := s.read(ctx).Raw(`SELECT (SELECT COUNT(user_id) FROM shares WHERE packet_id = ?) +
		(SELECT COUNT(*) FROM breaks WHERE packet_id = ? AND kind = ?)`, packetID, packetID, string(payout.BreakShareConflict)).Scan(&n).Error
	return n, classify(err)
}

// closeBooks writes what was claimed of a packet, for ever, and returns the remainder.
func (tx tx) closeBooks(row packetRow) (money.Fen, error) {
	var claimed struct {
		N    int
		Sum  int64
		Last *int
	}
	err := tx.Raw("SELECT COUNT(*) AS n, COALESCE(SUM(amount), 0) AS sum, MAX(share_index) AS last FROM shares WHERE packet_id = ? AND user_id IS NOT NULL",
		row.ID).Scan(&claimed).Error
	if err != nil {
		return 0, err
	}
	remainder := row.TotalAmount - claimed.Sum
	if remainder < 0 {
		return 0, fmt.Errorf("packet %s: claimed %d of %d fen: %w", row.ID, claimed.Sum, row.TotalAmount, ErrConflict)
	}
	best, err := bestShare(tx.DB, row.ID)
	if err != nil {
		return 0, err
	}
	err = tx.Exec(`UPDATE packets SET books_closed_at = ?, remainder = ?, claimed_count = ?, best_share = ?, last_share = ?, updated_at = ?
		WHERE id = ? AND books_closed_at IS NULL`, tx.now, remainder, claimed.N, best, claimed.Last, tx.now, row.ID).Error
	return money.Fen(remainder), err
}

// bestShare returns the share of the luckiest claim (packet.Luckier); nil when
// nobody claimed anything. It reads every claim of the packet.
func bestShare(db *gorm.DB, packetID string) (*int, error) {
	var best *int
	err := db.Raw(`SELECT share_index FROM shares WHERE packet_id = ? AND user_id IS NOT NULL
		ORDER BY amount DESC, claimed_at, share_index LIMIT 1`, packetID).Scan(&best).Error
	return best, err
}
