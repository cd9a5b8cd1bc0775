package access

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxTicketPEM bounds what a public key of tickets is read from; openssl writes 113 bytes.
const MaxTicketPEM = 1024

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

// Errors of keys of tickets.
var (
	// ErrTicketKey: a text is not an Ed25519 public key in PEM.
	ErrTicketKey = errors.New("not one Ed25519 public key in PEM")
	// ErrTicketKeyTaken: the public key is known already, of whichever app. One that was
	// revoked never comes back: whoever has stolen its other half would come with it.
	ErrTicketKeyTaken = errors.New("this public key was added before")
)

// ParseTicketKey reads what `openssl pkey -pubout` writes. Its errors repeat nothing of
// the text, which may be a private key by mistake.
func ParseTicketKey(text string) (ed25519.PublicKey, error) {
	block, rest := pem.Decode([]byte(text))
	if len(text) > MaxTicketPEM || block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
		return nil, ErrTicketKey
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTicketKey, err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, ErrTicketKey
	}
	return public, nil
}
