package payout

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/money"
)

// ErrSelfApproval is returned when the author of a decision tries to approve it.
var ErrSelfApproval = errors.New("the second person must not be the author")

// ErrOneIssuer is returned when the keys of the two persons do not count as two (access.OneIssuer).
var ErrOneIssuer = errors.New("one administrator issued both keys a short time ago")

// ErrEvidenceRequired is returned for a retry without evidence of a payment that is not final, while
// the provider still answers otherwise than that it does not know the order number.
var ErrEvidenceRequired = errors.New("a retry of a payment that is not final needs evidence")

// ErrNotAuthor is returned when staff withdraw a request of another person.
var ErrNotAuthor = errors.New("only its author can withdraw a request")

// DecisionRequest is a decision of staff before it is checked.
type DecisionRequest struct {
	Kind     DecisionKind
	Evidence string // the proof of payment, or that the earlier order numbers will not pay
	// ApproveFrom is the amount in fen from which a retry needs a second person.
	ApproveFrom money.Fen
	// OrderNo and BreakID are what moved, not_moved and written_off are about. OnStatement: a line of the
	// provider's statement shows the movement. Suspended is set of written_off; nil: it is checked when it
	// is carried out.
	OrderNo     string
	BreakID     int64
	OnStatement bool
	Suspended   *Suspended
}

// Decidable reports whether the payment waits for a decision of staff.
func (p Payment) Decidable() bool { return p.Status == StatusFailed || p.Status == StatusReturned }

// cancellable reports whether the status permits a cancel. That of an open refund stops its sends,
// and takes effect when no order number has moved money.
func (p Payment) cancellable() bool { return p.Decidable() || p.Kind == KindRefund && p.Status.Open() }

// canEnd reports whether staff may retry a payment, or mark it as paid: a failed or returned one; one
// whose outcome is open after the provider's memory of its order number has ended. Money that moved
// under one of its numbers, and was not returned, forbids a retry (rule R5).
func canEnd(p Payment, attempts []Attempt, kind DecisionKind, now time.Time) bool {
	paid := anyPaid(attempts)
	switch {
	case p.Kind == KindCharge, kind == DecisionRetry && paid:
		return false
	case p.Decidable(), kind == DecisionMarkPaid && p.Status == StatusUnknown && paid:
		return true
	case !p.Status.Open(), p.Status == StatusPending, kind == DecisionRetry && slices.ContainsFunc(attempts, Attempt.reportedPaid):
		return false
	}
	return memoryEnded(attempts, now)
}

// anyPaid reports whether the recipient has the money under one of the numbers, or the provider says so.
func anyPaid(attempts []Attempt) bool {
	return slices.ContainsFunc(attempts, func(a Attempt) bool { return a.fate().paid() })
}

// CheckDecision checks that the state permits a decision: retry and mark-paid as canEnd; cancel of a
// failed or returned payout, and of a refund that its sender must not get, unless money has moved; a query
// of any sent payment. Charges take no other decision. Errors: ErrNotRetryable; ErrDecisionPending while a cancel is being carried out.
func CheckDecision(p Payment, attempts []Attempt, kind DecisionKind, now time.Time) error {
	ok := false
	switch kind {
	case DecisionQuery:
		ok = len(attempts) > 0
	case DecisionRetry, DecisionMarkPaid:
		ok = canEnd(p, attempts, kind, now)
	case DecisionNotMoved:
		ok = canDeny(p, attempts, now)
	case DecisionCancel:
		ok = p.cancellable() && !anyPaid(attempts) && (p.Kind == KindPayout || p.Kind == KindHonour || p.Kind == KindRefund && p.TakenBack != "")
	}
	if !ok {
		return fmt.Errorf("payment %s is %s: %s: %w", p.ID, p.Status, kind, ErrNotRetryable)
	}
	if p.OpenDecision != "" && kind != DecisionQuery {
		return fmt.Errorf("payment %s: %w", p.ID, ErrDecisionPending)
	}
	return nil
}

