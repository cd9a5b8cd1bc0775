package store

import (
	"context"
	"errors"
	"fmt"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// ReleaseHold releases a hold, or stores the wish of the first of two persons when money may move
// (staff.Releases.NeedSecondPerson), for a day. The second one has to be shown the same. A released hold stays as
// it is. Audited; the same key and body return the first answer. Errors: ErrNotFound,
// payout.ErrDecisionChanged when the second person would release something else than the first was
// shown, payout.ErrOneIssuer, payout.ErrRecoveryRequired, payout.ErrMySQLRestored, staff.ErrKeyReused, ErrUnavailable.
func (s *Store) ReleaseHold(ctx context.Context, w staff.Write, id int64, render staff.HoldAnswer) (staff.Answer, error) {
	return s.writeHold(ctx, w, func(tx tx) (out staff.Answer, err error) {
		p, err := tx.planRelease(w, id, true)
		if err != nil {
			return out, err
		}
		if p.Hold.ReleasedAt.IsZero() {
			if p.Hold, err = tx.release(w, p); err != nil {
				return out, err
			}
		}
		out.Status, out.Body = render(p.Hold, p.Releases)
		return out, nil
	})
}

// PreviewRelease returns what ReleaseHold would do now, also with the error that refuses it. It changes
// nothing. Errors: as ReleaseHold.
func (s *Store) PreviewRelease(ctx context.Context, w staff.Write, id int64) (staff.ReleasePlan, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return staff.ReleasePlan{}, err
	}
	p, err := tx{DB: s.read(ctx), now: now}.planRelease(w, id, false)
	return p, mysql.Classify(err)
}

func (tx tx) planRelease(w staff.Write, id int64, lock bool) (p staff.ReleasePlan, err error) {
	if p.Hold, err = tx.hold(id, lock); err != nil {
		return p, err
	}
	if err := tx.allow(payout.ActionResolve, holdNames{}); err != nil {
		return p, err
	}
	if p.Releases, err = tx.releases(p.Hold); err != nil {
		return p, err
	}
	if err := tx.releasable(p.Hold); err != nil {
		return p, err
	}
	asked := p.Hold.Release != nil && p.Hold.ReleasedAt.IsZero() && askedInTime(p.Hold.Release.At, tx.now)
	need, other := p.Releases.NeedSecondPerson(p.Hold), false
	if asked {
		switch err := tx.checkSecond(w, p.Hold.Release.By, p.Hold.Release.KeyID); {
		case err == nil:
			other = true
		case errors.Is(err, payout.ErrSelfApproval), errors.Is(err, payout.ErrOneIssuer) && !need:
		default:
			return p, err
		}
	}
	if other && string(p.Hold.Release.Shown) != string(p.Releases.Hash()) {
		return p, fmt.Errorf("hold %d: %w", id, payout.ErrDecisionChanged)
	}
	p.Asks = !other && need
	return p, nil
}

// releasable refuses to release a packet without shares whose charge the last recovery did not know.
func (tx tx) releasable(h payout.Hold) error {
	if h.Kind != payout.HoldRecovery || h.Scope != payout.HoldPacket {
		return nil
	}
	var books mysql.StateRow
	if err := tx.Where("id = 1").Limit(1).Find(&books).Error; err != nil {
		return err
	}
	var funding int64
	if err := tx.Model(&mysql.PacketRow{}).Where("id = ? AND status = ?", h.Name,
		string(packet.StatusFunding)).Count(&funding).Error; err != nil {
		return err
	}
	if funding > 0 && h.OfLeftCharge(books.AsState()) {
		return fmt.Errorf("hold %d on packet %s: %w", h.ID, h.Name, payout.ErrRecoveryRequired)
	}
	return nil
}

func (tx tx) release(w staff.Write, p staff.ReleasePlan) (payout.Hold, error) {
	h, action := p.Hold, "release"
	if p.Asks {
		action = "ask_release"
		if err := tx.Model(&mysql.HoldRow{}).Where("id = ?", h.ID).Updates(map[string]any{"release_by": w.Owner,
			"release_key_id": w.KeyID, "release_role": w.Role, "release_reason": w.Reason, "release_shown": p.Releases.Hash(),
			"release_at": tx.now}).Error; err != nil {
			return h, err
		}
	} else {
		if err := tx.endHolds(w, "id = ?", h.ID); err != nil {
			return h, err
		}
		if err := tx.wakeHeld(h); err != nil {
			return h, err
		}
	}
	after, err := tx.hold(h.ID, false)
	if err != nil {
		return h, err
	}
	return after, tx.audit(w, action, holdSubject(h), holdNote(&h), holdNote(&after))
}

// wakeHeld has the outbox start the pending payments of a released packet or payment. Those of a
// provider are woken by the worker, see ProviderState.
func (tx tx) wakeHeld(h payout.Hold) error {
	column := map[payout.HoldScope]string{payout.HoldPacket: "packet_id", payout.HoldPayment: "id"}[h.Scope]
	if column == "" {
		return nil
	}
	return tx.Exec("INSERT INTO outbox (payment_id, kind, due_at, created_at) SELECT id, ?, ?, ? FROM payments WHERE status = 'pending' AND "+
		column+" = ? ON DUPLICATE KEY UPDATE due_at = VALUES(due_at), tries = 0, reached_at = NULL", outboxBegin, tx.now, tx.now, h.Name).Error
}

// releases is what a hold's release lets go: everything of a packet that has not left, or the amount
// of a payment that is not final. A released hold lets nothing go.
func (tx tx) releases(h payout.Hold) (staff.Releases, error) {
	switch {
	case !h.ReleasedAt.IsZero():
		return nil, nil
	case h.Scope == payout.HoldPacket:
		return tx.packetReleases(h.Name)
	case h.Scope == payout.HoldPayment:
		var row mysql.PaymentRow
		if err := tx.Where("id = ?", h.Name).Limit(1).Find(&row).Error; err != nil || row.ID == "" {
			return nil, err
		}
		return staff.PaymentReleases(row.Payment()), nil
	}
	return staff.Releases{{Code: staff.ReleaseDecided}}, nil
}

// selectWaiting counts and adds up the payments of staff.HeldPacket.
const selectWaiting = `SELECT kind, COUNT(*) AS n, LEAST(SUM(amount), ?) AS fen FROM payments WHERE packet_id = ?
	AND (status IN ('pending', 'sending', 'unknown', 'awaiting_recipient', 'awaiting_payer')
		OR status IN ('failed', 'returned') AND kind IN ('p', 'r'))
	GROUP BY kind`

func (tx tx) packetReleases(packetID string) (staff.Releases, error) {
	var row mysql.PacketRow
	if err := tx.Select("id", "status").Where("id = ?", packetID).Limit(1).Find(&row).Error; err != nil || row.ID == "" {
		return nil, err
	}
	balances, err := mysql.Balances(tx.DB, packetID)
	if err != nil {
		return nil, err
	}
	var sums []struct {
		Kind   string
		N, Fen int64
	}
	if err := tx.Raw(selectWaiting, int64(money.Saturated), packetID).Scan(&sums).Error; err != nil {
		return nil, err
	}
	p := staff.HeldPacket{Balances: balances, GrabsEnded: packet.Status(row.Status) == packet.StatusClosing,
		Waiting: map[payout.Kind]staff.ReleasePart{}}
	for _, s := range sums {
		p.Waiting[payout.Kind(s.Kind[0])] = staff.ReleasePart{Count: int(s.N), Amount: money.Fen(s.Fen)}
	}
	return p.Releases(), nil
}
