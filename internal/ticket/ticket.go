// Package ticket verifies tickets: JWTs that an app signs for its users to let them grab a packet.
// It is the only place that reads JWTs.
package ticket

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// MaxBytes bounds a ticket. One with ids of full length has about 400 bytes.
	MaxBytes = 2048
	// audience is the audience of tickets. An app may sign other things with the same key, and
	// those must not be tickets.
	audience = "hongbao"
)

// Reasons to refuse a ticket.
var (
	ErrMissing      = errors.New("no ticket")
	ErrMalformed    = errors.New("not a ticket")
	ErrForged       = errors.New("not signed with an active key of the app")
	ErrWrongSubject = errors.New("for another packet, user or audience")
	ErrNoExpiry     = errors.New("has no expiry")
	ErrExpired      = errors.New("expired")
	ErrNotYetValid  = errors.New("not valid yet")
)

// claims are the evaluated members of a ticket.
type claims struct {
	PacketID string
	jwt.RegisteredClaims
}

// UnmarshalJSON reads members by their exact names, each once. The library uses encoding/json,
// which accepts "Sub" for "sub": then something that an app has signed with a user-named member
// could be a ticket.
func (c *claims) UnmarshalJSON(raw []byte) error {
	var said struct {
		Audience  jsontext.Value `json:"aud"`
		Subject   string         `json:"sub"`
		PacketID  string         `json:"packet_id"`
		Expires   *float64       `json:"exp"`
		NotBefore *float64       `json:"nbf"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return err //nolint:wrapcheck // the library's error is clear
	}
	c.PacketID, c.Subject = said.PacketID, said.Subject
	switch said.Audience.Kind() {
	case '"':
		c.Audience = make(jwt.ClaimStrings, 1)
		if err := json.Unmarshal(said.Audience, &c.Audience[0]); err != nil {
			return err //nolint:wrapcheck // as above
		}
	case '[':
		if err := json.Unmarshal(said.Audience, (*[]string)(&c.Audience)); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}
	var err error
	if c.ExpiresAt, err = moment(said.Expires); err != nil {
		return err
	}
	c.NotBefore, err = moment(said.NotBefore)
	return err
}

// lastSecond is the end of the year 9999.
const lastSecond = 253402300799

// moment is a time in seconds since 1970, without fractions; nil: none.
func moment(seconds *float64) (*jwt.NumericDate, error) {
	if seconds == nil {
		return nil, nil //nolint:nilnil // absent, which is no error
	}
	if *seconds < 0 || *seconds > lastSecond {
		return nil, ErrMalformed
	}
	return jwt.NewNumericDate(time.Unix(int64(*seconds), 0)), nil
}

// inAlphabet reports whether a text has only characters of a compact JWT. Decoders skip line ends,
// which would allow many texts of one ticket.
func inAlphabet(text string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// Check returns nil for a ticket that lets a user grab a packet now: a JWT signed by EdDSA with
// Ed25519, whatever its header names, with a key that find returns for its id. A ticket must
// expire. It may be used repeatedly: it opens one packet to one user, who gets at most one share.
//
// Errors: those above, the first that fits.
func Check(text, packetID, userID string, now time.Time, find func(kid string) (ed25519.PublicKey, bool)) error {
	if text == "" {
		return ErrMissing
	}
	if len(text) > MaxBytes || !inAlphabet(text) {
		return ErrMalformed
	}
	var said claims
	// The claims are checked below, in an order of our own.
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(text, &said, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical { // RFC 7515: unknown critical headers must be refused
			return nil, ErrMalformed
		}
		kid, _ := t.Header["kid"].(string)
		key, ok := find(kid)
		if !ok {
			return nil, ErrForged
		}
		return key, nil
	})
	switch {
	case errors.Is(err, ErrMalformed), errors.Is(err, jwt.ErrTokenMalformed):
		return ErrMalformed
	case err != nil:
		return fmt.Errorf("%w: %w", ErrForged, err)
	}
	ours := jwt.NewValidator(jwt.WithAudience(audience), jwt.WithSubject(userID), jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(func() time.Time { return now }))
	err = ours.Validate(&said)
	switch {
	case said.PacketID != packetID, said.Subject != userID, len(said.Audience) == 0, errors.Is(err, jwt.ErrTokenInvalidAudience):
		return ErrWrongSubject
	case said.ExpiresAt == nil:
		return ErrNoExpiry
	case errors.Is(err, jwt.ErrTokenExpired):
		return ErrExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return ErrNotYetValid
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
