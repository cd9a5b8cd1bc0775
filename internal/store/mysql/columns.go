package mysql

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"
)

// Texts of other systems must fit their columns: a statement refused because of a text would be
// retried forever, and its payment would be stuck.

// Clip returns at most the first n characters of s, as valid UTF-8.
func Clip(s string, n int) string {
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

// ClipKey returns s for a key column of n bytes, at least 64. Distinct texts have distinct keys: a
// longer one keeps its beginning, cut at a character, and ends with its SHA-256.
func ClipKey(s string, n int) string {
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

// CodeLen is the width of every column of codes, which are ASCII.
const CodeLen = 64

// RefLen is the width of a provider's reference, in bytes.
const RefLen = 64

// MessageLen is the width of every column of messages, in characters.
const MessageLen = 255

// ClipCode returns a provider's code for a code column; characters outside printable ASCII are
// replaced.
func ClipCode(s string) string {
	return Clip(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s), CodeLen)
}

// OptTime maps the zero time to NULL.
func OptTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}

// OrZero maps NULL to the zero time.
func OrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// OptString maps the empty text to NULL.
func OptString(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// OptNumber maps 0 to NULL.
func OptNumber(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// OrEmpty maps NULL to the empty text.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
