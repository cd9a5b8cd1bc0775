package client

import (
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// SignTicket returns a ticket, valid until it expires, with which one user may grab one packet
// that was created with Tickets: the value of GrabRequest.Ticket. key is the private half of a
// key that an administrator added for the app, kid its id. The app may give the ticket to its
// user; a repeated use of it returns the same share.
func SignTicket(key ed25519.PrivateKey, kid, packetID, userID string, expires time.Time) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"aud": "hongbao", "sub": userID, "packet_id": packetID,
		"exp": expires.Unix()})
	t.Header["kid"] = kid
	if len(key) != ed25519.PrivateKeySize { // the library would panic
		return "", fmt.Errorf("sign a ticket: the key has %d bytes, not %d", len(key), ed25519.PrivateKeySize)
	}
	signed, err := t.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign a ticket: %w", err)
	}
	return signed, nil
}
