package payout

import (
	"errors"
	"fmt"
	"time"

	"hongbao/internal/money"
)

// FailureNotConfirmed is the code of a payout whose recipient did not confirm in time, or could not: the provider gave
// nothing to confirm with, and its order was closed.
const FailureNotConfirmed = "confirmation_expired"

// messageNothingToConfirm is the message of a payout whose order we closed.
const messageNothingToConfirm = "The provider gave the recipient nothing to confirm with, and the order was cancelled there."

const failureTransferCancelled = "transfer_cancelled"

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

// Recipient is the recipient of a payout, as its app states it.
type Recipient struct {
	Account                   string // at the provider
	SealedName, Authorization string // as in Payment
}

// Recipient returns the recipient of the next attempt.
func (p Payment) Recipient() Recipient { return Recipient{p.Account, p.SealedName, p.Authorization} }

// ErrRecipientFixed is returned once the payout was sent to its recipient, and that order number has not failed.
var ErrRecipientFixed = errors.New("the recipient can no longer be changed")

// maxAppRetries is how many order numbers a payout may have used when a corrected recipient makes it be sent again
// without staff.
const maxAppRetries = 3

// SetRecipient changes the recipient of a payout: while nothing was sent, or after its last order number failed or was
// returned. again: the recipient had to correct it, so the payout is to be retried without staff (rule R5), unless
// the retry needs a second person or the payout has failed too often. The numbers sent before keep their account.
// Errors: ErrRecipientFixed, ErrDecisionPending.
func SetRecipient(p *Payment, attempts []Attempt, to Recipient, now time.Time) (again bool, err error) {
	unsent := p.Status == StatusPending && len(attempts) == 0
	switch {
	case p.Kind != KindPayout && p.Kind != KindHonour || !unsent && !p.Decidable():
		return false, fmt.Errorf("payment %s is %s: %w", p.ID, p.Status, ErrRecipientFixed)
	case p.OpenDecision != "":
		return false, fmt.Errorf("payment %s: %w", p.ID, ErrDecisionPending)
	}
	p.Account, p.SealedName, p.Authorization, p.UpdatedAt = to.Account, to.SealedName, to.Authorization, now
	if p.Failure == nil || len(attempts) > maxAppRetries {
		return false, nil
	}
	action := RecipientActionOf(p.Status, p.Failure.Code)
	c := DecisionRequest{Kind: DecisionRetry, ApproveFrom: money.Saturated}
	return (action == RecipientFixAccount || action == RecipientVerifyIdentity) && !NeedsApproval(*p, attempts, c, now), nil
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

// sendsForAction is how many times an order may have been sent when another answer to a send lacks what the recipient
// needs: the provider will not give it.
const sendsForAction = 4

// awaitRecipient settles that the recipient has not confirmed yet. While there is no client data for it, because
// the answer to the send was lost, the same order number is sent again. When the provider does not give it, the order
// is closed there, until that has an effect: then the recipient can confirm another one (CheckConfirmAgain).
func (s *Settlement) awaitRecipient(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	at := a.renewAt(now, time.Time{})
	if p.OpenDecision == "" { // a decision does not wait a day for an answer
		a.NextAt = a.nextPersonQuery(now, o.Until)
	}
	switch {
	case p.closing():
		p.ClosedAt, a.SealedAction = time.Time{}, nil
		a.NextAt = now.Add(p.closePause(now))
	case len(a.SealedAction) > 0 || !at.Before(a.QueryUntil):
		a.RenewAt = time.Time{}
	case p.Kind == KindPayout && o.Source == SourceSend && a.Sends >= sendsForAction:
		p.CloseRequestedAt, a.RenewAt, a.NextAt = now, time.Time{}, now
	case a.RenewAt.IsZero(): // queries do not put it off
		a.RenewAt = at
	}
	return p.Move(StatusAwaitingRecipient)
}
