package store

import (
	"context"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
)

type providerRow struct {
	Name       string `gorm:"primaryKey"`
	HeldBy     *string
	HeldRole   *string
	Reason     *string
	HeldAt     *time.Time
	ReleasedAt *time.Time
}

func (providerRow) TableName() string { return "providers" }

func (r providerRow) state() payout.ProviderState {
	s := payout.ProviderState{Name: r.Name, ReleasedAt: orZero(r.ReleasedAt)}
	if r.HeldAt != nil {
		s.Hold = &payout.Hold{By: orEmpty(r.HeldBy), Role: orEmpty(r.HeldRole), Reason: orEmpty(r.Reason), Since: r.HeldAt.UTC()}
	}
	return s
}

// provider reads the hold of a provider; lock locks the row.
func (tx tx) provider(name string, lock bool) (payout.ProviderState, error) {
	query := "SELECT * FROM providers WHERE name = ?"
	if lock {
		query += " FOR UPDATE"
	}
	row := providerRow{Name: name}
	err := tx.Raw(query, name).Scan(&row).Error
	return row.state(), err
}

// ProviderState reads whether a provider is held. Without a row it is not. Errors: ErrUnavailable.
func (s *Store) ProviderState(ctx context.Context, name string) (payout.ProviderState, error) {
	state, err := tx{DB: s.read(ctx)}.provider(name, false)
	return state, classify(err)
}

// HoldProvider places or releases a provider's hold on sends; queries continue. State, audit entry
// and stored answer are one transaction. After its commit no send is recorded; a send recorded
// before may still leave within payout.LeaveWithin. An existing hold keeps its author; both cases
// are audited. The same key and body return the first answer. Errors: payout.ErrKeyReused,
// ErrUnavailable.
func (s *Store) HoldProvider(ctx context.Context, w payout.StaffWrite, name string, hold bool,
	render payout.ProviderAnswer) (payout.StaffAnswer, error) {
	return s.staffWrite(ctx, failpoint.ProviderHold, w, func(tx tx) (payout.StaffAnswer, error) {
		// The row exists before it is locked: two first holds must not both insert.
		if err := tx.Exec("INSERT IGNORE INTO providers (name) VALUES (?)", name).Error; err != nil {
			return payout.StaffAnswer{}, err
		}
		before, err := tx.provider(name, true)
		if err != nil {
			return payout.StaffAnswer{}, err
		}
		after, action := before, "release"
		if hold {
			action = "hold"
		}
		switch {
		case hold && before.Hold == nil:
			after.Hold = &payout.Hold{By: w.Owner, Role: w.Role, Reason: w.Reason, Since: tx.now.Truncate(time.Millisecond)}
		case !hold && before.Hold != nil:
			after.Hold, after.ReleasedAt = nil, tx.now.Truncate(time.Millisecond)
		}
		if err := tx.saveProvider(after); err != nil {
			return payout.StaffAnswer{}, err
		}
		if err := tx.audit(w, action, "provider/"+name, holdNote(before), holdNote(after)); err != nil {
			return payout.StaffAnswer{}, err
		}
		status, body := render(after)
		return payout.StaffAnswer{Status: status, Body: body}, nil
	})
}

func (tx tx) saveProvider(p payout.ProviderState) error {
	row := providerRow{Name: p.Name, ReleasedAt: optTime(p.ReleasedAt)}
	if h := p.Hold; h != nil {
		row.HeldBy, row.HeldRole, row.Reason, row.HeldAt = &h.By, &h.Role, &h.Reason, optTime(h.Since)
	}
	return tx.Exec("UPDATE providers SET held_by = ?, held_role = ?, reason = ?, held_at = ?, released_at = ? WHERE name = ?",
		row.HeldBy, row.HeldRole, row.Reason, row.HeldAt, row.ReleasedAt, row.Name).Error
}

// holdNote is the audit's copy of a provider's state.
func holdNote(p payout.ProviderState) map[string]any {
	note := map[string]any{"held": p.Hold != nil}
	if p.Hold != nil {
		note["by"], note["reason"], note["since"] = p.Hold.By, p.Hold.Reason, p.Hold.Since
	}
	return note
}

// WaitingToSend returns open payments of a provider whose next step is a send, oldest first: those
// that an ended hold deferred. Errors: ErrUnavailable.
func (s *Store) WaitingToSend(ctx context.Context, provider string, limit int) ([]payout.Payment, error) {
	var rows []paymentRow
	err := s.read(ctx).Raw(`SELECT p.* FROM payments p LEFT JOIN attempts a ON a.order_no = p.order_no
		WHERE p.kind IN ('c', 'p', 'r', 'h') AND p.status IN ('pending', 'sending', 'unknown') AND p.provider = ?
		AND (p.status = 'pending' OR a.next_action = 'send') ORDER BY p.created_at LIMIT ?`, provider, limit).Scan(&rows).Error
	out := make([]payout.Payment, len(rows))
	for i, r := range rows {
		out[i] = r.payment()
	}
	return out, classify(err)
}
