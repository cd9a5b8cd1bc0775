package harness

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/staff"
	"hongbao/test/wait"
)

// Owner is an app or a member of staff with a key.
type Owner struct {
	App   access.App // of the role app
	Key   access.Key
	Token string
}

// NewOwner makes a key, and an app for it when the role is app. A running API accepts the key after
// it has read the keys again.
func (s *Stack) NewOwner(t testing.TB, role access.Role) Owner {
	t.Helper()
	o := Owner{}
	o.Token, o.Key.ID = access.NewToken(role)
	o.Key.Role, o.Key.SecretHash, o.Key.Owner = role, access.HashToken(o.Token), string(role)+"-"+o.Key.ID
	if role == access.RoleApp {
		o.App = access.App{ID: "app" + o.Key.ID, Name: "shop", Salt: []byte(rand.Text())}
		o.Key.AppID = o.App.ID
		if err := s.Store.EnsureApp(t.Context(), o.App); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Store.EnsureKey(t.Context(), o.Key); err != nil {
		t.Fatal(err)
	}
	return o
}

// By returns a write with the owner of a working key; the key is made when it does not exist.
func (s *Stack) By(t testing.TB, w staff.Write) staff.Write {
	t.Helper()
	hash := sha256.Sum256([]byte(w.Role + "/" + w.Owner))
	w.KeyID = strings.ToLower(base32.StdEncoding.EncodeToString(hash[:])[:12])
	k := access.Key{ID: w.KeyID, Role: access.Role(w.Role), Owner: w.Owner, SecretHash: hash[:]}
	if err := s.Store.EnsureKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	return w
}

// NewOwners makes one owner for each role, and returns when a running API accepts their keys.
func (s *Stack) NewOwners(t testing.TB, roles ...access.Role) []Owner {
	t.Helper()
	owners := make([]Owner, len(roles))
	for i, role := range roles {
		owners[i] = s.NewOwner(t, role)
	}
	if s.Server != nil {
		for _, o := range owners {
			wait.Until(t, "the API knows the new keys", func() bool {
				id, _, err := s.Server.SignIn(t.Context(), o.Token)
				return err == nil &&
					id != ""
			})
		}
	}
	return owners
}
