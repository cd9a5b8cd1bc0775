package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hongbao/money"
	"hongbao/payout"
)

// approvalLife is how long a second person has to agree.
const approvalLife = 24 * time.Hour

// RetryPayment records the decision to retry a failed or returned payment: from
// approveFrom fen on it waits for a second person and nothing moves; else the
// status change, outbox row and audit entry are made in the same transaction
// (rule R5: the run then asks about every earlier number before anything is
// sent). The same key and body get the first answer again. Errors: ErrNotFound,
// payout.ErrKeyReused, ErrUnavailable.
func (s *Store) RetryPayment(ctx context.Context, w payout.StaffWrite, id string, approveFrom money.Fen, render payout.DecisionAnswer) (payout.StaffAnswer, error) {
	var out payout.StaffAnswer
	run := func(tx tx) error {
		out = payout.StaffAnswer{}
		found, err := tx.remembered(w, &out)
		if err != nil || found {
			return err
		}
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return err
		}
		before := row.payment()
		d, p, refused := tx.decideRetry(w, before, approveFrom)
		if refused != nil && !errors.Is(refused, payout.ErrNotRetryable) && !errors.Is(refused, payout.ErrDecisionPending) {
			return refused
		}
		if refused == nil {
			if err := tx.carryOut(w, row, p, d); err != nil {
				return err
			}
		}
		listed := row.listed(attempts)
		listed.Payment = p
		if refused != nil {
			out.Status, out.Body = render(nil, listed, refused)
		} else {
			out.Status, out.Body = render(&d, listed, nil)
		}
		return tx.remember(w, out)
	}
	err := s.inTx(ctx, run)
	if duplicate(err) { // the same key at the same time: the other one's answer stands
		err = s.inTx(ctx, run)
	}
	return out, err
}

func (tx tx) decideRetry(w payout.StaffWrite, p payout.Payment, approveFrom money.Fen) (payout.Decision, payout.Payment, error) {
	var waiting int64
	if err := tx.Raw("SELECT COUNT(*) FROM decisions WHERE payment_id = ? AND status = 'waiting' AND expires_at > ?", p.ID, tx.now).Scan(&waiting).Error; err != nil {
		return payout.Decision{}, p, err
	}
	if waiting > 0 {
		return payout.Decision{}, p, payout.ErrDecisionPending
	}
	moved := p
	if err := payout.Retry(&moved, tx.now); err != nil {
		return payout.Decision{}, p, err
	}
	d := payout.Decision{ID: "d" + rand.Text()[:25], PaymentID: p.ID, Kind: payout.DecisionRetry, Reason: w.Reason, By: w.Owner, Role: w.Role,
		Status: payout.DecisionCarriedOut, CreatedAt: tx.now}
	if p.Amount >= approveFrom {
		d.Status, d.ApprovalID, d.ExpiresAt = payout.DecisionWaiting, "a"+rand.Text()[:25], tx.now.Add(approvalLife)
		return d, p, nil
	}
	return d, moved, nil
}

func (tx tx) carryOut(w payout.StaffWrite, old paymentRow, p payout.Payment, d payout.Decision) error {
	var ended *time.Time
	if d.Status == payout.DecisionCarriedOut {
		ended = &tx.now
		if err := tx.casPayment(old, p); err != nil {
			return err
		}
		if err := tx.putOutbox(p.ID, outboxBegin); err != nil {
			return err
		}
	}
	err := tx.Exec(`INSERT INTO decisions (id, payment_id, kind, reason, decided_by, role, status, approval_id, expires_at, created_at, ended_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, d.ID, d.PaymentID, string(d.Kind), d.Reason, d.By, d.Role, string(d.Status),
		optString(d.ApprovalID), optTime(d.ExpiresAt), tx.now, ended).Error
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s decided by %s: %s", d.Kind, d.By, d.Reason)
	if err := tx.addEvent(p.ID, payout.Event{Source: "finance", Outcome: string(d.Status), What: what}); err != nil {
		return err
	}
	return tx.audit(w, string(d.Kind), p.ID, map[string]string{"status": old.Status}, map[string]string{"status": string(p.Status), "decision": d.ID})
}

func (tx tx) remembered(w payout.StaffWrite, out *payout.StaffAnswer) (bool, error) {
	var rows []struct {
		BodyHash string
		Status   int
		Body     []byte
	}
	err := tx.Raw("SELECT body_hash, status, body FROM staff_idempotency WHERE owner = ? AND route = ? AND idem_key = ?", w.Owner, w.Route, w.Key).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return false, err
	}
	if rows[0].BodyHash != w.BodyHash {
		return true, payout.ErrKeyReused
	}
	*out = payout.StaffAnswer{Status: rows[0].Status, Body: rows[0].Body, Replayed: true}
	return true, nil
}

func (tx tx) remember(w payout.StaffWrite, a payout.StaffAnswer) error {
	return tx.Exec("INSERT INTO staff_idempotency (owner, route, idem_key, body_hash, status, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		w.Owner, w.Route, w.Key, w.BodyHash, a.Status, a.Body, tx.now).Error
}

type auditHead struct {
	Seq  int64
	Hash []byte
}

// auditHead locks the end of the chain, which the first entry makes. It looks
// before it inserts: an INSERT IGNORE of a row that is there takes a shared
// lock, and two transactions that hold it can only deadlock over the exclusive one.
func (tx tx) auditHead() (auditHead, error) {
	var head auditHead
	const lock = "SELECT seq, hash FROM audit_head WHERE id = 1 FOR UPDATE"
	if err := tx.Raw(lock).Scan(&head).Error; err != nil || head.Hash != nil {
		return head, err
	}
	if err := tx.Exec("INSERT IGNORE INTO audit_head (id, seq, hash) VALUES (1, 0, REPEAT(CHAR(0), 32))").Error; err != nil {
		return head, err
	}
	err := tx.Raw(lock).Scan(&head).Error
	return head, err
}

// audit appends one entry to the hash chain: hash = SHA-256(previous hash,
// JSON of the entry). The head row is locked until commit.
func (tx tx) audit(w payout.StaffWrite, action, subject string, before, after any) error {
	head, err := tx.auditHead()
	if err != nil {
		return err
	}
	b, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	a, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	at := tx.now.Truncate(time.Millisecond)
	seq := head.Seq + 1
	entry, err := json.Marshal([]any{seq, at, w.Owner, w.Role, action, subject, w.Reason, string(b), string(a)})
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	sum := sha256.Sum256(append(append([]byte{}, head.Hash...), entry...))
	err = tx.Exec("INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		seq, at, w.Owner, w.Role, action, subject, w.Reason, b, a, sum[:]).Error
	if err != nil {
		return err
	}
	return tx.Exec("UPDATE audit_head SET seq = ?, hash = ? WHERE id = 1", seq, sum[:]).Error
}
