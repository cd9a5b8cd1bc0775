// Package access knows who may call the platform: apps, staff and their API
// keys. It is pure; storing keys is the store's business.
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

// Role of a key.
type Role string

// The roles.
const (
	RoleApp     Role = "app"     // its own packets, public listener
	RoleFinance Role = "finance" // staff read and write
	RoleOps     Role = "ops"     // staff read, provider hold, recall of packets
	RoleAuditor Role = "auditor" // staff read, audit
	RoleAdmin   Role = "admin"   // staff read, keys; decides nothing about money
)

// Roles are all roles.
var Roles = []Role{RoleApp, RoleFinance, RoleOps, RoleAuditor, RoleAdmin}

// Staff reports whether the role belongs to people of the platform.
func (r Role) Staff() bool { return r != RoleApp && slices.Contains(Roles, r) }

// App is a backend that creates packets. Salt is made once and never changes:
// every packet id derives from it (rule R1).
type App struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Salt []byte `json:"salt"`
}

// Key is one API key. Only the hash of its secret is known after it was shown once.
type Key struct {
	ID         string `json:"id"`
	Role       Role   `json:"role"`
	AppID      string `json:"app_id,omitempty"` // of role app
	Owner      string `json:"owner"`            // the app's name, or the staff member
	SecretHash []byte `json:"secret_hash"`
	// ExpiresAt is when it stops to work; zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Expired reports whether the key has stopped to work by itself.
func (k Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// KeyRecord is a key with its life.
type KeyRecord struct {
	Key
	Name       string // what it is for; may be empty
	CreatedAt  time.Time
	RevokedAt  time.Time // zero: it was not revoked
	LastUsedAt time.Time // to the minute; zero: not known
	ReplacedBy string    // the key that a rotation made; "": none
	MadeBy     string    // who made or rotated it; "": a command on a machine of ours
	Waiting    bool      // for a second person: it does not work yet
	ApprovedBy string    // the second person; "": none was needed, or none has agreed
}

// KeyFilter selects keys for a list, newest first. Members left at zero do not narrow it.
type KeyFilter struct {
	Role      Role
	AppID     string
	AfterTime time.Time // with AfterID: the last key of the page before
	AfterID   string
	Limit     int
}

// KeyStatus is where a key is in its life.
type KeyStatus string

// The statuses of keys.
const (
	KeyActive  KeyStatus = "active"
	KeyWaiting KeyStatus = "waiting" // for a second person
	KeyExpired KeyStatus = "expired"
	KeyRevoked KeyStatus = "revoked"
)

// KeyStatuses are all of them.
var KeyStatuses = []KeyStatus{KeyActive, KeyWaiting, KeyExpired, KeyRevoked}

// Status of the key at a time.
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

// Why a state refuses what is wanted of a key.
var (
	ErrOwnKey   = errors.New("the key of the one who asks")
	ErrLastKey  = errors.New("the last key that may administer keys")
	ErrKeyEnded = errors.New("the key was revoked, has expired or was rotated")
	// ErrActorKeyEnded: the key of the one who asks was revoked or has expired meanwhile.
	ErrActorKeyEnded = errors.New("the key of the one who asks has ended")
)

// OwnGrace is the shortest grace of the key that asks for its own rotation: with
// less, an answer that gets lost would lock its owner out.
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

// Token form: hb_<role>_<id>_<secret><checksum>. The checksum (CRC-32, 7
// base32 characters) refuses typing errors without a lookup; the prefix lets
// secret scanners find leaked keys.
const (
	prefix      = "hb"
	idLen       = 12
	secretLen   = 52 // two rand.Text of 26 characters: 260 bits
	checksumLen = 7
	alphabet    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// NewToken makes the secret token of a new key. It is shown once; store HashToken it.
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

// RoleOf returns the role a token was made for. Only what is stored of its key
// counts; this is for making that key. False: it is no token of ours.
func RoleOf(token string) (Role, bool) {
	if _, ok := ParseToken(token); !ok {
		return "", false
	}
	role := Role(strings.Split(token, "_")[1])
	return role, slices.Contains(Roles, role)
}

// HashToken returns what is stored of a token: SHA-256. The secret has 260 random
// bits, a slow hash would protect nothing.
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

// EndedSignIn is a sign-in to the console that somebody ended before its time.
type EndedSignIn struct {
	ID    []byte    `json:"id"`     // a hash of what its cookie holds: nobody can make one of it
	KeyID string    `json:"key_id"` // with which he had signed in
	Until time.Time `json:"until"`  // its cookie ends by itself before
}
