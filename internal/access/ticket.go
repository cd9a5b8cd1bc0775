package access

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
	"time"
)

// TicketKey is a key with which an app signs tickets. Only its public half is known here: read
// access to the platform's stores does not allow making tickets.
type TicketKey struct {
	ID     string            `json:"id"` // kid in the header of its tickets
	AppID  string            `json:"app_id"`
	Public ed25519.PublicKey `json:"public"`
}

// TicketKeyRecord is a ticket key with its history.
type TicketKeyRecord struct {
	TicketKey
	Name      string // what it is for; may be empty
	CreatedAt time.Time
	RevokedAt time.Time // zero: it was not revoked
}

// Status returns the status of the key; it does not expire.
func (k TicketKeyRecord) Status() KeyStatus {
	if !k.RevokedAt.IsZero() {
		return KeyRevoked
	}
	return KeyActive
}

// TicketKeyID derives the id of a ticket key from its public half: the first 60 bits of its
// SHA-256. So a key that is added again after a restore of MySQL has the same id, and its app can
// sign as before. The id is no secret.
func TicketKeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:idLen])
}

// ErrTicketKeyTaken means that the public key was added before, by any app. A revoked one cannot be
// added again: its private half may be stolen.
var ErrTicketKeyTaken = errors.New("this public key was added before")