// NeedsApproval reports whether a second person has to approve: always for cancel and mark-paid;
// for a retry from an amount on, for a retry that may need a new order number although the last one
// is not final, for every retry of a share conflict, which the house pays (rule R10), and for the
// first retry after a decision that requires it (Payment.NeedsSecondPerson).
func NeedsApproval(p Payment, attempts []Attempt, c DecisionRequest, now time.Time) bool {
	switch c.Kind {
	case DecisionQuery:
		return false
	case DecisionRetry:
		return p.NeedsSecondPerson || p.Kind == KindHonour || p.Amount >= c.ApproveFrom || needsConsent(p, attempts, now)
	}
	return true
}

// DecisionEffect is what a decision changes at once, beside the payment itself.
type DecisionEffect struct {
	Status    DecisionStatus // carried_out, or open while order numbers are queried
	Transfers []Transfer
	// QueryAll: a query of every order number is wanted. The attempts say so.
	QueryAll bool
	// Settlement is that of the operator's observation, when it is carried out.
	Settlement *Settlement
}

// Decide applies a decision that needs no further approval. second: two persons made it. The caller
// writes payment, attempts, transfers, decision, audit and outbox rows in one transaction. Errors:
// as CheckDecision.
func Decide(p *Payment, attempts []Attempt, kind DecisionKind, second bool, now time.Time) (DecisionEffect, error) {
	if err := CheckDecision(*p, attempts, kind, now); err != nil {
		return DecisionEffect{}, err
	}
	p.UpdatedAt = now
	if second && (kind == DecisionRetry || kind == DecisionMarkPaid || kind == DecisionCancel) {
		p.giveUp(attempts, now)
	}
	var honoured []Transfer // a share conflict is owed from the moment the house pays it
	if p.unhonoured(attempts) {
		honoured = []Transfer{NewTransfer(PostHonoured, p.ID, p.Amount)}
	}
	for i := range attempts {
		attempts[i].QueryWantedAt = now.Add(time.Microsecond) // a query of the same instant may have been put before
		attempts[i].NextAt = time.Time{}                      // at once, whatever the clock says then
	}
	switch kind {
	case DecisionQuery:
		return DecisionEffect{Status: DecisionCarriedOut, QueryAll: true}, nil
	case DecisionCancel, DecisionNotMoved:
		p.OpenDecision, p.DecidedAt = kind, now
		return DecisionEffect{Status: DecisionOpen}, nil
	case DecisionMarkPaid:
		if err := p.Move(StatusPaidOutside); err != nil {
			return DecisionEffect{}, err
		}
		p.Failure, p.DecidedAt = nil, now
		// A success under one of the numbers has to be found soon: it is a break.
		transfers := append(honoured, NewTransfer(OutsideTransfer(p.Kind), p.ID, p.Amount))
		return DecisionEffect{Status: DecisionCarriedOut, QueryAll: true, Transfers: transfers}, nil
	}
	if err := p.Move(StatusPending); err != nil {
		return DecisionEffect{}, err
	}
	p.DecidedAt, p.Failure, p.NeedsSecondPerson = now, nil, false
	p.Attempt = len(attempts) // an earlier number may have been paid and returned
	p.CloseRequestedAt, p.ClosedAt = time.Time{}, time.Time{}
	return DecisionEffect{Status: DecisionCarriedOut, Transfers: honoured}, nil
}

// nextCancelStep queries every order number before an open decision is carried out: a cancel has the
// same condition as a new number (rule R5).
func nextCancelStep(p Payment, attempts []Attempt) Step {
	var at time.Time
	for _, a := range attempts {
		if p.waitsFor(a) {
			next := a.NextAt
			if a.fate() == FateNotFound { // a send may land after that answer
				next = maxTime(next, a.sendsUntil())
			}
			return Step{Do: ActionQuery, OrderNo: a.OrderNo, At: next}
		}
		if !a.fate().refused() {
			at = maxTime(at, a.sendsUntil())
		}
	}
	return Step{Do: ActionCarryOut, At: at}
}

