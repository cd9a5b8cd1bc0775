package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// maxKey is the longest Idempotency-Key in characters.
const maxKey = 128

// idempotencyKey returns the one Idempotency-Key header.
func (r *request) idempotencyKey() (string, error) {
	key, ok := r.single(headerIdempotencyKey)
	if !ok || !visible(key, maxKey) {
		return "", refuse(CodeKeyRequired)
	}
	return key, nil
}

// keyUnreadable reports whether the raw headers of a write have an invalid Idempotency-Key.
// The HTTP server refuses a key with a control character, but reports only that a header is
// wrong.
func keyUnreadable(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\n"))
	if bytes.HasPrefix(line, []byte("GET ")) || bytes.HasPrefix(line, []byte("HEAD ")) {
		return false
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 {
			return false // the body
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if strings.EqualFold(string(name), headerIdempotencyKey) && !visible(string(bytes.Trim(value, " \t")), maxKey) {
			return true
		}
	}
	return false
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
