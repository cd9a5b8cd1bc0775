package payout

import (
	"fmt"
	"time"

	"hongbao/internal/money"
)

// FailureNotConfirmed is the code of a payout whose recipient did not confirm in time.
const FailureNotConfirmed = "confirmation_expired"

// RecipientAction is what the recipient of a payout can do so that it is paid.
type RecipientAction string

// The actions; "": nothing, the payout is under way or has ended.
const (
	RecipientConfirm        RecipientAction = "confirm"         // confirm at the provider
	RecipientFixAccount     RecipientAction = "fix_account"     // give another account, or repair this one
	RecipientVerifyIdentity RecipientAction = "verify_identity" // prove who they are at the provider
	RecipientWait           RecipientAction = "wait"            // finance decides
)

// RecipientActions lists every action.
var RecipientActions = []RecipientAction{RecipientConfirm, RecipientFixAccount, RecipientVerifyIdentity, RecipientWait}

// recipientActions lists the failures that the recipient can do something about.
var recipientActions = map[string]RecipientAction{
	"payee_declined":     RecipientFixAccount,
	"account_frozen":     RecipientFixAccount,
	"returned":           RecipientFixAccount,
	FailureNotConfirmed:  RecipientConfirm,
	"payee_unknown":      RecipientFixAccount,
	"payee_not_verified": RecipientVerifyIdentity,
	"payee_name_differs": RecipientVerifyIdentity,
}

// RecipientActionOf returns what the recipient of a payout can do. code is that of a failed or
// returned payout.
func RecipientActionOf(s Status, code string) RecipientAction {
	switch s {
	case StatusAwaitingRecipient:
		return RecipientConfirm
	case StatusFailed, StatusReturned:
		if a, ok := recipientActions[code]; ok {
			return a
		}
		return RecipientWait
	}
	return ""
}

// CheckConfirmAgain checks that a payout can be sent under another order number without staff: its recipient
// did not confirm in time, which is final (rule R5), and no decision asks for a second person. Errors:
// ErrNotRetryable, ErrDecisionPending.
func CheckConfirmAgain(p Payment, attempts []Attempt, now time.Time) error {
	c := DecisionRequest{Kind: DecisionRetry, ApproveFrom: money.Saturated}
	if p.Kind != KindPayout || p.Status != StatusFailed || p.Failure == nil || p.Failure.Code != FailureNotConfirmed ||
		NeedsApproval(p, attempts, c, now) {
		return fmt.Errorf("payment %s is %s: confirm again: %w", p.ID, p.Status, ErrNotRetryable)
	}
	return CheckDecision(p, attempts, c.Kind, now)
}

// awaitRecipient settles that the recipient has not confirmed yet. While there is no client data for it, because
// the answer to the send was lost, the same order number is sent again.
func (s *Settlement) awaitRecipient(now time.Time) error {
	a := &s.Attempt
	at := a.renewAt(now, time.Time{})
	switch {
	case len(a.SealedAction) > 0 || !at.Before(a.QueryUntil):
		a.RenewAt = time.Time{}
	case a.RenewAt.IsZero(): // queries do not put it off
		a.RenewAt = at
	}
	return s.Payment.Move(StatusAwaitingRecipient)
}
