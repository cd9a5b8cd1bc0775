package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// Keys lists keys, ended ones included, newest first. Errors: ErrUnavailable.
func (s *Store) Keys(ctx context.Context, f access.KeyFilter) ([]access.KeyRecord, error) {
	q := s.read(ctx)
	if f.Role != "" {
		q = q.Where("role = ?", string(f.Role))
	}
	if f.AppID != "" {
		q = q.Where("app_id = ?", f.AppID)
	}
	if f.AfterID != "" {
		q = q.Where("created_at <= ? AND (created_at < ? OR id < ?)", f.AfterTime.UTC(), f.AfterTime.UTC(), f.AfterID)
	}
	var rows []keyRow
	if err := q.Order("created_at DESC, id DESC").Limit(f.Limit).Find(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]access.KeyRecord, len(rows))
	for i, r := range rows {
		out[i] = r.record()
	}
	return out, nil
}

// IssueKey stores a new key, with the audit entry in the same transaction. life 0 means no expiry.
// The same key and body return the first answer. Errors: ErrNotFound (its app),
// access.ErrActorKeyEnded, staff.ErrKeyReused, ErrUnavailable.
func (s *Store) IssueKey(ctx context.Context, w staff.Write, k access.KeyRecord, life time.Duration,
	render func(access.KeyRecord) (status int, body []byte)) (staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		if k.AppID != "" {
			if err := tx.appExists(k.AppID); err != nil {
				return out, err
			}
		}
		made, err := tx.addKey(w, k, life, nil)
		if err != nil {
			return out, err
		}
		out.Status, out.Body = render(made)
		return out, nil
	})
}

// addKey stores a key and audits it, with more merged into the audit entry.
func (tx tx) addKey(w staff.Write, k access.KeyRecord, life time.Duration, more map[string]any) (access.KeyRecord, error) {
	k.CreatedAt = tx.now.Truncate(time.Millisecond)
	if life > 0 {
		k.ExpiresAt = k.CreatedAt.Add(life)
	}
	k.MadeBy = w.Owner
	k.Waiting = k.NeedsApproval()
	err := tx.Create(&keyRow{ID: k.ID, Role: string(k.Role), AppID: mysql.OptString(k.AppID), Owner: k.Owner, Name: mysql.OptString(k.Name),
		SecretHash: k.SecretHash, CreatedAt: k.CreatedAt, ExpiresAt: mysql.OptTime(k.ExpiresAt), MadeBy: &k.MadeBy, Waiting: k.Waiting}).Error
	if err != nil {
		return k, err
	}
	note := keyNote(k)
	for name, value := range more {
		note[name] = value
	}
	return k, tx.audit(w, "create_key", "key/"+k.ID, map[string]any{}, note)
}

// RotateKey stores the successor of a key (same role, app, owner and name) and ends the old key
// after grace or at its own expiry. Both are audited in the same transaction. life 0 means that the
// successor has no expiry. Refusals by the state (access.ErrKeyEnded, ErrOwnKey, ErrLastKey) are
// answers and stored; render makes them. Errors: ErrNotFound, access.ErrActorKeyEnded,
// staff.ErrKeyReused, ErrUnavailable.
func (s *Store) RotateKey(ctx context.Context, w staff.Write, id string, successor access.Key, grace, life time.Duration,
	render func(old, successor access.KeyRecord, refused error) (status int, body []byte)) (staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		admins, err := tx.administrators(w)
		if err != nil {
			return out, err
		}
		old, err := tx.lockKey(id)
		if err != nil {
			return out, err
		}
		made := access.KeyRecord{Key: old.Key, Name: old.Name, MadeBy: w.Owner}
		made.ID, made.SecretHash, made.ExpiresAt = successor.ID, successor.SecretHash, time.Time{}
		status := old.Status(tx.now)
		var refused error
		switch {
		case status != access.KeyActive && status != access.KeyWaiting || old.ReplacedBy != "":
			refused = access.ErrKeyEnded
		case id == w.KeyID && grace < access.OwnGrace:
			refused = access.ErrOwnKey
		case old.Role == access.RoleAdmin && (life > 0 || made.NeedsApproval()) && !admins.remainWithout(id):
			refused = access.ErrLastKey
		}
		if refused != nil {
			out.Status, out.Body = render(old, access.KeyRecord{}, refused)
			return out, nil
		}
		if made, err = tx.addKey(w, made, life, map[string]any{"replaces": id}); err != nil {
			return out, err
		}
		before := keyNote(old)
		end := tx.now.Truncate(time.Millisecond).Add(grace)
		if old.ExpiresAt.IsZero() || end.Before(old.ExpiresAt) {
			old.ExpiresAt = end
		}
		old.ReplacedBy = made.ID
		err = tx.Model(&keyRow{}).Where("id = ?", id).Updates(map[string]any{"expires_at": old.ExpiresAt, "replaced_by": old.ReplacedBy}).Error
		if err != nil {
			return out, err
		}
		if err := tx.audit(w, "rotate_key", "key/"+id, before, keyNote(old)); err != nil {
			return out, err
		}
		out.Status, out.Body = render(old, made, nil)
		return out, nil
	})
}

