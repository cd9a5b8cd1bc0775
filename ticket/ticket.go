// Package ticket judges what apps sign for their users: who may grab a packet where the
// app alone knows it. It is the only place that reads JWTs.
package ticket

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// MaxBytes bounds a ticket. One with ids of full length has about 400.
	MaxBytes = 2048
	// audience is whom tickets are for. An app may sign other things with the same key,
	// and those must not be tickets.
	audience = "hongbao"
)

// Why a ticket opens nothing.
var (
	ErrMissing   = errors.New("no ticket")
	ErrMalformed = errors.New("not a ticket")
	ErrForged    = errors.New("not signed with a key of the app that is in use")
	ErrOther     = errors.New("of another packet, user or audience")
	ErrEndless   = errors.New("has no end")
	ErrExpired   = errors.New("expired")
	ErrEarly     = errors.New("not valid yet")
)

// claims are the members of a ticket that are looked at.
type claims struct {
	PacketID string `json:"packet_id"`
	jwt.RegisteredClaims
}

// Check returns nil for a ticket that lets a user grab a packet now: a JWT of the
// one algorithm EdDSA with Ed25519, whatever it says of itself, signed with a key that
// find knows by its id. Without an end it is none. It may be shown again: it opens one
// packet to one user, who gets one share at most.
//
// Errors: those above, the first that fits.
func Check(text, packetID, userID string, now time.Time, find func(kid string) (ed25519.PublicKey, bool)) error {
	if text == "" {
		return ErrMissing
	}
	if len(text) > MaxBytes {
		return ErrMalformed
	}
	var said claims
	// What a claim has to be is judged below, in an order of our own.
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(text, &said, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical { // RFC 7515: whoever does not know it must refuse
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
	ours := jwt.NewValidator(jwt.WithAudience(audience), jwt.WithSubject(userID), jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }))
	err = ours.Validate(&said)
	switch {
	case said.PacketID != packetID, said.Subject != userID, len(said.Audience) == 0, errors.Is(err, jwt.ErrTokenInvalidAudience):
		return ErrOther
	case said.ExpiresAt == nil:
		return ErrEndless
	case errors.Is(err, jwt.ErrTokenExpired):
		return ErrExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return ErrEarly
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
