package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

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
	if mysql.Duplicate(err) { // a concurrent run wrote the same row
		rec, rerr := s.Packet(ctx, p.ID)
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

// recordPacket inserts a packet and its charge, unless it has the packet. covered: its app's balance
// covers it, if the app funds it.
func (tx tx) recordPacket(p packet.Packet, sealedSeed []byte, eligible []string, covered bool) (packet.Status, error) {
	row, err := mysql.NewPacketRow(p, sealedSeed, eligible, tx.now)
	if err != nil {
		return "", err
	}
	var old mysql.PacketRow
	switch err := tx.Where("id = ?", p.ID).Take(&old).Error; {
	case err == nil:
		if old.BodyHash != p.BodyHash {
			return "", fmt.Errorf("packet %s: %w", p.ID, ErrConflict)
		}
		return packet.Status(old.Status), nil
	case !errors.Is(err, gorm.ErrRecordNotFound):
		return "", err
	}
	if err := tx.listAllowed(p, eligible); err != nil {
		return "", err
	}
	if err := tx.Create(&row).Error; err != nil {
		return "", err
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

// listAllowed refuses a list of another length, and a missing one outside a recovery.
func (tx tx) listAllowed(p packet.Packet, eligible []string) error {
	switch {
	case len(eligible) == p.EligibleCount:
		return nil
	case len(eligible) == 0:
		return tx.restoredOnly()
	}
	return fmt.Errorf("packet %s: list has %d of %d users: %w", p.ID, len(eligible), p.EligibleCount, ErrConflict)
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
	err := s.inTx(ctx, failpoint.CreateFund, func(tx tx) error {
		row, err := tx.lockPacket(id)
		if err != nil {
			return err
		}
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

// charged returns ErrMoved unless the packet's charge is paid: money that did not arrive is neither
// handed out nor refunded.
func (tx tx) charged(id string) error { return tx.chargeIs(id, payout.StatusPaid) }

// chargeIs returns ErrMoved unless the packet's charge has one of these statuses.
func (tx tx) chargeIs(id string, wanted ...payout.Status) error {
	charge, err := tx.chargeOf(id, false)
	status := payout.Status(charge.Status)
	switch {
	case err != nil || slices.Contains(wanted, status):
		return err
	case status == payout.StatusReturned:
		return fmt.Errorf("packet %s: %w", id, errChargeReturned)
	}
	return fmt.Errorf("packet %s: charge is %q: %w", id, status, ErrMoved)
}

// chargeOf reads a packet's charge: its status, amount and provider. Without one the row is empty.
func (tx tx) chargeOf(packetID string, lock bool) (row mysql.PaymentRow, err error) {
	err = tx.locking(lock).Select("id", "status", "amount", "provider", "provider_account").
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

func (tx tx) lockPacket(id string) (mysql.PacketRow, error) {
	var row mysql.PacketRow
	if err := tx.Raw("SELECT * FROM packets WHERE id = ? FOR UPDATE", id).Scan(&row).Error; err != nil {
		return row, err
	}
	if row.ID == "" {
		return row, fmt.Errorf("packet %s: %w", id, ErrNotFound)
	}
	return row, nil
}

// RejectPacket moves funding to rejected after the charge has failed with that code. The row
// decides, not the run (rules R3 and R4): on a restored MySQL the charge may be pending again and
// succeed later, or have succeeded and opened the packet. Repeatable. Errors: ErrNotFound,
// ErrMoved when the row differs, payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) RejectPacket(ctx context.Context, id string, f packet.Failure) error {
	return s.inTx(ctx, failpoint.RejectRow, func(tx tx) error {
		row, err := tx.lockPacket(id)
		if err != nil || row.Status == string(packet.StatusRejected) {
			return err
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
	err := s.inTx(ctx, failpoint.CloseBegin, func(tx tx) error {
		row, err := tx.lockPacket(id)
		if err != nil {
			return err
		}
		from := packet.Status(row.Status)
		if from != packet.StatusOpen && from != packet.StatusFunding {
			status = from
			return nil
		}
		if err := tx.chargeIs(id, payout.StatusPaid, payout.StatusReturned); err != nil {
			return err
		}
		if from == packet.StatusFunding { // a restored MySQL cannot know that nothing was claimed
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
	err := s.inTx(ctx, failpoint.CloseBooks, func(tx tx) error {
		row, err := tx.lockPacket(id)
		if err != nil {
			return err
		}
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
	err := s.inTx(ctx, failpoint.PacketFinish, func(tx tx) error {
		closed = false
		row, err := tx.lockPacket(id)
		if err != nil {
			return err
		}
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
