package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// RecordClaim books a claim once: the share row is claimed by an UPDATE that can
// succeed once, the payout row is made pending, holding moves to owed, all in
// one transaction. A repeat changes nothing. Returns the payout's state.
// On books that were restored nothing is booked: with whom its share was, or that it was
// refunded, is for their recovery to find out first (rule R13).
// Errors: ErrNotFound (no such packet or share), ErrBooksClosed, ErrConflict
// (share taken by another, or another amount: rule R10), payout.ErrMySQLRestored,
// ErrUnavailable.
func (s *Store) RecordClaim(ctx context.Context, c packet.Claim, provider string) (payout.State, error) {
	return s.recordClaim(ctx, c, provider, tx.trusted)
}

// RecoverClaim does what RecordClaim does, on books that are being recovered.
// Errors: as RecordClaim; ErrMoved when the books are normal.
func (s *Store) RecoverClaim(ctx context.Context, c packet.Claim, provider string) (payout.State, error) {
	return s.recordClaim(ctx, c, provider, tx.restoredOnly)
}

func (s *Store) recordClaim(ctx context.Context, c packet.Claim, provider string, allowed func(tx) error) (payout.State, error) {
	var out payout.State
	err := s.inTx(ctx, failpoint.ClaimBook, func(tx tx) error {
		p, _, err := tx.claimShare(c, provider, s.lanes)
		switch {
		case err != nil:
			return err
		case p == nil:
			out, err = tx.stateOf(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex))
			return err
		}
		if err := allowed(tx); err != nil { // the share is not taken: this transaction is not committed
			return err
		}
		out = tx.state(*p, nil)
		return tx.bookClaim(*p)
	})
	return out, claimError(err, c)
}

// BeginClaim does what RecordClaim and the first BeginSend of its payout do, in
// one transaction: from its commit on the money is owed, and number, exact
// request and the send that may follow are on record. A claim that was booked
// before is left as it is: Order is nil then, and State says how far it has come.
// While the provider is held, or the books were restored, nothing is booked either:
// Held is all it returns.
// Errors: as RecordClaim, ErrStaleClaim (see Late; nothing is booked), payout.ErrWrongProvider, and what encode returns.
func (s *Store) BeginClaim(ctx context.Context, c packet.Claim, provider string, limits payout.Limits,
	encode func(payout.Instruction) ([]byte, error)) (payout.SendStart, error) {
	var out payout.SendStart
	err := s.inTx(ctx, failpoint.ClaimBegin, func(tx tx) error {
		out = payout.SendStart{}
		hold, guarded, err := tx.sending(limits.Adapter, c.PacketID)
		switch {
		case err != nil:
			return err
		case hold != nil:
			out.Hold = hold
			return nil
		}
		p, late, err := tx.claimShare(c, provider, s.lanes)
		switch {
		case err != nil:
			return err
		case p == nil:
			out.State, err = tx.stateOf(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex))
			return err
		case late: // the share is not taken: this transaction is not committed
			return fmt.Errorf("claim of packet %s: %w", c.PacketID, packet.ErrStaleClaim)
		}
		if err := limits.Adapter.Assign(p); err != nil {
			return err
		}
		first, err := newAttempt(*p, 1, encode)
		if err != nil {
			return err
		}
		if left, err := tx.leftToPeople(guarded, first); left || err != nil { // BeginSend asks about it
			out.State = tx.state(*p, nil)
			if err == nil {
				err = tx.bookClaim(*p)
			}
			return err
		}
		if err := payout.RecordSend(p, &first, limits, tx.now); err != nil {
			return err
		}
		if err := tx.bookClaim(*p); err != nil {
			return err
		}
		arow := newAttemptRow(first)
		if err := tx.Create(&arow).Error; err != nil {
			return err
		}
		out.State = tx.state(*p, []payout.Attempt{first})
		out.Order = orderOf(first)
		return nil
	})
	return out, claimError(err, c)
}

// claimShare gives a share to the claim's user and returns his payout, pending,
// for the caller to insert. It returns nil when the share was his before. The
// packet row is locked in share mode: claims go on beside each other, and the
// closing of the books waits for those that are under way (rule R6). It reports whether
// the claim is late (Late).
func (tx tx) claimShare(c packet.Claim, provider string, lanes int) (p *payout.Payment, late bool, err error) {
	var found struct {
		Packet packetRow `gorm:"embedded"`
		Late   bool
	}
	lane, since := staleAfter(c, lanes)
	err = tx.Raw(`SELECT id, app_id, currency, books_closed_at, EXISTS (SELECT 1 FROM pool_lanes WHERE lane = ? AND state = 'open'
		AND epoch > ?) AS late
		FROM packets WHERE id = ? LOCK IN SHARE MODE`, lane, since, c.PacketID).Scan(&found).Error
	if err != nil {
		return nil, false, err
	}
	p, err = tx.claimOf(c, found.Packet, provider)
	return p, found.Late, err
}

// staleAfter returns the lane of a claim, and behind which epoch it is late there. Of a claim
// whose epoch is not known that is the first one: nothing was made again before it. Without
// lanes there is no such lane.
func staleAfter(c packet.Claim, lanes int) (lane int, epoch int64) {
	if lanes == 0 {
		return -1, 0
	}
	return packet.Lane(c.PacketID, lanes), max(c.Epoch, 1)
}