// EndKey revokes a key, with the audit entry in the same transaction. A revoked key stays as it is.
// Refusals by the state (access.ErrOwnKey, ErrLastKey) are answers and stored; render makes them.
// Errors as RotateKey's.
func (s *Store) EndKey(ctx context.Context, w staff.Write, id string,
	render func(k access.KeyRecord, refused error) (status int, body []byte)) (staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		admins, err := tx.administrators(w)
		if err != nil {
			return out, err
		}
		k, err := tx.lockKey(id)
		if err != nil {
			return out, err
		}
		var refused error
		switch {
		case !k.RevokedAt.IsZero():
			out.Status, out.Body = render(k, nil)
			return out, nil
		case id == w.KeyID:
			refused = access.ErrOwnKey
		case k.Role == access.RoleAdmin && k.Status(tx.now) == access.KeyActive && !admins.remainWithout(id):
			refused = access.ErrLastKey
		}
		if refused != nil {
			out.Status, out.Body = render(k, refused)
			return out, nil
		}
		before := keyNote(k)
		k.RevokedAt = tx.now.Truncate(time.Millisecond)
		if err := tx.Model(&keyRow{}).Where("id = ?", id).Update("revoked_at", k.RevokedAt).Error; err != nil {
			return out, err
		}
		if err := tx.audit(w, "revoke_key", "key/"+id, before, keyNote(k)); err != nil {
			return out, err
		}
		out.Status, out.Body = render(k, nil)
		return out, nil
	})
}

// ApproveKey activates a key that waits for approval, with the audit entry in the same transaction.
// An active key stays as it is. The refusal access.ErrKeyEnded is an answer and stored; render makes
// it. Errors: ErrNotFound, payout.ErrSelfApproval, access.ErrActorKeyEnded, staff.ErrKeyReused,
// ErrUnavailable.
func (s *Store) ApproveKey(ctx context.Context, w staff.Write, id string,
	render func(k access.KeyRecord, refused error) (status int, body []byte)) (staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		k, err := tx.lockKey(id)
		if err != nil {
			return out, err
		}
		if access.SamePerson(k.MadeBy, w.Owner) {
			return out, payout.ErrSelfApproval
		}
		switch status := k.Status(tx.now); {
		case status == access.KeyActive:
			out.Status, out.Body = render(k, nil)
			return out, nil
		case status != access.KeyWaiting || k.ReplacedBy != "":
			out.Status, out.Body = render(k, access.ErrKeyEnded)
			return out, nil
		}
		before := keyNote(k)
		k.Waiting, k.ApprovedBy = false, w.Owner
		err = tx.Model(&keyRow{}).Where("id = ?", id).Updates(map[string]any{"waiting": false, "approved_by": k.ApprovedBy}).Error
		if err != nil {
			return out, err
		}
		if err := tx.audit(w, "approve_key", "key/"+id, before, keyNote(k)); err != nil {
			return out, err
		}
		out.Status, out.Body = render(k, nil)
		return out, nil
	})
}

// administrators are the ids of the active administrator keys without expiry.
type administrators []string

// remainWithout reports whether one remains when a key ends.
func (a administrators) remainWithout(id string) bool {
	return slices.ContainsFunc(a, func(other string) bool { return other != id })
}

// administrators locks every administrator key until commit. So two of them cannot revoke each other
// concurrently, and a revoked key that some API process has cached cannot create another.
// access.ErrActorKeyEnded: the write's key is not an active administrator key.
func (tx tx) administrators(w staff.Write) (administrators, error) {
	var rows []keyRow
	if err := tx.Raw("SELECT * FROM api_keys WHERE role = ? ORDER BY id FOR UPDATE", string(access.RoleAdmin)).Scan(&rows).Error; err != nil {
		return nil, err
	}
	var lasting administrators
	authorized := false
	for _, r := range rows {
		k := r.record()
		if k.Status(tx.now) != access.KeyActive {
			continue
		}
		authorized = authorized || tx.authorizes(k, w)
		if k.ExpiresAt.IsZero() {
			lasting = append(lasting, k.ID)
		}
	}
	if !authorized {
		return nil, fmt.Errorf("key %s: %w", w.KeyID, access.ErrActorKeyEnded)
	}
	return lasting, nil
}

func (tx tx) lockKey(id string) (access.KeyRecord, error) {
	var rows []keyRow
	if err := tx.Raw("SELECT * FROM api_keys WHERE id = ? FOR UPDATE", id).Scan(&rows).Error; err != nil {
		return access.KeyRecord{}, err
	}
	if len(rows) == 0 {
		return access.KeyRecord{}, fmt.Errorf("key %s: %w", id, ErrNotFound)
	}
	return rows[0].record(), nil
}

// keyNote is the audit's copy of a key, without the secret and its hash.
func keyNote(k access.KeyRecord) map[string]any {
	note := map[string]any{"role": k.Role, "owner": k.Owner}
	if k.Waiting {
		note["waiting"] = true
	}
	for name, value := range map[string]string{"app_id": k.AppID, "name": k.Name, "replaced_by": k.ReplacedBy, "made_by": k.MadeBy,
		"approved_by": k.ApprovedBy} {
		if value != "" {
			note[name] = value
		}
	}
	for name, at := range map[string]time.Time{"expires_at": k.ExpiresAt, "revoked_at": k.RevokedAt} {
		if !at.IsZero() {
			note[name] = at.UTC()
		}
	}
	return note
}

// RecordKeyUse stores when keys were last used. Errors: ErrUnavailable.
func (s *Store) RecordKeyUse(ctx context.Context, used map[string]time.Time) error {
	for id, at := range used {
		at = at.UTC()
		// One transaction each: it never waits for a lock while holding another.
		err := s.inTx(ctx, failpoint.Administration, func(tx tx) error {
			return tx.Exec("UPDATE api_keys SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)", at, id, at).Error
		})
		if err != nil {
			return err
		}
	}
	return nil
}
