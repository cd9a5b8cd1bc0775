package store

import (
	"context"
	"errors"
	"time"

	"hongbao/access"
	"hongbao/payout"
)

// NoteNotification stores a provider's notification once and asks for the order
// to be asked about: it moves nothing by itself (rule R12). A repeat, and a
// notification about an unknown order, change nothing. Errors: ErrUnavailable.
func (s *Store) NoteNotification(ctx context.Context, provider, eventID, orderNo string, body []byte) error {
	run := func(tx tx) error {
		parts, perr := payout.Parse(orderNo)
		known := false
		if perr == nil && parts.Attempt > 0 {
			row, attempts, err := tx.load(parts.PaymentID, true)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			known = err == nil && row.Provider == provider && parts.Attempt <= len(attempts)
		}
		res := tx.Exec("INSERT IGNORE INTO notifications (provider, event_id, order_no, known, body, received_at) VALUES (?, ?, ?, ?, ?, ?)",
			provider, clipBytes(eventID, 128), clipBytes(orderNo, 64), known, body, tx.now)
		if res.Error != nil || res.RowsAffected == 0 || !known {
			return res.Error
		}
		if err := tx.Exec("UPDATE attempts SET ask_requested = TRUE, next_at = ? WHERE order_no = ?", tx.now, orderNo).Error; err != nil {
			return err
		}
		return tx.putOutbox(parts.PaymentID, outboxAsk)
	}
	return s.inTx(ctx, run)
}

// Access reads every app and every key that was not revoked.
func (s *Store) Access(ctx context.Context) ([]access.App, []access.Key, error) {
	var apps []struct {
		ID, Name string
		IDSalt   []byte
	}
	if err := s.read(ctx).Raw("SELECT id, name, id_salt FROM apps").Scan(&apps).Error; err != nil {
		return nil, nil, classify(err)
	}
	var keys []struct {
		ID, Role, Owner string
		AppID           *string
		SecretHash      []byte
	}
	if err := s.read(ctx).Raw("SELECT id, role, app_id, owner, secret_hash FROM api_keys WHERE revoked_at IS NULL").Scan(&keys).Error; err != nil {
		return nil, nil, classify(err)
	}
	outApps := make([]access.App, len(apps))
	for i, a := range apps {
		outApps[i] = access.App{ID: a.ID, Name: a.Name, Salt: a.IDSalt}
	}
	outKeys := make([]access.Key, len(keys))
	for i, k := range keys {
		outKeys[i] = access.Key{ID: k.ID, Role: access.Role(k.Role), AppID: orEmpty(k.AppID), Owner: k.Owner, SecretHash: k.SecretHash}
	}
	return outApps, outKeys, nil
}

// EnsureApp creates an app unless it exists; an existing app keeps its salt for ever.
func (s *Store) EnsureApp(ctx context.Context, a access.App) error {
	return s.inTx(ctx, func(tx tx) error {
		return tx.Exec("INSERT IGNORE INTO apps (id, name, id_salt, created_at) VALUES (?, ?, ?, ?)", a.ID, a.Name, a.Salt, tx.now).Error
	})
}

// EnsureKey creates a key unless it exists.
func (s *Store) EnsureKey(ctx context.Context, k access.Key) error {
	return s.inTx(ctx, func(tx tx) error {
		return tx.Exec("INSERT IGNORE INTO api_keys (id, role, app_id, owner, secret_hash, created_at) VALUES (?, ?, ?, ?, ?, ?)",
			k.ID, string(k.Role), optString(k.AppID), k.Owner, k.SecretHash, tx.now).Error
	})
}

// Version reads the number of the newest migration that was applied.
func (s *Store) Version(ctx context.Context) (int64, error) {
	var v *int64
	err := s.read(ctx).Raw("SELECT MAX(version_id) FROM goose_db_version WHERE is_applied").Scan(&v).Error
	if err != nil || v == nil {
		return 0, classify(err)
	}
	return *v, nil
}

// Now returns the store's clock, for callers that compare with its times.
func (s *Store) Now() time.Time { return s.now().UTC() }
