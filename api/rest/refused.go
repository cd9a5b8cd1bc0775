package rest

import (
	"errors"
	"fmt"
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

const notShown = "Neither a statement line nor the provider's last answer shows that the money of this order number has moved. " +
	"A payment by other means is recorded with mark-paid."

const noOpenCancel = "No cancel is open. A decision that waits for a second person is withdrawn by the person who " +
	"decided, with POST /v1/staff/approvals/{id}/withdraw."

const oneIssuer = "One administrator issued this key and the key of the person who decided within the last 30 days, so they do not " +
	"count as two persons. A person with a key of another administrator, or an older key, has to answer."

// RefusedDecision is the refusal of a decision by the state.
func RefusedDecision(refused error) *Refusal {
	e := Refuse(wire.CodeNotRetryable)
	switch {
	case errors.Is(refused, payout.ErrNoOpenCancel):
		e.Detail = noOpenCancel
	case errors.Is(refused, payout.ErrNotShown):
		e.Detail = notShown
	case errors.Is(refused, payout.ErrNotInSuspense):
		e.Detail = "The order number has nothing in suspense: its money was not paid twice, was returned, or is written off."
	case errors.Is(refused, payout.ErrRefundFirst):
		e.Detail = "The refund of the cancelled payout waits: cancel it, or release its hold, before the money is written off."
	case errors.Is(refused, payout.ErrNoOrder):
		e.Detail = "The break is resolved, or not about an order number of a payment: it can be resolved only with the outcome none."
	case errors.Is(refused, payout.ErrDecisionPending):
		e = Refuse(wire.CodeDecisionPending)
	case errors.Is(refused, payout.ErrDecisionChanged):
		e = Refuse(wire.CodeDecisionChanged)
	}
	if by, ok := errors.AsType[*payout.HeldError](refused); ok {
		e = refuseHeld(by.Hold)
	}
	if moved := refusedMovement(refused); moved != nil {
		e = moved
	}
	return e
}

// refusedMovement is the refusal of a credit or debit by the state; nil: it was refused otherwise.
func refusedMovement(refused error) *Refusal {
	switch {
	case errors.Is(refused, payout.ErrInsufficientBalance):
		return &Refusal{Code: wire.CodeInsufficientBalance, status: http.StatusConflict,
			Detail: "The app's available balance is smaller than the debit. Nothing has moved."}
	case errors.Is(refused, payout.ErrReferenceUsed):
		return Refuse(wire.CodeReferenceUsed)
	}
	return nil
}

// RefusedByState reports whether the state of a payment refused a decision.
func RefusedByState(err error) bool {
	return errors.Is(err, payout.ErrNotRetryable) || errors.Is(err, payout.ErrDecisionPending) ||
		errors.Is(err, payout.ErrDecisionChanged) || errors.Is(err, payout.ErrHeld) && !errors.Is(err, payout.ErrMySQLRestored)
}

// refusedWrite turns an error of an operation into a refusal; missing is the refusal of an unknown id.
func refusedWrite(err error, missing *Refusal) error {
	if _, refused := errors.AsType[*Refusal](err); refused {
		return err
	}
	switch {
	case errors.Is(err, packet.ErrNotFound) && missing != nil:
		return missing
	case errors.Is(err, access.ErrActorKeyEnded):
		return RefuseKey(KeyUnknown)
	case errors.Is(err, payout.ErrEvidenceRequired):
		return InvalidField("evidence", FaultRequired, "is required: the payment is not final")
	case errors.Is(err, staff.ErrKeyReused):
		return Refuse(wire.CodeKeyReused)
	case errors.Is(err, staff.ErrInProgress):
		return &Refusal{Code: wire.CodeRequestInProgress, RetryAfter: ShortPause}
	case errors.Is(err, payout.ErrSelfApproval):
		return &Refusal{Code: wire.CodeForbidden, Detail: "The person who decided cannot approve or reject; another person has to."}
	case errors.Is(err, payout.ErrOneIssuer):
		return &Refusal{Code: wire.CodeForbidden, Detail: oneIssuer}
	case errors.Is(err, payout.ErrNotAuthor):
		return &Refusal{Code: wire.CodeForbidden, Detail: "Only the person who decided can withdraw a decision; others can reject it."}
	case errors.Is(err, payout.ErrDecisionChanged):
		return Refuse(wire.CodeDecisionChanged)
	case errors.Is(err, payout.ErrRecoveryRequired):
		return Refuse(wire.CodeRecoveryRequired)
	}
	if by, ok := errors.AsType[*payout.HeldError](err); ok && by.Hold.Kind != payout.HoldRestored {
		return refuseHeld(by.Hold)
	}
	return err
}

// refuseHeld is the refusal of a decision that a hold stops.
func refuseHeld(h payout.Hold) *Refusal {
	on := fmt.Sprintf("the %s %s", h.Scope, h.Name)
	if h.Scope == payout.HoldAll {
		on = "everything"
	}
	return &Refusal{Code: wire.CodeHeld,
		Detail: fmt.Sprintf("Hold %s%d on %s stops this: %s. Release it, then repeat the request with a "+
			"new Idempotency-Key.", HoldPrefix, h.ID, on, h.Reason)}
}
