package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// session is stored in an encrypted cookie. Only the API processes of the installation can
// read or create one. It names a key and has the rights of that key at each request.
type session struct {
	KeyID string `json:"k"`
	Began int64  `json:"b"` // Unix time in s
	Seen  int64  `json:"s"` // Unix time in s
	CSRF  string `json:"c"` // CSRF token of every write
}

// id identifies a session; renewing the cookie does not change it. It is a hash, so a leaked
// id cannot be used as a cookie.
func (s session) id() []byte {
	sum := sha256.Sum256([]byte("hongbao sign-in\x00" + s.KeyID + "\x00" + s.CSRF))
	return sum[:]
}

// clockSlack is how long an ended session is remembered after its cookie has expired, because
// the clocks of processes differ.
const clockSlack = time.Hour

// sessionCookie is the name of the session cookie.
const sessionCookie = "hongbao_desk"

// extendInterval is the minimum time between two renewals of a cookie.
const extendInterval = 30 * time.Second

// seal encrypts cookies with its first key and decrypts those of every key (AES-256-GCM).
type seal struct{ keys []cipher.AEAD }

// sealUse separates this key derivation and encryption from other uses of the secret.
const sealUse = "hongbao console session v1"

func newSeal(keys [][32]byte) (*seal, error) {
	if len(keys) == 0 {
		return nil, errors.New("console: a session key is required")
	}
	s := &seal{}
	for _, secret := range keys {
		key, err := hkdf.Key(sha256.New, secret[:], nil, sealUse, 32)
		if err != nil {
			return nil, fmt.Errorf("console: derive session key: %w", err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("console: session key: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("console: key of sessions: %w", err)
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

func (s *seal) encrypt(v session) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode session: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.keys[0].Seal(nil, nil, plain, []byte(sealUse))), nil
}

func (s *seal) decrypt(text string) (v session, ok bool) {
	closed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return v, false
	}
	for _, key := range s.keys {
		if plain, err := key.Open(nil, nil, closed, []byte(sealUse)); err == nil {
			return v, json.Unmarshal(plain, &v) == nil
		}
	}
	return v, false
}

// sessionOf decrypts the request's cookie; false if the cookie is missing, invalid or expired,
// or its session was ended.
func (c *Console) sessionOf(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return session{}, false
	}
	s, ok := c.seal.decrypt(cookie.Value)
	if !ok {
		return session{}, false
	}
	if c.api.SignInEnded(s.id()) {
		return session{}, false
	}
	now := c.now()
	began, seen := time.Unix(s.Began, 0), time.Unix(s.Seen, 0)
	return s, now.Sub(began) < c.absolute && now.Sub(seen) < c.idle && !seen.After(now.Add(time.Minute))
}

// startSession sets the cookie of a new session for a key and returns the cookie's value.
func (c *Console) startSession(w http.ResponseWriter, r *http.Request, keyID string) (string, error) {
	now := c.now().Unix()
	return c.setCookie(w, r, session{KeyID: keyID, Began: now, Seen: now, CSRF: rand.Text()})
}

// extendSession renews the cookie after user activity.
func (c *Console) extendSession(w http.ResponseWriter, r *http.Request, s session) {
	now := c.now()
	if now.Sub(time.Unix(s.Seen, 0)) < min(extendInterval, c.idle/4) {
		return
	}
	s.Seen = now.Unix()
	_, _ = c.setCookie(w, r, s) // on error the old cookie expires a little earlier
}

func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, s session) (text string, err error) {
	if text, err = c.seal.encrypt(s); err == nil {
		http.SetCookie(w, cookie(r, sessionCookie, text, 0))
	}
	return text, err
}

// clearSession deletes the cookie.
func (c *Console) clearSession(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(r, sessionCookie, "", -1))
}

// forwardedTLS reports whether the browser reached the first proxy over TLS.
func forwardedTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return strings.EqualFold(strings.TrimSpace(first), "https")
}

// cookie returns a cookie that is HttpOnly and SameSite=Strict. maxAge is in seconds: 0 makes
// it a session cookie of the browser, a negative value deletes it.
func cookie(r *http.Request, name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || forwardedTLS(r)}
}
