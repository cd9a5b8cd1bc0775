package worker_test

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/payout"
	"hongbao/internal/store"
)

// by is a write with a key that works, of its owner; the key is made unless it is there.
func by(t testing.TB, s *store.Store, w payout.StaffWrite) payout.StaffWrite {
	t.Helper()
	hash := sha256.Sum256([]byte(w.Role + "/" + w.Owner))
	w.KeyID = strings.ToLower(base32.StdEncoding.EncodeToString(hash[:])[:12])
	if err := s.EnsureKey(t.Context(), access.Key{ID: w.KeyID, Role: access.Role(w.Role), Owner: w.Owner, SecretHash: hash[:]}); err != nil {
		t.Fatal(err)
	}
	return w
}
