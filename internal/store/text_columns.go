package store

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// What others send us has to fit its column whatever it is: a statement that the
// server refuses because of a text would be repeated for ever, and a payment
// would stay where it is because of a word.

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

// clipKey returns s for a column of n bytes, 64 at least, that identifies something. Two texts
// that differ have two keys: one that is too long keeps its beginning, without half a
// character, and ends with its SHA-256.
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

// refLen is the width of a provider's own number of an order, in bytes.
const refLen = 64

// messageLen is the width of every column of messages, in characters.
const messageLen = 255

// clipCode returns a provider's code as a column of codes holds it: what is not
// printable ASCII is replaced.
func clipCode(s string) string {
	return clip(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s), codeLen)
}
