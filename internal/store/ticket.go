package store

import (
	"context"
	"fmt"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/failpoint"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

type ticketKeyRow struct {
	Kid       string
	AppID     string
	Name      *string
	PublicKey []byte
	CreatedAt time.Time
	RevokedAt *time.Time
}

func (ticketKeyRow) TableName() string { return "app_ticket_keys" }

func (r ticketKeyRow) record() access.TicketKeyRecord {
	return access.TicketKeyRecord{TicketKey: access.TicketKey{ID: r.Kid, AppID: r.AppID, Public: r.PublicKey}, Name: mysql.OrEmpty(r.Name),
		CreatedAt: r.CreatedAt.UTC(), RevokedAt: mysql.OrZero(r.RevokedAt)}
}

// TicketKeysInUse reads every ticket key that is not revoked, by id. Errors: ErrUnavailable.
func (s *Store) TicketKeysInUse(ctx context.Context) ([]access.TicketKey, error) {
	var rows []ticketKeyRow
	if err := s.read(ctx).Where("revoked_at IS NULL").Order("kid").Find(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	var out []access.TicketKey
	for _, r := range rows {
		out = append(out, r.record().TicketKey)
	}
	return out, nil
}

// TicketKeys lists ticket keys, revoked ones included, newest first. The filter's role is ignored.
// Errors: ErrUnavailable.
func (s *Store) TicketKeys(ctx context.Context, f access.KeyFilter) ([]access.TicketKeyRecord, error) {
	q := s.read(ctx)
	if f.AppID != "" {
		q = q.Where("app_id = ?", f.AppID)
	}
	if f.AfterID != "" {
		q = q.Where("created_at <= ? AND (created_at < ? OR kid < ?)", f.AfterTime.UTC(), f.AfterTime.UTC(), f.AfterID)
	}
	var rows []ticketKeyRow
	if err := q.Order("created_at DESC, kid DESC").Limit(f.Limit).Find(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]access.TicketKeyRecord, len(rows))
	for i, r := range rows {
		out[i] = r.record()
	}
	return out, nil
}

// AddTicketKey stores the public key with which an app signs tickets, with the audit entry in the
// same transaction. The same Idempotency-Key and body return the first answer. Errors: ErrNotFound
// (its app), access.ErrTicketKeyTaken, access.ErrActorKeyEnded, staff.ErrKeyReused, ErrUnavailable.
func (s *Store) AddTicketKey(ctx context.Context, w staff.Write, k access.TicketKeyRecord,
	render func(access.TicketKeyRecord) (status int, body []byte)) (staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		if _, err := tx.administrators(w); err != nil { // their lock serializes additions
			return out, err
		}
		if err := tx.appExists(k.AppID); err != nil {
			return out, err
		}
		var taken int64
		if err := tx.Model(&ticketKeyRow{}).Where("public_key = ?", []byte(k.Public)).Count(&taken).Error; err != nil {
			return out, err
		}
		if taken > 0 {
			return out, access.ErrTicketKeyTaken
		}
		k.CreatedAt = tx.now.Truncate(time.Millisecond)
		err = tx.Create(&ticketKeyRow{Kid: k.ID, PublicKey: k.Public, AppID: k.AppID, Name: mysql.OptString(k.Name),
			CreatedAt: k.CreatedAt}).Error
		if err != nil {
			return out, err
		}
		if err := tx.audit(w, "add_ticket_key", "ticket_key/"+k.ID, map[string]any{}, ticketKeyNote(k)); err != nil {
			return out, err
		}
		out.Status, out.Body = render(k)
		return out, nil
	})
}

// EndTicketKey revokes a ticket key permanently, with the audit entry in the same transaction. A
// revoked one stays as it is. Errors: ErrNotFound, access.ErrActorKeyEnded, staff.ErrKeyReused,
// ErrUnavailable.
func (s *Store) EndTicketKey(ctx context.Context, w staff.Write, id string,
	render func(access.TicketKeyRecord) (status int, body []byte)) (staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		if _, err := tx.administrators(w); err != nil {
			return out, err
		}
		var rows []ticketKeyRow
		if err := tx.Raw("SELECT * FROM app_ticket_keys WHERE kid = ? FOR UPDATE", id).Scan(&rows).Error; err != nil {
			return out, err
		}
		if len(rows) == 0 {
			return out, fmt.Errorf("ticket key %s: %w", id, ErrNotFound)
		}
		k := rows[0].record()
		if k.RevokedAt.IsZero() {
			before := ticketKeyNote(k)
			k.RevokedAt = tx.now.Truncate(time.Millisecond)
			if err := tx.Model(&ticketKeyRow{}).Where("kid = ?", id).Update("revoked_at", k.RevokedAt).Error; err != nil {
				return out, err
			}
			if err := tx.audit(w, "revoke_ticket_key", "ticket_key/"+id, before, ticketKeyNote(k)); err != nil {
				return out, err
			}
		}
		out.Status, out.Body = render(k)
		return out, nil
	})
}

// ticketKeyNote is the audit's copy of a ticket key: all of it is public.
func ticketKeyNote(k access.TicketKeyRecord) map[string]any {
	note := map[string]any{"app_id": k.AppID, "public_key": []byte(k.Public)}
	if k.Name != "" {
		note["name"] = k.Name
	}
	if !k.RevokedAt.IsZero() {
		note["revoked_at"] = k.RevokedAt.UTC()
	}
	return note
}
