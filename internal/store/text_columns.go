package store

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// Texts of other systems must fit their columns: a statement refused because of a text would be
// retried forever, and its payment would be stuck.

// clip returns at most the first n characters of s, as valid UTF-8.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	count := 0
	for i := range s {
		if count == n {
			return s[:i]
		}
		count++
	}
	return s
}

// clipKey returns s for a key column of n bytes, at least 64. Distinct texts have distinct keys: a
// longer one keeps its beginning, cut at a character, and ends with its SHA-256.
func clipKey(s string, n int) string {
	if len(s) <= n {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	end := "#" + base64.RawURLEncoding.EncodeToString(sum[:])
	n -= len(end)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + end
}

// codeLen is the width of every column of codes, which are ASCII.
const codeLen = 64

// refLen is the width of a provider's reference, in bytes.
const refLen = 64

// messageLen is the width of every column of messages, in characters.
const messageLen = 255

// clipCode returns a provider's code for a code column; characters outside printable ASCII are
// replaced.
func clipCode(s string) string {
	return clip(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s), codeLen)
}
