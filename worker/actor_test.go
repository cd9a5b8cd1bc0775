package worker_test

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/staff"
	"hongbao/internal/store"
)

// by returns a write by the owner of an API key, which it creates if it is missing.
func by(t testing.TB, s *store.Store, w staff.Write) staff.Write {
	t.Helper()
	hash := sha256.Sum256([]byte(w.Role + "/" + w.Owner))
	w.KeyID = strings.ToLower(base32.StdEncoding.EncodeToString(hash[:])[:12])
	if err := s.EnsureKey(t.Context(), access.Key{ID: w.KeyID, Role: access.Role(w.Role), Owner: w.Owner, SecretHash: hash[:]}); err != nil {
		t.Fatal(err)
	}
	return w
}
