package store

import (
	"errors"
	"fmt"

	"hongbao/internal/access"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// actor checks that the key of a staff write is usable, and blocks its revocation until commit: an
// API process may have a stale copy of the key. All administrator keys are locked in one order,
// since an administrator's write may lock them too. access.ErrActorKeyEnded: the key is unknown,
// ended, or of another person.
func (tx tx) actor(w staff.Write) error {
	if w.Role == string(access.RoleAdmin) {
		_, err := tx.administrators(w)
		return err
	}
	var rows []keyRow
	if err := tx.Raw("SELECT * FROM api_keys WHERE id = ? LOCK IN SHARE MODE", w.KeyID).Scan(&rows).Error; err != nil {
		return err
	}
	if len(rows) == 0 || !tx.authorizes(rows[0].record(), w) {
		return fmt.Errorf("key %s: %w", w.KeyID, access.ErrActorKeyEnded)
	}
	return nil
}

// authorizes reports whether a key is usable and is the key of a staff write.
func (tx tx) authorizes(k access.KeyRecord, w staff.Write) bool {
	return k.ID == w.KeyID && k.Status(tx.now) == access.KeyActive && string(k.Role) == w.Role && k.Owner == w.Owner && k.Role.Staff()
}

// checkSecond checks that a staff write is that of a second person: its author and key count as
// another person than the first one with the first key. Every consent of a second person goes through
// it. Errors: payout.ErrSelfApproval, payout.ErrOneIssuer.
func (tx tx) checkSecond(w staff.Write, first, firstKey string) error {
	if access.SamePerson(first, w.Owner) {
		return payout.ErrSelfApproval
	}
	var rows []keyRow
	if err := tx.Where("id IN ?", []string{firstKey, w.KeyID}).Find(&rows).Error; err != nil {
		return err
	}
	if len(rows) == 2 && access.OneIssuer(rows[0].record(), rows[1].record(), tx.now) {
		return fmt.Errorf("keys %s and %s: %w", firstKey, w.KeyID, payout.ErrOneIssuer)
	}
	return nil
}

// checkAnswer checks who approves or rejects a decision. A rejection moves no money: it needs another person than the
// author, who withdraws instead, and any key. Errors: as checkSecond.
func (tx tx) checkAnswer(w staff.Write, d staff.Decision, agree bool) error {
	err := tx.checkSecond(w, d.By, d.KeyID)
	if !agree && errors.Is(err, payout.ErrOneIssuer) {
		return nil
	}
	return err
}