// Late reports whether a claim was won before the last rebuild of its lane, whose gate is
// open again, on a share that there is: the pool may have been made without the claim (rule
// R9). Behind a gate that is not open it is not late: the rebuild waits for it.
// Errors: ErrUnavailable.
func (s *Store) IsStaleClaim(ctx context.Context, c packet.Claim) (late bool, err error) {
	lane, since := staleAfter(c, s.lanes)
	err = s.read(ctx).Raw(`SELECT EXISTS (SELECT 1 FROM pool_lanes WHERE lane = ? AND state = 'open' AND epoch > ?)
		AND EXISTS (SELECT 1 FROM shares WHERE packet_id = ? AND share_index = ?)`, lane, since, c.PacketID, c.ShareIndex).Scan(&late).Error
	return late, classify(err)
}

// claimOf is claimShare for a packet whose row is locked.
func (tx tx) claimOf(c packet.Claim, row packetRow, provider string) (*payout.Payment, error) {
	if row.ID == "" {
		return nil, fmt.Errorf("packet %s: %w", c.PacketID, ErrNotFound)
	}
	if row.BooksClosedAt != nil {
		return nil, tx.claimRefusal(c, fmt.Errorf("packet %s: %w", c.PacketID, ErrBooksClosed))
	}
	res := tx.Exec(`UPDATE shares SET app_id = ?, user_id = ?, nickname = ?, avatar_url = ?, recipient = ?, claimed_at = ?
		WHERE packet_id = ? AND share_index = ? AND user_id IS NULL AND amount = ?`,
		row.AppID, c.UserID, c.Nickname, c.AvatarURL, optString(c.Recipient), c.ClaimedAt.UTC(), c.PacketID, c.ShareIndex, int64(c.Amount))
	if res.Error != nil {
		return nil, res.Error
	}
	if res.RowsAffected != 1 {
		return nil, tx.claimRefusal(c, fmt.Errorf("packet %s: share %d: %w", c.PacketID, c.ShareIndex, ErrMoved))
	}
	// One share a user: the table's key refuses a second one.
	err := tx.Exec("INSERT INTO claims (packet_id, user_id, share_index, app_id, claimed_at, epoch, seq) VALUES (?, ?, ?, ?, ?, ?, ?)",
		c.PacketID, c.UserID, c.ShareIndex, row.AppID, c.ClaimedAt.UTC(), optNumber(c.Epoch), optNumber(c.Seq)).Error
	if err != nil {
		return nil, err
	}
	return &payout.Payment{
		ID: payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), Kind: payout.KindPayout, PacketID: c.PacketID, App: row.AppID,
		UserID: c.UserID, ShareIndex: c.ShareIndex, Account: c.Account(), Amount: c.Amount, Currency: row.Currency, Remark: remark(c.PacketID),
		Provider: provider, Status: payout.StatusPending, CreatedAt: tx.now, UpdatedAt: tx.now,
	}, nil
}

// claimRefusal says why a share could not be given to the claim's user; nil
// when it is his already, otherwise when it is free.
func (tx tx) claimRefusal(c packet.Claim, otherwise error) error {
	var share shareRow
	if err := tx.Raw("SELECT * FROM shares WHERE packet_id = ? AND share_index = ? FOR UPDATE", c.PacketID,
		c.ShareIndex).Scan(&share).Error; err != nil {
		return err
	}
	switch {
	case share.PacketID == "":
		return fmt.Errorf("packet %s: share %d: %w", c.PacketID, c.ShareIndex, ErrNotFound)
	case share.Amount != int64(c.Amount):
		return fmt.Errorf("packet %s: share %d is %d fen, claim says %d: %w", c.PacketID, c.ShareIndex, share.Amount, c.Amount, ErrConflict)
	case share.UserID == nil:
		return otherwise
	case *share.UserID != c.UserID:
		return fmt.Errorf("packet %s: share %d: claimed by another: %w", c.PacketID, c.ShareIndex, ErrConflict)
	}
	return nil
}

// bookClaim inserts the payout of a share just claimed; the money is owed now.
func (tx tx) bookClaim(p payout.Payment) error {
	if err := tx.insertPayment(p); err != nil {
		return err
	}
	return tx.post(p.PacketID, payout.NewTransfer(payout.PostClaim, p.ID, p.Amount))
}

// claimError names the unique key that keeps a user from a second share.
func claimError(err error, c packet.Claim) error {
	if duplicate(err) {
		return fmt.Errorf("packet %s: user has another share: %w", c.PacketID, ErrConflict)
	}
	return err
}

// CountRecordedClaims counts the claims of a packet that MySQL knows: claimed shares,
// and promises that could not be booked (rule R10).
func (s *Store) CountRecordedClaims(ctx context.Context, packetID string) (int, error) {
	var n int
	err := s.read(ctx).Raw(`SELECT (SELECT COUNT(*) FROM claims WHERE packet_id = ?) +
		(SELECT COUNT(*) FROM promises WHERE packet_id = ?)`, packetID, packetID).Scan(&n).Error
	return n, classify(err)
}

// CountClaimedShares counts the claimed shares of a packet. Errors: ErrUnavailable.
func (s *Store) CountClaimedShares(ctx context.Context, packetID string) (int, error) {
	var n int
	err := s.read(ctx).Raw("SELECT COUNT(*) FROM claims WHERE packet_id = ?", packetID).Scan(&n).Error
	return n, classify(err)
}

// closeBooks writes what was claimed of a packet, for ever, and returns the remainder.
func (tx tx) closeBooks(row packetRow) (money.Fen, error) {
	var claimed struct {
		N    int
		Sum  int64
		Last *int
	}
	err := tx.Raw("SELECT COUNT(*) AS n, COALESCE(SUM(amount), 0) AS sum, MAX(share_index) AS last FROM shares WHERE packet_id = ? AND "+
		"user_id IS NOT NULL",
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
