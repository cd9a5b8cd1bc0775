package access

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
	"time"
)

// TicketKey is a key with which an app signs tickets. Only its public half is known
// here: nobody who reads the platform's stores can make a ticket.
type TicketKey struct {
	ID     string            `json:"id"` // kid in the header of its tickets
	AppID  string            `json:"app_id"`
	Public ed25519.PublicKey `json:"public"`
}

// TicketKeyRecord is such a key with its life.
type TicketKeyRecord struct {
	TicketKey
	Name      string // what it is for; may be empty
	CreatedAt time.Time
	RevokedAt time.Time // zero: it was not revoked
}

// Status of the key: it does not end by itself.
func (k TicketKeyRecord) Status() KeyStatus {
	if !k.RevokedAt.IsZero() {
		return KeyRevoked
	}
	return KeyActive
}

// TicketKeyID derives the id of a key of tickets from its public half: the first 60 bits of
// its SHA-256. One that is added again to restored books is the same one, so that its app
// goes on signing as before. It is no secret.
func TicketKeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:idLen])
}

// ErrTicketKeyTaken says that the public key is known already, of whichever app. One that was
// revoked never comes back: whoever has stolen its other half would come with it.
var ErrTicketKeyTaken = errors.New("this public key was added before")
