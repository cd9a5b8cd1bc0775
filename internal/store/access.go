package store

import (
	"context"
	"fmt"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/failpoint"
	"hongbao/internal/store/mysql"
)

// AppsAndKeys reads every app and every usable key, including keys with an expiry time. Errors:
// ErrUnavailable.
func (s *Store) AppsAndKeys(ctx context.Context) ([]access.App, []access.Key, error) {
	var apps []appRow
	if err := s.read(ctx).Find(&apps).Error; err != nil {
		return nil, nil, mysql.Classify(err)
	}
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, nil, err
	}
	var keys []keyRow
	err = s.read(ctx).Where("NOT waiting AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)", now).Find(&keys).Error
	if err != nil {
		return nil, nil, mysql.Classify(err)
	}
	outApps := make([]access.App, len(apps))
	for i, a := range apps {
		outApps[i] = access.App{ID: a.ID, Name: a.Name, Salt: a.IDSalt}
	}
	outKeys := make([]access.Key, len(keys))
	for i, k := range keys {
		outKeys[i] = k.key()
	}
	return outApps, outKeys, nil
}

// EnsureApp creates an app unless it exists. An existing app keeps its salt. Errors: ErrUnavailable.
func (s *Store) EnsureApp(ctx context.Context, a access.App) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		return tx.Exec("INSERT IGNORE INTO apps (id, name, id_salt, created_at) VALUES (?, ?, ?, ?)", a.ID, a.Name, a.Salt, tx.now).Error
	})
}

// EnsureKey creates a key unless it exists. Errors: ErrUnavailable.
func (s *Store) EnsureKey(ctx context.Context, k access.Key) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		return tx.Exec("INSERT IGNORE INTO api_keys (id, role, app_id, owner, secret_hash, created_at) VALUES (?, ?, ?, ?, ?, ?)",
			k.ID, string(k.Role), mysql.OptString(k.AppID), k.Owner, k.SecretHash, tx.now).Error
	})
}

// CreateApp creates an app. Errors: ErrConflict when the id exists (its salt is kept),
// ErrUnavailable.
func (s *Store) CreateApp(ctx context.Context, a access.App) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		err := tx.Create(&appRow{ID: a.ID, Name: a.Name, IDSalt: a.Salt, CreatedAt: tx.now}).Error
		if mysql.Duplicate(err) {
			return fmt.Errorf("app %s: %w", a.ID, ErrConflict)
		}
		return err
	})
}

// CreateKey creates a key. Errors: ErrNotFound when its app does not exist; ErrConflict when the id
// exists, revoked or not; ErrUnavailable, after which the key may exist.
func (s *Store) CreateKey(ctx context.Context, k access.Key) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if k.AppID != "" {
			if err := tx.appExists(k.AppID); err != nil {
				return err
			}
		}
		err := tx.Create(&keyRow{ID: k.ID, Role: string(k.Role), AppID: mysql.OptString(k.AppID), Owner: k.Owner, SecretHash: k.SecretHash,
			CreatedAt: tx.now}).Error
		if mysql.Duplicate(err) {
			return fmt.Errorf("key %s: %w", k.ID, ErrConflict)
		}
		return err
	})
}

// appExists returns ErrNotFound unless the app exists.
func (tx tx) appExists(id string) error {
	var apps int64
	if err := tx.Model(&appRow{}).Where("id = ?", id).Count(&apps).Error; err != nil {
		return err
	}
	if apps == 0 {
		return fmt.Errorf("app %s: %w", id, ErrNotFound)
	}
	return nil
}

type appRow struct {
	ID        string
	Name      string
	IDSalt    []byte
	CreatedAt time.Time
}

func (appRow) TableName() string { return "apps" }

// keyRow is a row of api_keys.
type keyRow struct {
	ID, Role, Owner string
	AppID           *string
	SecretHash      []byte
	Name            *string
	CreatedAt       time.Time
	ExpiresAt       *time.Time
	RevokedAt       *time.Time
	LastUsedAt      *time.Time
	MadeBy          *string
	Waiting         bool
	ApprovedBy      *string
	ReplacedBy      *string
}

func (keyRow) TableName() string { return "api_keys" }

func (r keyRow) key() access.Key {
	return access.Key{ID: r.ID, Role: access.Role(r.Role), AppID: mysql.OrEmpty(r.AppID), Owner: r.Owner, SecretHash: r.SecretHash,
		ExpiresAt: mysql.OrZero(r.ExpiresAt)}
}

func (r keyRow) record() access.KeyRecord {
	return access.KeyRecord{Key: r.key(), Name: mysql.OrEmpty(r.Name), CreatedAt: r.CreatedAt.UTC(), RevokedAt: mysql.OrZero(r.RevokedAt),
		LastUsedAt: mysql.OrZero(r.LastUsedAt), ReplacedBy: mysql.OrEmpty(r.ReplacedBy), MadeBy: mysql.OrEmpty(r.MadeBy), Waiting: r.Waiting,
		ApprovedBy: mysql.OrEmpty(r.ApprovedBy)}
}

// ListKeys reads every key, revoked ones included, oldest first. Errors: ErrUnavailable.
func (s *Store) ListKeys(ctx context.Context) ([]access.KeyRecord, error) {
	var rows []keyRow
	if err := s.read(ctx).Order("created_at, id").Find(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]access.KeyRecord, len(rows))
	for i, r := range rows {
		out[i] = r.record()
	}
	return out, nil
}

// FindKey reads one key, revoked or not. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) FindKey(ctx context.Context, id string) (access.KeyRecord, error) {
	var rows []keyRow
	if err := s.read(ctx).Where("id = ?", id).Find(&rows).Error; err != nil {
		return access.KeyRecord{}, mysql.Classify(err)
	}
	if len(rows) == 0 {
		return access.KeyRecord{}, fmt.Errorf("key %s: %w", id, ErrNotFound)
	}
	return rows[0].record(), nil
}

// RevokeKey revokes a key permanently and returns it. An earlier revocation time is kept. Errors:
// ErrNotFound, ErrUnavailable.
func (s *Store) RevokeKey(ctx context.Context, id string) (access.KeyRecord, error) {
	err := s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		return tx.Exec("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", tx.now, id).Error
	})
	if err != nil {
		return access.KeyRecord{}, err
	}
	return s.FindKey(ctx, id)
}