// waitsFor reports whether an open cancel waits for another answer about an order number.
func (p Payment) waitsFor(a Attempt) bool {
	return p.OpenDecision == DecisionCancel && !a.Forgotten && !a.fate().paid() && !a.excluded()
}

// excluded reports whether no money can move under an order number (rule R5): it was refused or returned
// for good, the provider did not know it after its last send, or two persons gave it up.
func (a Attempt) excluded() bool {
	neverReceived := a.fate() == FateNotFound && !a.Forgotten && !a.QueriedAt.Before(a.sendsUntil())
	return a.fate() == FateEnded || neverReceived || a.consented()
}

// CarryOut completes the open decision of a payment after every order number was queried:
// cancelled or failed, with its transfers; or overtaken, when money moved under one of the numbers, or the
// provider has forgotten one that may move. ok is false when it is too early, or when there is nothing to
// carry out.
func CarryOut(p *Payment, attempts []Attempt, now time.Time) (e DecisionEffect, ok bool, err error) {
	if p.OpenDecision == "" || Next(*p, attempts).Do != ActionCarryOut {
		return DecisionEffect{}, false, nil
	}
	p.UpdatedAt = now
	if p.OpenDecision == DecisionNotMoved {
		return carryOutNotMoved(p, attempts, now)
	}
	if p.Kind == KindRefund && p.TakenBack == "" {
		p.OpenDecision = ""
		return DecisionEffect{Status: DecisionOvertaken}, true, nil
	}
	for _, a := range attempts {
		if a.fate().paid() || !a.excluded() {
			p.OpenDecision = ""
			return DecisionEffect{Status: DecisionOvertaken}, true, nil
		}
		if !a.fate().refused() && a.open(now) {
			return DecisionEffect{}, false, nil
		}
	}
	if err := p.Move(StatusCancelled); err != nil {
		return DecisionEffect{}, false, err
	}
	p.OpenDecision, p.Failure = "", nil
	e = DecisionEffect{Status: DecisionCarriedOut}
	switch {
	case p.unhonoured(attempts): // voided: nothing was owed
	case p.Kind == KindRefund:
		e.Transfers = []Transfer{NewTransfer(p.TakenBack, p.ID, p.Amount)}
	case p.Kind == KindHonour: // the money was the house's, not the sender's
		e.Transfers = []Transfer{NewTransfer(PostVoided, p.ID, p.Amount)}
	default:
		e.Transfers = []Transfer{NewTransfer(PostCancel, p.ID, p.Amount)}
	}
	return e, true, nil
}

// CancelRefundID is the id of the refund that a payout has once it is cancelled.
func (p Payment) CancelRefundID() string { return ID(KindRefund, p.PacketID, p.ShareIndex+1) }

// CancelRefund returns the refund that pays a cancelled payout back to the packet's sender, with an
// order number of its own.
func CancelRefund(p Payment, sender string, now time.Time) Payment {
	return Payment{
		ID: p.CancelRefundID(), Kind: KindRefund, PacketID: p.PacketID, App: p.App, UserID: sender, ShareIndex: -1,
		Account: sender, Amount: p.Amount, Currency: p.Currency, Remark: p.Remark,
		Status: StatusPending, CreatedAt: now, UpdatedAt: now,
	}
}

// TakeBack says why the sender must not get a refund of a packet (rule R12): the provider has
// returned the charge, or the cancelled payout, whose attempts these are, has reached its recipient.
// The refund of the remainder has no payout.
func TakeBack(charge Status, cancelled []Attempt) TransferKind {
	switch {
	case charge == StatusReturned:
		return PostRefundKept
	case slices.ContainsFunc(cancelled, func(a Attempt) bool { return a.fate() == FatePaid }):
		return PostRefundDropped
	}
	return ""
}

// OutsideTransfer is the kind of ledger transfer for a payment made by other means.
func OutsideTransfer(k Kind) TransferKind {
	if k == KindRefund {
		return PostRefundPaidOutside
	}
	return PostPaidOutside
}
