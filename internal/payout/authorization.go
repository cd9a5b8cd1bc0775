package payout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// AuthorizationStatus is how far the agreement of a recipient to be paid without confirming each time is.
type AuthorizationStatus string

// The statuses.
const (
	AuthorizationNone    AuthorizationStatus = "none"    // not requested
	AuthorizationPending AuthorizationStatus = "pending" // the recipient has to accept it
	AuthorizationActive  AuthorizationStatus = "active"  // payouts with its number need no confirmation
	AuthorizationClosed  AuthorizationStatus = "closed"  // not accepted in time, or ended
)

// AuthorizationStatuses lists every status.
var AuthorizationStatuses = []AuthorizationStatus{AuthorizationNone, AuthorizationPending, AuthorizationActive, AuthorizationClosed}

// Authorization is the agreement of a recipient with a provider to be paid without confirming each time. The
// provider keeps it; its number is derived (rule R1), so nothing is stored here.
type Authorization struct {
	No     string // what payouts name
	Status AuthorizationStatus
	Reason string        // the provider's, of a closed one
	Action *ClientAction // of a pending one: what the recipient's client needs in order to accept it
}

// Authorizer is a provider that keeps such agreements (Limits.Authorizations).
type Authorizer interface {
	// Authorize requests agreement no of an account and returns it. A repeat changes nothing. shown is the name
	// of the recipient at the app, which the provider shows. Errors: ErrAuthorizationRefused; any other: not known.
	Authorize(ctx context.Context, no, account, shown string) (Authorization, error)
	// Authorization returns agreement no of an account; AuthorizationNone: the provider does not know it. Errors:
	// not known.
	Authorization(ctx context.Context, no, account string) (Authorization, error)
}

// ErrAuthorizationRefused is returned when the provider does not offer the agreement to this account.
var ErrAuthorizationRefused = errors.New("the provider refuses the agreement")

// Authorizing names the agreements of one recipient.
type Authorizing struct{ App, User, Provider, Account string }

// maxAuthorizations is how many agreements of a recipient may follow each other.
const maxAuthorizations = 16

// number is the number of the recipient's agreement n, from 1: 32 letters and digits, which no other recipient has.
func (r Authorizing) number(n int) string {
	text := strings.Join([]string{"hongbao/authorization/v1", r.App, r.User, r.Provider, r.Account, fmt.Sprint(n)}, "\x00")
	sum := sha256.Sum256([]byte(text))
	return "a" + hex.EncodeToString(sum[:])[:31]
}

// Current returns the recipient's agreement that has not ended, or else the last one that has. request: where all have
// ended, or there is none, another one is requested. Errors: as Authorizer.
func (r Authorizing) Current(ctx context.Context, at Authorizer, request bool) (Authorization, error) {
	last := Authorization{Status: AuthorizationNone}
	for n := range maxAuthorizations {
		no := r.number(n + 1)
		a, err := at.Authorization(ctx, no, r.Account)
		switch {
		case err != nil:
			return a, fmt.Errorf("authorization %s: %w", no, err)
		case a.Status == AuthorizationClosed:
			last = a
			continue
		case a.Status != AuthorizationNone:
			return a, nil
		case !request:
			return last, nil
		}
		if a, err = at.Authorize(ctx, no, r.Account, r.User); err != nil {
			return a, fmt.Errorf("authorization %s: %w", no, err)
		}
		return a, nil
	}
	return last, nil
}
