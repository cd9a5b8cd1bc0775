package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// RecordClaim records a claim once, in one transaction: it claims the share row by compare-and-set,
// inserts a pending payout, and moves holding to owed. A repeat changes nothing. It returns the
// payout's state. On a restored MySQL nothing is recorded: the recovery first finds out who had the
// share or whether it was refunded. Errors: ErrNotFound (no such packet or share),
// ErrBooksClosed, ErrConflict (share taken by another user, or another amount),
// payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) RecordClaim(ctx context.Context, c packet.Claim) (payout.State, error) {
	return s.recordClaim(ctx, c, tx.mayRecordClaims)
}

// RecoverClaim is RecordClaim during a recovery. Errors: as RecordClaim; ErrMoved when MySQL is
// normal.
func (s *Store) RecoverClaim(ctx context.Context, c packet.Claim) (payout.State, error) {
	return s.recordClaim(ctx, c, tx.restoredOnly)
}

// mayRecordClaims: only a restored MySQL stops the recording of claims.
func (tx tx) mayRecordClaims() error { return tx.allow(payout.ActionRecordClaim, holdNames{}) }

func (s *Store) recordClaim(ctx context.Context, c packet.Claim, allowed func(tx) error) (payout.State, error) {
	var out payout.State
	err := s.inTx(ctx, failpoint.ClaimRecord, func(tx tx) error {
		p, err := tx.claimShare(c, s.lanes)
		switch {
		case err != nil:
			return err
		case p == nil:
			out, err = tx.stateOf(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex))
			return err
		}
		if err := allowed(tx); err != nil { // the transaction rolls back: the share stays free
			return err
		}
		out = tx.state(*p, nil)
		return tx.bookClaim(*p)
	})
	return out, claimError(err, c)
}

// BeginClaim does RecordClaim and the first BeginSend of its payout in one transaction: after its
// commit the money is owed, and order number, exact request and send are stored. A claim recorded
// before stays as it is: Order is nil, and State is its state. Under a hold or on a restored MySQL
// nothing is recorded: only Held is set. Errors: as RecordClaim, ErrStaleClaim for a stale claim
// (IsStaleClaim; nothing is recorded), payout.ErrWrongProvider, errors of encode.
func (s *Store) BeginClaim(ctx context.Context, c packet.Claim, limits payout.Limits,
	encode func(payout.Instruction) ([]byte, error)) (payout.SendStart, error) {
	var out payout.SendStart
	var found lockedPacket
	read := func(tx tx) (now time.Time, err error) {
		out = payout.SendStart{}
		out.Hold, found, now, err = tx.lockForClaim(c, limits.Adapter, s.lanes)
		return now, err
	}
	err := s.inTxAfter(ctx, failpoint.ClaimBegin, read, func(tx tx) error {
		if out.Hold != nil {
			return nil
		}
		p, err := tx.claimOf(c, found.Packet)
		switch {
		case err != nil:
			return err
		case p == nil:
			out.State, err = tx.stateOf(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex))
			return err
		case found.Late: // the transaction rolls back: the share stays free
			return fmt.Errorf("claim of packet %s: %w", c.PacketID, packet.ErrStaleClaim)
		}
		if err := limits.Adapter.Assign(p); err != nil {
			return err
		}
		first, err := tx.newAttempt(*p, mysql.PaymentRow{}, 1, limits, encode)
		if err != nil {
			return err
		}
		if err := payout.RecordSend(p, &first, limits, tx.now); err != nil {
			return err
		}
		if err := tx.bookClaim(*p); err != nil {
			return err
		}
		arow := mysql.NewAttemptRow(first)
		if err := tx.Create(&arow).Error; err != nil {
			return err
		}
		out.State = tx.state(*p, []payout.Attempt{first})
		out.Order = orderOf(first)
		return nil
	})
	return out, claimError(err, c)
}

// lockedPacket is the row of a claim's packet, locked in share mode: claims run concurrently, and closing the
// packet waits for them (rule R6). Late: the claim is stale (IsStaleClaim).
type lockedPacket struct {
	Packet mysql.PacketRow `gorm:"embedded"`
	Late   bool
}

