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

// session is what a sign-in has begun. It lives in a sealed cookie: every API
// process of the installation can open it, nobody else can read or make one. It
// names a key and holds no more rights than the key has at each request.
type session struct {
	KeyID string `json:"k"`
	Began int64  `json:"b"` // Unix time in s
	Seen  int64  `json:"s"` // Unix time in s
	CSRF  string `json:"c"` // what every write has to show
}

// id names a sign-in, also after its cookie was made anew. It is a hash: who reads
// it somewhere cannot make a cookie of it.
func (s session) id() []byte {
	sum := sha256.Sum256([]byte("hongbao sign-in\x00" + s.KeyID + "\x00" + s.CSRF))
	return sum[:]
}

// clockSlack is for how long an ended sign-in is remembered after its cookie has
// ended by itself: the clocks of processes differ.
const clockSlack = time.Hour

// sessionCookie is the cookie's name.
const sessionCookie = "hongbao_desk"

// extendInterval is how often a cookie is made anew while somebody is there.
const extendInterval = 30 * time.Second

// seal closes cookies with its first key and opens those of every key (AES-256-GCM).
type seal struct{ keys []cipher.AEAD }

// sealUse keeps the key, and what was sealed with it, apart from every other use.
const sealUse = "hongbao console session v1"

func newSeal(keys [][32]byte) (*seal, error) {
	if len(keys) == 0 {
		return nil, errors.New("console: a session key is required")
	}
	s := &seal{}
	for _, secret := range keys {
		key, err := hkdf.Key(sha256.New, secret[:], nil, sealUse, 32)
		if err != nil {
			return nil, fmt.Errorf("console: derive the key of sessions: %w", err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("console: key of sessions: %w", err)
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
		return "", fmt.Errorf("encode a session: %w", err)
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

// sessionOf opens the request's cookie; false: there is none, it is not ours, its
// time is over, or somebody has ended it.
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

// begin makes a session for a key that was just shown; it returns its cookie.
func (c *Console) startSession(w http.ResponseWriter, r *http.Request, keyID string) (string, error) {
	now := c.now().Unix()
	return c.setCookie(w, r, session{KeyID: keyID, Began: now, Seen: now, CSRF: rand.Text()})
}

// keep notes that somebody is there.
func (c *Console) extendSession(w http.ResponseWriter, r *http.Request, s session) {
	now := c.now()
	if now.Sub(time.Unix(s.Seen, 0)) < min(extendInterval, c.idle/4) {
		return
	}
	s.Seen = now.Unix()
	_, _ = c.setCookie(w, r, s) // without it the cookie that is there ends a little earlier
}

func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, s session) (text string, err error) {
	if text, err = c.seal.encrypt(s); err == nil {
		http.SetCookie(w, cookie(r, sessionCookie, text, 0))
	}
	return text, err
}

// forget takes the cookie away.
func (c *Console) clearSession(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(r, sessionCookie, "", -1))
}

// forwardedTLS reports whether the browser came to the first proxy by TLS.
func forwardedTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return strings.EqualFold(strings.TrimSpace(first), "https")
}

// cookie makes a cookie that scripts cannot read and that no other site can send.
// maxAge is in seconds; 0 ends it with the browser, below zero deletes it.
func cookie(r *http.Request, name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || forwardedTLS(r)}
}
