package client

import (
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// SignTicket makes the ticket with which one user may grab one packet that was created
// with Tickets, until it expires: what GrabRequest.Ticket takes. key is the private half
// of a key that an administrator of the platform has added for the app, and kid its id.
// The app hands it to its own user, or keeps it; it may be shown again, and a user gets one
// share of a packet however often he shows it.
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
