package store

import (
	"fmt"

	"hongbao/internal/access"
	"hongbao/internal/payout"
)

// actor checks that the key works with which somebody writes, and keeps it from being
// revoked until commit: what an API process remembers of keys may be older. Keys of
// administrators are locked all together, in one order, since what they write may lock them
// too. access.ErrActorKeyEnded: the key is unknown, has ended, or is another person's.
func (tx tx) actor(w payout.StaffWrite) error {
	if w.Role == string(access.RoleAdmin) {
		_, err := tx.administrators(w)
		return err
	}
	var rows []keyRow
	if err := tx.Raw(selectKeys+" WHERE id = ? LOCK IN SHARE MODE", w.KeyID).Scan(&rows).Error; err != nil {
		return err
	}
	if len(rows) == 0 || !tx.authorizes(rows[0].record(), w) {
		return fmt.Errorf("key %s: %w", w.KeyID, access.ErrActorKeyEnded)
	}
	return nil
}

// authorizes reports whether a key works and is that of a write.
func (tx tx) authorizes(k access.KeyRecord, w payout.StaffWrite) bool {
	return k.ID == w.KeyID && k.Status(tx.now) == access.KeyActive && string(k.Role) == w.Role && k.Owner == w.Owner && k.Role.Staff()
}