// lockedColumns are those of a lockedPacket.
const lockedColumns = `p.id, p.app_id, p.currency, p.books_closed_at, p.payout_provider,
	EXISTS (SELECT 1 FROM pool_lanes WHERE lane = ? AND state = 'open' AND epoch > ?) AS late`

// claimShare assigns a share to the claim's user and returns a pending payout, which the caller
// inserts; nil when the user has the share already.
func (tx tx) claimShare(c packet.Claim, lanes int) (*payout.Payment, error) {
	var found lockedPacket
	lane, since := staleAfter(c, lanes)
	err := tx.Raw("SELECT "+lockedColumns+" FROM packets p WHERE p.id = ? LOCK IN SHARE MODE", lane, since, c.PacketID).Scan(&found).Error
	if err != nil {
		return nil, err
	}
	return tx.claimOf(c, found.Packet)
}

// lockForClaim is sendHold of a claim's payout, with the packet's row and MySQL's time. Only the packet is
// locked, not what the inner query reads.
func (tx tx) lockForClaim(c packet.Claim, by payout.Adapter, lanes int) (hold *payout.Hold, found lockedPacket, now time.Time, err error) {
	on := holdNames{provider: by.Provider, packet: c.PacketID, payment: payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)}
	seen := tx.seen()
	var rows []struct {
		Stops stopsRow     `gorm:"embedded"`
		Found lockedPacket `gorm:"embedded"`
	}
	lane, since := staleAfter(c, lanes)
	err = tx.Raw("SELECT s.*, "+lockedColumns+" FROM ("+selectStops+") s LEFT JOIN packets p ON p.id = ? LOCK IN SHARE MODE",
		lane, since, on.provider, on.all(), c.PacketID).Scan(&rows).Error
	if err != nil {
		return nil, found, now, err
	}
	stops := make([]stopsRow, len(rows))
	for i, r := range rows {
		stops[i], found, now = r.Stops, r.Found, r.Stops.Now
	}
	hold, account, err := tx.firstStop(stops, seen, payout.ActionSendPayment, on)
	if err == nil {
		err = checkAccount(account, by)
	}
	return hold, found, now, err
}

// staleAfter returns the lane of a claim and the epoch after which the claim is stale. A claim
// without an epoch counts as of the first one. lane is -1 without lanes.
func staleAfter(c packet.Claim, lanes int) (lane int, epoch int64) {
	if lanes == 0 {
		return -1, 0
	}
	return packet.Lane(c.PacketID, lanes), max(c.Epoch, 1)
}

// IsStaleClaim reports whether a claim on an existing share is older than the last rebuild of its
// lane, the lane is open again, and the share is not recorded for its user: the rebuilt pool may lack
// the claim. On a lane that is not open the claim is not stale, because the rebuild waits for
// it. Errors: ErrUnavailable.
func (s *Store) IsStaleClaim(ctx context.Context, c packet.Claim) (stale bool, err error) {
	lane, since := staleAfter(c, s.lanes)
	err = s.read(ctx).Raw(`SELECT EXISTS (SELECT 1 FROM pool_lanes WHERE lane = ? AND state = 'open' AND epoch > ?)
		AND EXISTS (SELECT 1 FROM shares WHERE packet_id = ? AND share_index = ? AND (user_id IS NULL OR user_id <> ?))`,
		lane, since, c.PacketID, c.ShareIndex, c.UserID).Scan(&stale).Error
	return stale, mysql.Classify(err)
}

// claimOf is claimShare for a packet row that is locked.
func (tx tx) claimOf(c packet.Claim, row mysql.PacketRow) (*payout.Payment, error) {
	if row.ID == "" {
		return nil, fmt.Errorf("packet %s: %w", c.PacketID, ErrNotFound)
	}
	if row.BooksClosedAt != nil {
		return nil, tx.claimRefusal(c, fmt.Errorf("packet %s: %w", c.PacketID, ErrBooksClosed))
	}
	res := tx.Exec(`UPDATE shares SET user_id = ?, claimed_at = ?
		WHERE packet_id = ? AND share_index = ? AND user_id IS NULL AND amount = ?`,
		c.UserID, c.ClaimedAt.UTC(), c.PacketID, c.ShareIndex, int64(c.Amount))
	if res.Error != nil {
		return nil, res.Error
	}
	if res.RowsAffected != 1 {
		return nil, tx.claimRefusal(c, fmt.Errorf("packet %s: share %d: %w", c.PacketID, c.ShareIndex, ErrMoved))
	}
	// The primary key refuses a second share of a user.
	id := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	if err := tx.Create(mysql.NewClaimRow(c, mysql.ClaimOfShare, id, row.AppID)).Error; err != nil {
		return nil, err
	}
	return &payout.Payment{
		ID: id, Kind: payout.KindPayout, PacketID: c.PacketID, App: row.AppID,
		UserID: c.UserID, ShareIndex: c.ShareIndex, Account: c.Account(), SealedName: c.SealedName, Authorization: c.Authorization,
		Amount: c.Amount, Currency: row.Currency, Remark: remark(c.PacketID),
		Provider: row.PayoutProvider, Status: payout.StatusPending, CreatedAt: tx.now, UpdatedAt: tx.now,
	}, nil
}

