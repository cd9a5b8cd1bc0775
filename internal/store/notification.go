package store

import (
	"context"
	"errors"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// RecordNotification stores a provider's notification once and requests a query of its order. No
// money moves (rule R12). Repeats and notifications about an unknown order, or of another provider
// or account, change nothing. Errors: ErrUnavailable.
func (s *Store) RecordNotification(ctx context.Context, by payout.Adapter, eventID, orderNo string, body []byte) error {
	run := func(tx tx) error {
		parts, perr := payout.Parse(orderNo)
		known := false
		if perr == nil && parts.Attempt > 0 {
			row, attempts, err := tx.load(parts.PaymentID, true)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			if known = err == nil && parts.Attempt <= len(attempts); known {
				p := row.Payment()
				known = by.Assign(&p) == nil
			}
		}
		res := tx.Exec("INSERT IGNORE INTO notifications (provider, event_id, order_no, known, body, received_at) VALUES (?, ?, ?, ?, ?, ?)",
			by.Provider, mysql.ClipKey(eventID, 128), mysql.ClipKey(orderNo, 64), known, body, tx.now)
		if res.Error != nil || res.RowsAffected == 0 || !known {
			return res.Error
		}
		err := tx.Model(&mysql.AttemptRow{}).Where("order_no = ?", orderNo).Updates(map[string]any{"ask_wanted_at": tx.now,
			"next_at": tx.now}).Error
		if err != nil {
			return err
		}
		return tx.putOutbox(parts.PaymentID, outboxQuery)
	}
	return s.inTx(ctx, failpoint.NotificationStore, run)
}
