package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// RecordPacket inserts the packet row in status funding and its charge, in one transaction. The charge is
// pending; one from the app's balance is carried out at once, unless a hold stops it.
// A repeat with the same body hash changes nothing. A missing list with EligibleCount > 0 means that
// it is lost; only a recovery may record that. It returns the row's status. Errors: ErrConflict when
// the id exists with another body or the list has another length, ErrMoved when the list is missing
// and MySQL is normal, ErrUnavailable.
func (s *Store) RecordPacket(ctx context.Context, p packet.Packet, sealedSeed []byte, eligible []string) (packet.Status, error) {
	status := packet.StatusFunding
	err := ifCovered(func(covered bool) error {
		return s.inTx(ctx, failpoint.CreateRecord, func(tx tx) (err error) {
			status, err = tx.recordPacket(p, sealedSeed, eligible, covered)
			return err
		})
	})
	if mysql.Duplicate(err) { // this run or another wrote the row before
		rec, rerr := s.PacketRow(ctx, p.ID)
		if rerr != nil {
			return "", rerr
		}
		if rec.BodyHash != p.BodyHash {
			return "", fmt.Errorf("packet %s: %w", p.ID, ErrConflict)
		}
		return rec.Stored, nil
	}
	return status, err
}

// recordPacket inserts a packet and its charge. covered: its app's balance covers it, if the app funds
// it.
func (tx tx) recordPacket(p packet.Packet, sealedSeed []byte, eligible []string, covered bool) (packet.Status, error) {
	row, err := mysql.NewPacketRow(p, sealedSeed, eligible, tx.now)
	if err != nil {
		return "", err
	}
	if n := len(eligible); n > 0 && n != p.EligibleCount {
		return "", fmt.Errorf("packet %s: list has %d of %d users: %w", p.ID, n, p.EligibleCount, ErrConflict)
	}
	if err := tx.Create(&row).Error; err != nil { // before the rest: a repeat is a duplicate
		return "", err
	}
	if p.EligibleCount > 0 && len(eligible) == 0 {
		if err := tx.restoredOnly(); err != nil {
			return "", err
		}
	}
	charge := payout.Payment{
		ID: payout.ID(payout.KindCharge, p.ID, 0), Kind: payout.KindCharge, PacketID: p.ID, App: p.App, UserID: p.SenderID, ShareIndex: -1,
		Account: p.SenderID, Amount: p.TotalAmount, Currency: p.Currency, Remark: remark(p.ID), Provider: p.ChargeProvider,
		Status: payout.StatusPending, PayUntil: p.PayUntil(), CreatedAt: tx.now, UpdatedAt: tx.now,
	}
	if p.ChargeProvider != payout.BalanceProvider {
		return packet.StatusFunding, tx.insertPayment(charge)
	}
	if _, err := tx.chargeBalance(&charge, covered); err != nil { // under a hold it stays pending
		return "", err
	}
	if err := tx.insertPayment(charge); err != nil {
		return "", err
	}
	return packet.StatusFunding, tx.reserve(charge)
}

// remark is the text that payer and payee see at the provider: at most 32 characters.
func remark(packetID string) string { return "hongbao " + packetID }

// Fund moves the packet from funding to open and inserts its share rows, in one transaction. A
// packet whose list is lost moves on to closing, unopened: its shares take only claims won before. A
// packet that is open or later stays as it is; one whose charge was returned, or withdrawn before it was
// paid, moves to closing without shares. It returns the status afterwards. Errors:
// ErrNotFound, ErrMoved while the charge is not paid, payout.ErrMySQLRestored or another hold
// (mayOpen), ErrConflict when the amounts do not match total and share count, ErrUnavailable.
func (s *Store) Fund(ctx context.Context, id string, amounts []money.Fen) (packet.Status, error) {
	return s.fund(ctx, id, amounts, tx.mayOpen)
}

// RecoverFund is Fund during a recovery. Errors: as Fund; ErrMoved when MySQL is normal.
func (s *Store) RecoverFund(ctx context.Context, id string, amounts []money.Fen) (packet.Status, error) {
	return s.fund(ctx, id, amounts, tx.chargeRecovered)
}

func (s *Store) fund(ctx context.Context, id string, amounts []money.Fen, charged func(tx, string) error) (packet.Status, error) {
	var status packet.Status
	err := s.inPacketTx(ctx, id, failpoint.CreateFund, func(tx tx, row mysql.PacketRow) error {
		if status = packet.Status(row.Status); status != packet.StatusFunding {
			return nil
		}
		if err := charged(tx, id); errors.Is(err, errChargeReturned) || errors.Is(err, errWithdrawn) {
			status = packet.StatusClosing
			return tx.closeUnopened(id)
		} else if err != nil {
			return err
		}
		if sum, err := money.Sum(amounts...); err != nil || int64(sum) != row.TotalAmount || len(amounts) != row.ShareCount {
			return fmt.Errorf("packet %s: %d shares of %d fen, not %d of %d: %w", id, len(amounts), sum, row.ShareCount, row.TotalAmount,
				ErrConflict)
		}
		if err := tx.movePacket(id, packet.StatusFunding, packet.StatusOpen, nil); err != nil {
			return err
		}
		status = packet.StatusOpen
		if row.EligibleCount > 0 && row.Eligible == nil {
			status = packet.StatusClosing
			err := tx.movePacket(id, packet.StatusOpen, status, map[string]any{"close_reason": string(packet.CloseUnopened)})
			if err != nil {
				return err
			}
		}
		return tx.putShares(id, amounts)
	})
	return status, err
}