// claimRefusal returns why the share could not be assigned: nil when the user has it already,
// otherwise when it is free.
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

// bookClaim inserts the payout of a claimed share and moves its amount to owed.
func (tx tx) bookClaim(p payout.Payment) error {
	if err := tx.insertPayment(p); err != nil {
		return err
	}
	return tx.post(p.PacketID, "", payout.NewTransfer(payout.PostClaim, p.ID, p.Amount))
}

// claimError maps the unique key of one share a user to ErrConflict.
func claimError(err error, c packet.Claim) error {
	if mysql.Duplicate(err) {
		return fmt.Errorf("packet %s: user has another share: %w", c.PacketID, ErrConflict)
	}
	return err
}

// closeBooks fixes what was claimed of a packet and returns the remainder. reason is stored unless empty.
func (tx tx) closeBooks(row mysql.PacketRow, reason packet.CloseReason) (money.Fen, error) {
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
	var best *int
	if claimed.N > 0 {
		if best, err = bestShare(tx.DB, row.ID); err != nil {
			return 0, err
		}
	}
	err = tx.Exec(`UPDATE packets SET books_closed_at = ?, remainder = ?, claimed_count = ?, best_share = ?, last_share = ?, updated_at = ?,
		close_reason = COALESCE(NULLIF(?, ''), close_reason) WHERE id = ? AND books_closed_at IS NULL`,
		tx.now, remainder, claimed.N, best, claimed.Last, tx.now, string(reason), row.ID).Error
	return money.Fen(remainder), err
}

// bestShare returns the share of the luckiest claim (packet.Luckier); nil without claims. It reads
// every claim of the packet.
func bestShare(db *gorm.DB, packetID string) (*int, error) {
	var best *int
	err := db.Model(&shareRow{}).Select("share_index").Where("packet_id = ? AND user_id IS NOT NULL", packetID).
		Order("amount DESC, claimed_at, share_index").Limit(1).Scan(&best).Error
	return best, err
}

// CountClaims counts the recorded claims of a packet: with a share, and without one (share conflicts).
// Errors: ErrUnavailable.
func (s *Store) CountClaims(ctx context.Context, packetID string) (shares, conflicts int, err error) {
	var counted struct{ Shares, Conflicts int }
	err = s.read(ctx).Raw("SELECT COALESCE(SUM(kind = 'share'), 0) AS shares, COALESCE(SUM(kind = 'conflict'), 0) AS conflicts "+
		"FROM claims WHERE packet_id = ? AND kind IN ('share', 'conflict')", packetID).Scan(&counted).Error
	return counted.Shares, counted.Conflicts, mysql.Classify(err)
}

// addTexts adds the greeting of a packet and the name of its campaign to the instruction of a payout, if the limits say
// that requests hold them.
func (tx tx) addTexts(to *payout.Instruction, packetID string, limits payout.Limits) error {
	if !limits.PayoutTexts || to.Op != payout.OpTransfer {
		return nil
	}
	var texts struct{ Greeting, Campaign string }
	err := tx.Raw(`SELECT k.greeting, COALESCE(c.name, '') AS campaign FROM packets k LEFT JOIN campaign_days d ON d.packet_id = k.id
		LEFT JOIN campaigns c ON c.id = d.campaign_id WHERE k.id = ?`, packetID).Scan(&texts).Error
	to.Greeting, to.Campaign = texts.Greeting, texts.Campaign
	return err
}
