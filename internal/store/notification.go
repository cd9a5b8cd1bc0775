package store

import (
	"context"
	"errors"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
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
				p := row.payment()
				known = by.Assign(&p) == nil
			}
		}
		res := tx.Exec("INSERT IGNORE INTO notifications (provider, event_id, order_no, known, body, received_at) VALUES (?, ?, ?, ?, ?, ?)",
			by.Provider, clipKey(eventID, 128), clipKey(orderNo, 64), known, body, tx.now)
		if res.Error != nil || res.RowsAffected == 0 || !known {
			return res.Error
		}
		err := tx.Model(&attemptRow{}).Where("order_no = ?", orderNo).Updates(map[string]any{"ask_wanted_at": tx.now, "next_at": tx.now}).Error
		if err != nil {
			return err
		}
		return tx.putOutbox(parts.PaymentID, outboxQuery)
	}
	return s.inTx(ctx, failpoint.NotificationStore, run)
}

// InstalledAt returns when the first migration was applied. Errors: ErrUnavailable.
func (s *Store) InstalledAt(ctx context.Context) (time.Time, error) {
	var at *int64 // seconds, independent of the session's time zone
	err := s.read(ctx).Raw("SELECT UNIX_TIMESTAMP(MIN(tstamp)) FROM goose_db_version").Scan(&at).Error
	if err != nil || at == nil {
		return time.Time{}, classify(err)
	}
	return time.Unix(*at, 0).UTC(), nil
}