// closeUnopened moves a charged packet in funding to closing. A restored MySQL cannot know that nothing
// was claimed.
func (tx tx) closeUnopened(id string) error {
	if err := tx.allow(payout.ActionEndUnopened, aboutCharge(id)); err != nil {
		return err
	}
	return tx.movePacket(id, packet.StatusFunding, packet.StatusClosing, map[string]any{"close_reason": string(packet.CloseUnopened)})
}

// errChargeReturned means that the sender has the charge back.
var errChargeReturned = fmt.Errorf("the charge was returned: %w", ErrMoved)

// chargeIs reads a packet's charge and returns ErrMoved unless it has one of these statuses: money that
// did not arrive is neither handed out nor refunded.
func (tx tx) chargeIs(id string, wanted ...payout.Status) (mysql.PaymentRow, error) {
	charge, err := tx.chargeOf(id, false)
	status := payout.Status(charge.Status)
	switch {
	case err != nil || slices.Contains(wanted, status):
		return charge, err
	case status == payout.StatusReturned:
		return charge, fmt.Errorf("packet %s: %w", id, errChargeReturned)
	}
	return charge, fmt.Errorf("packet %s: charge is %q: %w", id, status, ErrMoved)
}

// chargeOf reads a packet's charge: its status, since when, amount and provider, and whether it was withdrawn. Without
// one the row is empty.
func (tx tx) chargeOf(packetID string, lock bool) (row mysql.PaymentRow, err error) {
	err = tx.locking(lock).Select("id", "kind", "status", "amount", "provider", "provider_account", "settled_at", "pay_until",
		"close_requested_at").
		Where("id = ?", payout.ID(payout.KindCharge, packetID, 0)).Limit(1).Find(&row).Error
	return row, err
}

// movePacket is the only writer of packets.status: a compare-and-set.
func (tx tx) movePacket(id string, from, to packet.Status, set map[string]any) error {
	values := map[string]any{"status": string(to), "updated_at": tx.now}
	for k, v := range set {
		values[k] = v
	}
	res := tx.Model(&mysql.PacketRow{}).Where("id = ? AND status = ?", id, string(from)).Updates(values)
	if res.Error != nil {
		return res.Error
	}
	if res.RowsAffected != 1 {
		return fmt.Errorf("packet %s: not %s: %w", id, from, ErrMoved)
	}
	return nil
}

// lockPacket reads a packet with MySQL's time and locks its row. Errors: ErrNotFound.
func (tx tx) lockPacket(id string) (mysql.PacketRow, time.Time, error) {
	var found struct {
		Packet mysql.PacketRow `gorm:"embedded"`
		Now    time.Time       `gorm:"column:read_at"`
	}
	err := tx.Raw("SELECT UTC_TIMESTAMP(6) AS read_at, p.* FROM packets p WHERE p.id = ? FOR UPDATE", id).Scan(&found).Error
	if err == nil && found.Packet.ID == "" {
		err = fmt.Errorf("packet %s: %w", id, ErrNotFound)
	}
	return found.Packet, found.Now, err
}

// inPacketTx runs fn in a transaction whose first statement locks and reads a packet.
func (s *Store) inPacketTx(ctx context.Context, id string, step failpoint.Step, fn func(tx tx, row mysql.PacketRow) error) error {
	var row mysql.PacketRow
	lock := func(tx tx) (now time.Time, err error) {
		row, now, err = tx.lockPacket(id)
		return now, err
	}
	return s.inTxAfter(ctx, step, lock, func(tx tx) error { return fn(tx, row) })
}

// RejectPacket moves funding to rejected after the charge has failed with that code. The row
// decides, not the run (rules R3 and R4): on a restored MySQL the charge may be pending again and
// succeed later, or have succeeded and opened the packet. Repeatable. Errors: ErrNotFound,
// ErrMoved when the row differs, payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) RejectPacket(ctx context.Context, id string, f packet.Failure) error {
	return s.inPacketTx(ctx, id, failpoint.RejectRow, func(tx tx, row mysql.PacketRow) error {
		if row.Status == string(packet.StatusRejected) {
			return nil
		}
		charge, _, err := tx.load(payout.ID(payout.KindCharge, id, 0), true)
		if err != nil {
			return err
		}
		if why := mysql.OrEmpty(charge.FailureCode); charge.Status != string(payout.StatusFailed) || why != mysql.ClipCode(f.Code) {
			return fmt.Errorf("packet %s: charge is %s %q, not failed %q: %w", id, charge.Status, why, f.Code, ErrMoved)
		}
		if err := tx.allow(payout.ActionEndUnopened, aboutCharge(id)); err != nil {
			return err
		}
		return tx.movePacket(id, packet.StatusFunding, packet.StatusRejected,
			map[string]any{"failure_code": mysql.ClipCode(f.Code), "failure_message": mysql.Clip(f.Message, mysql.MessageLen)})
	})
}

