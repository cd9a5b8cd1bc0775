package payout

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/money"
)

// ErrDecisionChanged means that a decision would no longer do what was shown when it was made. It
// stays waiting; no money has moved.
var ErrDecisionChanged = errors.New("what was decided on has changed")

// ChangedError is ErrDecisionChanged with what the decision would do now.
type ChangedError struct {
	PaymentID string
	Now       Preview
}

// Error implements error.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("payment %s: %v", e.PaymentID, ErrDecisionChanged)
}

// Is reports that a ChangedError is ErrDecisionChanged.
func (e *ChangedError) Is(target error) bool { return target == ErrDecisionChanged }

// Preview is what a decision would do, and on what state.
type Preview struct {
	Amount money.Fen
	Status Status
	// FailureCode is that of a failed or returned payment.
	FailureCode  string
	AttemptCount int
	// NeedsApproval: a second person has to approve first.
	NeedsApproval bool
	// OrderNo is the order number that would be sent if the queries confirm the known state; "":
	// nothing can be sent.
	OrderNo string
	// SameOrderNo: it is the number of the last attempt, which the provider never received.
	SameOrderNo bool
	// LastAnswer is the provider's last answer about the newest order number (see Attempt.LastAnswer);
	// "": nothing was sent.
	LastAnswer ObservationKind
	// NeedsEvidence: a retry has to have evidence.
	NeedsEvidence bool
	// Hash covers everything that a person consents to: the payment, the known state of each of its
	// order numbers, and the effect of the decision. Times and counts of calls are not part of it.
	Hash [sha256.Size]byte
}

// PreviewDecision returns what a decision would do now. Errors: as CheckDecision,
// CheckMoved and Suspended.WriteOff.
func PreviewDecision(p Payment, attempts []Attempt, c DecisionRequest, now time.Time) (Preview, error) {
	v := Preview{Amount: p.Amount, Status: p.Status, AttemptCount: len(attempts)}
	if n := len(attempts); n > 0 {
		v.LastAnswer = attempts[n-1].LastAnswer()
	}
	if p.Failure != nil {
		v.FailureCode = p.Failure.Code
	}
	var err error
	switch {
	case c.Kind == DecisionMoved:
		err = CheckMoved(p, attempts, c.OrderNo, c.OnStatement)
	case c.Kind != DecisionWrittenOff:
		err = CheckDecision(p, attempts, c.Kind, now)
	case c.Suspended != nil:
		_, err = c.Suspended.WriteOff()
	}
	if err != nil {
		return v, err
	}
	v.NeedsApproval = NeedsApproval(p, attempts, c, now)
	if c.Kind == DecisionRetry {
		v.NeedsEvidence = needsEvidence(p, attempts)
		next := len(attempts) + 1
		if n := len(attempts); n > 0 && attempts[n-1].Statement == ObsNeverReceived && now.Before(attempts[n-1].QueryUntil) {
			next, v.SameOrderNo = n, true
		}
		if next <= MaxAttempts {
			v.OrderNo = OrderNo(p.ID, next)
		}
	}
	v.Hash, err = v.hash(p, attempts, c, now)
	return v, err
}

// hash computes Preview.Hash.
func (v Preview) hash(p Payment, attempts []Attempt, c DecisionRequest, now time.Time) ([sha256.Size]byte, error) {
	type number struct {
		OrderNo                                  string
		Statement                                ObservationKind
		Refused, Booked, ReturnBooked, Forgotten bool
	}
	shown := struct {
		ID, Account, Currency, Provider, FailureCode, OrderNo string
		Kind                                                  DecisionKind
		Amount                                                money.Fen
		Status                                                Status
		TakenBack                                             TransferKind
		Same, Agreed                                          bool // Agreed: consent to a new number although an earlier one is open
		NeedsSecondPerson                                     bool
		Numbers                                               []number
	}{ID: p.ID, Account: p.Account, Currency: p.Currency, Provider: p.Provider, FailureCode: v.FailureCode, OrderNo: v.OrderNo,
		Kind: c.Kind, Amount: p.Amount, Status: p.Status, TakenBack: p.TakenBack, Same: v.SameOrderNo, Agreed: needsConsent(p, attempts, now),
		NeedsSecondPerson: p.NeedsSecondPerson}
	for _, a := range attempts {
		shown.Numbers = append(shown.Numbers, number{a.OrderNo, a.Statement, a.Refused, a.Booked, a.ReturnBooked, a.Forgotten})
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("payment %s: preview of a decision: %w", p.ID, err)
	}
	return sha256.Sum256(text), nil
}
