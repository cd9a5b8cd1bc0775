package ticket

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"filippo.io/edwards25519"
)

// MaxPEM bounds the length of a public key in bytes; openssl writes 113.
const MaxPEM = 1024

// ErrKey means that a text is not an Ed25519 public key in PEM, or a key without a private half.
var ErrKey = errors.New("not one Ed25519 public key in PEM")

// ParseKey reads what `openssl pkey -pubout` writes. Its errors quote nothing of the text, which
// may be a private key by mistake.
func ParseKey(text string) (ed25519.PublicKey, error) {
	block, rest := pem.Decode([]byte(text))
	if len(text) > MaxPEM || block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
		return nil, ErrKey
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok || !hasLargeOrder(public) {
		return nil, ErrKey
	}
	return public, nil
}

// hasLargeOrder reports whether a public key can have a private half: it is a point of the curve,
// and none of the eight of small order, for which anybody can make signatures of any message (RFC
// 8032, section 8.4 has the curve's cofactor).
func hasLargeOrder(public ed25519.PublicKey) bool {
	point, err := new(edwards25519.Point).SetBytes(public)
	if err != nil {
		return false
	}
	return point.MultByCofactor(point).Equal(edwards25519.NewIdentityPoint()) == 0
}
