// Package access knows who may call the platform: apps, staff and their API
// keys. It is pure; storing keys is the store's business.
package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash/crc32"
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
	RoleOps     Role = "ops"     // staff read, provider hold
	RoleAuditor Role = "auditor" // staff read, audit
)

// Staff reports whether the role belongs to people of the platform.
func (r Role) Staff() bool { return r == RoleFinance || r == RoleOps || r == RoleAuditor }

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
}

// KeyRecord is a key with its life. A zero RevokedAt means that it is in use.
type KeyRecord struct {
	Key
	CreatedAt time.Time
	RevokedAt time.Time
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

// NewToken makes the secret token of a new key. It is shown once; store HashOf it.
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
	return role, role == RoleApp || role.Staff()
}

// HashOf returns what is stored of a token: SHA-256. The secret has 260 random
// bits, a slow hash would protect nothing.
func HashOf(token string) []byte {
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