// BeginClosing moves open (or, by rule R2, charged but still funding) to closing; the first reason
// wins. Repeatable. It returns the status afterwards. Errors: ErrNotFound, ErrMoved while the charge
// is not paid, payout.ErrMySQLRestored for a packet in funding, ErrUnavailable.
func (s *Store) BeginClosing(ctx context.Context, id string, reason packet.CloseReason) (packet.Status, error) {
	status := packet.StatusClosing
	err := s.inPacketTx(ctx, id, failpoint.CloseBegin, func(tx tx, row mysql.PacketRow) error {
		from := packet.Status(row.Status)
		if from != packet.StatusOpen && from != packet.StatusFunding {
			status = from
			return nil
		}
		if from == packet.StatusFunding {
			if _, err := tx.chargeIs(id, payout.StatusPaid, payout.StatusReturned); err != nil {
				return err
			}
			// A restored MySQL cannot know that nothing was claimed.
			if err := tx.allow(payout.ActionEndUnopened, aboutCharge(id)); err != nil {
				return err
			}
		}
		status = packet.StatusClosing
		return tx.movePacket(id, from, packet.StatusClosing, map[string]any{"close_reason": string(reason)})
	})
	return status, err
}

// CloseBooks closes a packet's books once (rule R6). The remainder is total - claimed shares. It
// becomes a pending refund with an outbox row and moves from holding to refunding, and on to the house
// when the sender has the charge back. RecordClaim refuses from then on. It stores the reason with which
// the pool was closed; an empty one leaves the row's. It returns the remainder, the same at every repeat. Errors:
// ErrMoved when it is not closing, payout.ErrMySQLRestored, ErrUnavailable,
// also while the lane's fence is shut: then claims may be missing.
func (s *Store) CloseBooks(ctx context.Context, id string, reason packet.CloseReason) (money.Fen, error) {
	var remainder money.Fen
	err := s.inPacketTx(ctx, id, failpoint.CloseBooks, func(tx tx, row mysql.PacketRow) (err error) {
		if row.BooksClosedAt != nil {
			remainder = money.Fen(*row.Remainder)
			return nil
		}
		if row.Status != string(packet.StatusClosing) {
			return fmt.Errorf("packet %s is %s, not closing: %w", id, row.Status, ErrMoved)
		}
		if err := tx.allow(payout.ActionCloseBooks, holdNames{packet: id}); err != nil {
			return err
		}
		if err := tx.laneOpen(id, s.lanes); err != nil {
			return err
		}
		if remainder, err = tx.closeBooks(row, reason); err != nil {
			return err
		}
		return tx.payRemainder(row, remainder)
	})
	return remainder, err
}

// FinishPacket moves closing to closed once the books are closed and the remainder is refunded, and
// stores the first answer to create. false means that the refund is not final yet. Errors:
// ErrNotFound, ErrUnavailable.
func (s *Store) FinishPacket(ctx context.Context, id string, first *packet.FirstAnswer) (bool, error) {
	closed := false
	err := s.inPacketTx(ctx, id, failpoint.PacketFinish, func(tx tx, row mysql.PacketRow) error {
		closed = false
		if row.Status == string(packet.StatusClosed) {
			closed = true
			return nil
		}
		if row.Status != string(packet.StatusClosing) || row.BooksClosedAt == nil {
			return nil
		}
		if *row.Remainder > 0 {
			var status string
			err := tx.Model(&mysql.PaymentRow{}).Select("status").Where("id = ?", payout.ID(payout.KindRefund, id, 0)).Scan(&status).Error
			if err != nil {
				return err
			}
			if !payout.Status(status).Final() {
				return nil
			}
		}
		set := map[string]any{"closed_at": tx.now}
		if first != nil {
			set["first_status"], set["first_request_id"] = first.HTTPStatus, first.RequestID
		}
		closed = true
		return tx.movePacket(id, packet.StatusClosing, packet.StatusClosed, set)
	})
	return closed, err
}

// PacketProviders returns the names of a packet's providers: of its charge and refunds, and of its
// payouts. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) PacketProviders(ctx context.Context, id string) (charge, payouts string, err error) {
	var row mysql.PacketRow
	err = s.read(ctx).Select("id, charge_provider, payout_provider").Where("id = ?", id).Limit(1).Find(&row).Error
	if err == nil && row.ID == "" {
		return "", "", fmt.Errorf("packet %s: %w", id, ErrNotFound)
	}
	return row.ChargeProvider, row.PayoutProvider, mysql.Classify(err)
}
