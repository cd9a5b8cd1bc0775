// Package access defines who may call the platform: apps, staff and their API keys. It is pure;
// package store keeps the keys.
package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Role is the role of a key.
type Role string

// The roles.
const (
	RoleApp     Role = "app"     // its own packets, public listener
	RoleFinance Role = "finance" // staff reads and writes
	RoleOps     Role = "ops"     // staff reads, provider holds, recalls of packets
	RoleAuditor Role = "auditor" // staff reads, audit
	RoleAdmin   Role = "admin"   // staff reads, keys; no decisions about money
)

// Roles lists all roles.
var Roles = []Role{RoleApp, RoleFinance, RoleOps, RoleAuditor, RoleAdmin}

// Staff reports whether the role is one of staff.
func (r Role) Staff() bool { return r != RoleApp && slices.Contains(Roles, r) }

// App is a backend that creates packets. Salt is made once and never changes: every packet id
// derives from it (rule R1).
type App struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Salt []byte `json:"salt"`
}

// Key is one API key. Only the hash of its secret is stored; the secret is shown once.
type Key struct {
	ID         string `json:"id"`
	Role       Role   `json:"role"`
	AppID      string `json:"app_id,omitempty"` // of role app
	Owner      string `json:"owner"`            // the app's name, or the staff member
	SecretHash []byte `json:"secret_hash"`
	// ExpiresAt is when the key stops working; zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Expired reports whether the key has expired.
func (k Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// KeyRecord is a key with its history.
type KeyRecord struct {
	Key
	Name       string // what it is for; may be empty
	CreatedAt  time.Time
	RevokedAt  time.Time // zero: it was not revoked
	LastUsedAt time.Time // to the minute; zero: unknown
	ReplacedBy string    // the key made by a rotation; "": none
	MadeBy     string    // the author of the creation or rotation; "": the local CLI
	Waiting    bool      // for a second person: the key does not work yet
	ApprovedBy string    // the second person; "": not needed, or not approved yet
}

// KeyFilter selects keys for a list, newest first. Zero members do not filter.
type KeyFilter struct {
	Role      Role
	AppID     string
	AfterTime time.Time // with AfterID: the last key of the page before
	AfterID   string
	Limit     int
}

// KeyStatus is the status of a key.
type KeyStatus string

// The statuses of keys.
const (
	KeyActive  KeyStatus = "active"
	KeyWaiting KeyStatus = "waiting" // for a second person
	KeyExpired KeyStatus = "expired"
	KeyRevoked KeyStatus = "revoked"
)

// KeyStatuses lists all of them.
var KeyStatuses = []KeyStatus{KeyActive, KeyWaiting, KeyExpired, KeyRevoked}

// Status returns the status of the key at a time.
func (k KeyRecord) Status(now time.Time) KeyStatus {
	switch {
	case !k.RevokedAt.IsZero():
		return KeyRevoked
	case k.Expired(now):
		return KeyExpired
	case k.Waiting:
		return KeyWaiting
	}
	return KeyActive
}

// Reasons to refuse an operation on a key.
var (
	ErrOwnKey   = errors.New("the caller's own key")
	ErrLastKey  = errors.New("the last key that may administer keys")
	ErrKeyEnded = errors.New("the key was revoked, has expired or was rotated")
	// ErrActorKeyEnded: the caller's own key was revoked or has expired since the request began.
	ErrActorKeyEnded = errors.New("the caller's own key was revoked or has expired")
)

// OwnGrace is the minimum grace period of a key that rotates itself: with less, a lost answer would
// lock its owner out.
const OwnGrace = time.Minute

// ValidKeyID reports whether id has the form of a key's id.
func ValidKeyID(id string) bool {
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(id) == idLen
}

// ValidAppID reports whether id can name an app: 1 to 32 characters of a-z, 0-9,
// - and _, beginning with a letter or digit.
func ValidAppID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case (c == '-' || c == '_') && i > 0:
		default:
			return false
		}
	}
	return 1 <= len(id) && len(id) <= 32
}

// ValidOwner reports whether owner can name an app or a person: 1 to 64
// characters, all of them visible.
func ValidOwner(owner string) bool {
	for _, r := range owner {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' {
			return false
		}
	}
	n := utf8.RuneCountInString(owner)
	return utf8.ValidString(owner) && 1 <= n && n <= 64 && strings.TrimSpace(owner) == owner
}

// Token form: hb_<role>_<id>_<secret><checksum>. The checksum (CRC-32, 7 base32 characters) detects
// typing errors without a lookup; the prefix lets secret scanners find leaked keys.
const (
	prefix      = "hb"
	idLen       = 12
	secretLen   = 52 // two rand.Text of 26 characters: 260 bits
	checksumLen = 7
	alphabet    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// NewToken makes the secret token of a new key. It is shown once; store HashToken of it.
func NewToken(role Role) (token, id string) {
	id = strings.ToLower(rand.Text()[:idLen])
	body := fmt.Sprintf("%s_%s_%s_%s", prefix, role, id, rand.Text()+rand.Text())
	return body + checksum(body), id
}

// ParseToken returns the key id of a token, or false when it is not one.
func ParseToken[T string | []byte](token T) (id T, ok bool) {
	underscore := []byte("_")
	name, rest, _ := bytes.Cut([]byte(token), underscore)
	_, rest, _ = bytes.Cut(rest, underscore) // the role
	found, secret, _ := bytes.Cut(rest, underscore)
	if string(name) != prefix || len(found) != idLen || len(secret) != secretLen+checksumLen || bytes.Contains(secret, underscore) {
		return id, false
	}
	cut := len(token) - checksumLen
	if sum := checksumOf([]byte(token)[:cut]); string(sum[:]) != string(token[cut:]) {
		return id, false
	}
	return T(found), true
}

// RoleOf returns the role in a token, for importing its key. For requests only the stored role
// counts. False: not a token of ours.
func RoleOf(token string) (Role, bool) {
	if _, ok := ParseToken(token); !ok {
		return "", false
	}
	role := Role(strings.Split(token, "_")[1])
	return role, slices.Contains(Roles, role)
}

// HashToken returns the stored hash of a token: SHA-256. The secret has 260 random bits, so a slow
// hash would add no protection.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// Matches compares a token with a stored hash in constant time.
func (k Key) Matches(token []byte) bool {
	sum := sha256.Sum256(token)
	return subtle.ConstantTimeCompare(sum[:], k.SecretHash) == 1
}

func checksum(s string) string {
	sum := checksumOf([]byte(s))
	return string(sum[:])
}

func checksumOf(b []byte) (out [checksumLen]byte) {
	sum := crc32.ChecksumIEEE(b)
	for i := checksumLen - 1; i >= 0; i-- {
		out[i] = alphabet[sum&31]
		sum >>= 5
	}
	return out
}

// EndedSignIn is a sign-in to the console that was ended before its expiry.
type EndedSignIn struct {
	ID    []byte    `json:"id"`     // a hash of the cookie's content, which cannot be reversed
	KeyID string    `json:"key_id"` // the API key of the sign-in
	Until time.Time `json:"until"`  // expiry of the cookie
}
