package packet

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
)

// privateDomain separates the key of a packet's personal data from its other keys.
const privateDomain = "hongbao/private/v1"

// ErrSealedData means that sealed data cannot be opened: another key, another packet, or changed bytes.
var ErrSealedData = errors.New("sealed data cannot be opened")

// Seal encrypts what nobody may read in Redis, MySQL or Temporal: personal data of the sender, the request
// that holds it, and the client data with which a charge is paid. AES-256-GCM with a key of the packet and a
// random nonce in front.
func Seal(key [32]byte, packetID string, plain []byte) ([]byte, error) {
	aead, err := privateCipher(key, packetID)
	if err != nil {
		return nil, fmt.Errorf("seal data of packet %s: %w", packetID, err)
	}
	return aead.Seal(nil, nil, plain, []byte(packetID)), nil
}

// Open is the reverse of Seal. Errors: ErrSealedData.
func Open(key [32]byte, packetID string, sealed []byte) ([]byte, error) {
	aead, err := privateCipher(key, packetID)
	if err != nil {
		return nil, fmt.Errorf("open data of packet %s: %w", packetID, err)
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(packetID))
	if err != nil {
		return nil, fmt.Errorf("packet %s: %w", packetID, ErrSealedData)
	}
	return plain, nil
}

// SealText is Seal of a text, for records that hold texts only. An empty text stays empty.
func SealText(key [32]byte, packetID, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	sealed, err := Seal(key, packetID, []byte(text))
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// OpenText is the reverse of SealText. Errors: ErrSealedData.
func OpenText(key [32]byte, packetID, sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", fmt.Errorf("packet %s: %w: %w", packetID, ErrSealedData, err)
	}
	plain, err := Open(key, packetID, raw)
	return string(plain), err
}

func privateCipher(key [32]byte, packetID string) (cipher.AEAD, error) {
	own := keyed(key, privateDomain, packetID)
	block, err := aes.NewCipher(own[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Payer is what a charge's method needs of the sender. It is stored sealed.
type Payer struct {
	Payer     map[string]string `json:"payer,omitempty"`
	ReturnURL string            `json:"return_url,omitempty"`
}
