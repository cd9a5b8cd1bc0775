package packet

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Domains that separate the uses of the installation's seed key.
const (
	seedDomain  = "hongbao/seed/v1"
	sealDomain  = "hongbao/seal/v1"
	keyIDDomain = "hongbao/key-id/v1"
)

// ErrSealedSeed means that a sealed seed cannot be opened: it was sealed with another key,
// it was changed or cut off, or it belongs to another packet.
var ErrSealedSeed = errors.New("sealed seed cannot be opened")

// seedKeyIDSize is the length of the key id in front of a sealed seed, in bytes.
const seedKeyIDSize = 8

// SeedKeyID names a seed key in hex without revealing it, for errors and reports.
func SeedKeyID(key [32]byte) string { return hex.EncodeToString(seedKeyID(key)) }

func seedKeyID(key [32]byte) []byte {
	id := keyed(key, keyIDDomain, "")
	return id[:seedKeyIDSize]
}

// DeriveSeed returns the seed of a packet: HMAC-SHA256(key, seedDomain | packet
// id). Being derived, it is the same on every repeat of a create request. The
// seed decides all shares: it is a secret until the packet is closed.
func DeriveSeed(key [32]byte, packetID string) [32]byte {
	return keyed(key, seedDomain, packetID)
}

// Commitment returns the hex SHA-256 of the seed, published at creation. The revealed seed can
// later be checked against it.
func Commitment(seed [32]byte) string {
	sum := sha256.Sum256(seed[:])
	return hex.EncodeToString(sum[:])
}

// SealedSeed derives the seed of a packet and seals it. Errors: ErrConflict when the packet's
// commitment was made with another key.
func SealedSeed(key [32]byte, p Packet) ([]byte, error) {
	seed := DeriveSeed(key, p.ID)
	if Commitment(seed) != p.Commitment {
		return nil, fmt.Errorf("packet %s: its commitment was not made with HONGBAO_SEED_KEY of this process, key id %s: %w",
			p.ID, SeedKeyID(key), ErrConflict)
	}
	sealed, err := SealSeed(key, p.ID, seed)
	if err != nil {
		return nil, fmt.Errorf("seal seed of packet %s: %w", p.ID, err)
	}
	return sealed, nil
}

// SealSeed encrypts the seed for storage with AES-256-GCM, a fresh random nonce
// in front and the packet id as additional data, so that a sealed seed opens
// only for its own packet. The result has 68 bytes: key id 8, nonce 12, seed 32, tag 16.
func SealSeed(key [32]byte, packetID string, seed [32]byte) ([]byte, error) {
	aead, err := seedCipher(key, packetID)
	if err != nil {
		return nil, fmt.Errorf("seal seed of packet %s: %w", packetID, err)
	}
	return aead.Seal(seedKeyID(key), nil, seed[:], []byte(packetID)), nil
}

// OpenSeed is the reverse of SealSeed. It returns ErrSealedSeed (wrapped, with
// the packet id) when sealed was not made by SealSeed for this key and packet. The
// error names both key ids when the key is another one.
func OpenSeed(key [32]byte, packetID string, sealed []byte) ([32]byte, error) {
	var seed [32]byte
	if len(sealed) < seedKeyIDSize {
		return seed, fmt.Errorf("packet %s: %w: it is cut off", packetID, ErrSealedSeed)
	}
	sealedBy, sealed := sealed[:seedKeyIDSize], sealed[seedKeyIDSize:]
	if !bytes.Equal(sealedBy, seedKeyID(key)) {
		return seed, fmt.Errorf("packet %s: %w: it was sealed with the key of id %x, HONGBAO_SEED_KEY has key id %s",
			packetID, ErrSealedSeed, sealedBy, SeedKeyID(key))
	}
	aead, err := seedCipher(key, packetID)
	if err != nil {
		return seed, fmt.Errorf("open seed of packet %s: %w", packetID, err)
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(packetID))
	if err != nil || len(plain) != len(seed) {
		return seed, fmt.Errorf("packet %s: %w: it was changed, or is another packet's", packetID, ErrSealedSeed)
	}
	copy(seed[:], plain)
	return seed, nil
}

// seedCipher derives a separate key for every packet. So the installation key never serves two
// purposes, and random nonces cannot run out.
func seedCipher(key [32]byte, packetID string) (cipher.AEAD, error) {
	sealKey := keyed(key, sealDomain, packetID)
	block, err := aes.NewCipher(sealKey[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// keyed returns HMAC-SHA256(key, domain | packet id).
func keyed(key [32]byte, domain, packetID string) [32]byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(domain))
	mac.Write([]byte(packetID))
	return [32]byte(mac.Sum(nil))
}
