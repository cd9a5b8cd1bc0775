package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"hongbao/wire"
)

// maxKey is the longest Idempotency-Key in characters.
const maxKey = 128

// idempotencyKey returns the one Idempotency-Key header.
func (r *Request) idempotencyKey() (string, error) {
	key, ok := r.single(headerIdempotencyKey)
	if !ok || !isVisible(key, maxKey) {
		return "", refuse(wire.CodeKeyRequired)
	}
	return key, nil
}

// bodyHash is the hex SHA-256 of a parsed request with defaults filled in: member order, white
// space and explicit defaults make no difference.
func bodyHash(parsed any) (string, error) {
	canonical, err := json.Marshal(parsed) // members in the order of the struct, maps sorted
	if err != nil {
		return "", fmt.Errorf("encode canonical request: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
