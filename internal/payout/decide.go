package payout

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/money"
)

// ErrSelfApproval is returned when a person approves his own decision.
var ErrSelfApproval = errors.New("the second person has to be another one")

// ErrNotAsker is returned when a person withdraws what another one has asked for.
var ErrNotAsker = errors.New("only the one who asked withdraws a request")

// Command is a person's decision, not checked yet.
type DecisionRequest struct {
	Kind     DecisionKind
	Evidence string // of mark_paid: what proves the payment
	// ApproveFrom is the amount in fen from which a retry needs a second person.
	ApproveFrom money.Fen
}

// decidable reports whether a person's decision is what the payment waits for.
func (p Payment) decidable() bool { return p.Status == StatusFailed || p.Status == StatusReturned }

// forgotten reports whether the provider no longer knows the newest number, or an earlier
// one that it had called under way and that keeps the newest from being sent.
func anyForgotten(attempts []Attempt) bool {
	return slices.ContainsFunc(attempts, func(a Attempt) bool { return a.Forgotten && (a.No == len(attempts) || a.mayMove()) })
}

// Permits reports whether the state lets a person decide so now: retry, cancel
// and mark-paid of what failed or came back; retry and mark-paid also of an
// unknown outcome once the provider no longer knows the number (rule R5), mark-paid
// also once money has moved under one of its numbers, which keeps others from being
// sent; ask of whatever was sent. Charges cannot be decided about. Errors:
// ErrNotRetryable, ErrDecisionPending while a cancel is being carried out.
func CheckDecision(p Payment, attempts []Attempt, kind DecisionKind) error {
	ok := false
	switch kind {
	case DecisionQuery:
		ok = len(attempts) > 0
	case DecisionRetry, DecisionMarkPaid:
		settled := anyForgotten(attempts) || kind == DecisionMarkPaid && slices.ContainsFunc(attempts, Attempt.recipientPaid)
		ok = p.Kind != KindCharge && (p.decidable() || p.Status == StatusUnknown && settled)
	case DecisionCancel:
		ok = (p.Kind == KindPayout || p.Kind == KindHonour) && p.decidable()
	}
	if !ok {
		return fmt.Errorf("payment %s is %s: %s: %w", p.ID, p.Status, kind, ErrNotRetryable)
	}
	if p.Deciding != "" && kind != DecisionQuery {
		return fmt.Errorf("payment %s: %w", p.ID, ErrDecisionPending)
	}
	return nil
}

// NeedsApproval reports whether a second person has to agree: to cancel and
// mark-paid always, to a retry from an amount on, to any retry that may need a
// new number although the provider no longer knows the last one, and to every
// retry of a promise that could not be booked: it is the house that pays (rule R10).
func NeedsApproval(p Payment, attempts []Attempt, c DecisionRequest, now time.Time) bool {
	switch c.Kind {
	case DecisionQuery:
		return false
	case DecisionRetry:
		return p.Kind == KindHonour || p.Amount >= c.ApproveFrom || needsAgreement(p, attempts, now)
	}
	return true
}

// needsAgreement: the newest number is not confirmed final and can neither be
// sent again nor asked about any more, or an earlier one was under way when the
// provider forgot it.
func needsAgreement(p Payment, attempts []Attempt, now time.Time) bool {
	if len(attempts) == 0 {
		return false
	}
	cur := attempts[len(attempts)-1]
	lost := func(a Attempt) bool { return a.mayMove() && !now.Before(a.QueryUntil) }
	return p.Status == StatusUnknown || !cur.refused() && !now.Before(cur.QueryUntil) || slices.ContainsFunc(attempts, lost)
}

// Effect is what a decision changes at once, beside the payment itself.
type DecisionEffect struct {
	Status    DecisionStatus // carried_out, or open while numbers are asked about
	Transfers []Transfer
	// QueryAll: every number of the payment is to be asked about.
	QueryAll bool
	// QueryFirst: every number is to be asked about before anything else; QueriedAt and
	// NextAt of the attempts were cleared for it.
	QueryFirst bool
}

// Decide applies a decision that needs no more agreement. second tells that two
// persons made it. The caller writes payment, attempts, postings, decision, audit
// and outbox rows in one transaction. Errors: as Permits.
func Decide(p *Payment, attempts []Attempt, kind DecisionKind, second bool, now time.Time) (DecisionEffect, error) {
	if err := CheckDecision(*p, attempts, kind); err != nil {
		return DecisionEffect{}, err
	}
	p.UpdatedAt = now
	var honoured []Transfer // a promise is owed from the moment on that the house pays it
	if p.unhonoured(attempts) {
		honoured = []Transfer{NewTransfer(PostHonoured, p.ID, p.Amount)}
	}
	switch kind {
	case DecisionQuery:
		return DecisionEffect{Status: DecisionCarriedOut, QueryAll: true}, nil
	case DecisionCancel:
		p.Deciding, p.DecidedAt = DecisionCancel, now
		clearAnswers(attempts)
		return DecisionEffect{Status: DecisionOpen, QueryFirst: true}, nil
	case DecisionMarkPaid:
		if err := p.Move(StatusPaidOutside); err != nil {
			return DecisionEffect{}, err
		}
		p.Failure, p.DecidedAt = nil, now
		// Should a number have succeeded after all, that is to be seen soon: a break.
		return DecisionEffect{Status: DecisionCarriedOut, QueryAll: true, Transfers: append(honoured, NewTransfer(outsideTransfer(p.Kind), p.ID, p.Amount))},
			nil
	}
	agreed := second && needsAgreement(*p, attempts, now)
	if err := p.Move(StatusPending); err != nil {
		return DecisionEffect{}, err
	}
	p.DecidedAt, p.Failure, p.NewNumberAgreed = now, nil, agreed
	p.Attempt = len(attempts) // it may have been paid under an earlier number, and come back
	clearAnswers(attempts)
	return DecisionEffect{Status: DecisionCarriedOut, Transfers: honoured, QueryFirst: true}, nil
}

// clearAnswers has every number asked about again, at once: no answer that was there
// before the decision counts as one to a question put after it, whatever time it was
// by the clock of then.
func clearAnswers(attempts []Attempt) {
	for i := range attempts {
		attempts[i].QueriedAt, attempts[i].NextAt = time.Time{}, time.Time{}
	}
}

// nextCancelStep: a cancel asks about every number before the ledger moves, the
// same as a new number would need it (rule R5).
func nextCancelStep(p Payment, attempts []Attempt) Step {
	var at time.Time
	for _, a := range attempts {
		if !a.QueriedAt.After(p.DecidedAt) || !a.queriesDone() {
			return Step{Do: ActionQuery, OrderNo: a.OrderNo, At: a.NextAt}
		}
		if !a.refused() {
			at = maxTime(at, maxTime(a.OpenUntil, a.NotedUntil))
		}
	}
	return Step{Do: ActionCarryOut, At: at}
}

// over reports whether asking on about a number would tell nothing new.
func (a Attempt) queriesDone() bool {
	if a.ReturnBooked && !a.refused() { // what came back may have gone again
		return a.recipientPaid() || a.Forgotten
	}
	return a.refused() || a.Statement == ObsNeverReceived || a.Forgotten || a.Booked
}

// holds reports whether the recipient has the money of a number: it did not come back, or
// the provider has said since that it has moved.
func (a Attempt) recipientPaid() bool {
	return a.Booked && (!a.ReturnBooked || a.Statement == ObsSucceeded)
}

// CarryOut ends the open decision of a payment once every number was asked
// about: cancelled, and the postings that go with it; or overtaken, when money
// moved under one of the numbers after all. ok is false when it is too early, or
// when there is nothing to carry out.
func CarryOut(p *Payment, attempts []Attempt, now time.Time) (e DecisionEffect, ok bool, err error) {
	if p.Deciding != DecisionCancel || Next(*p, attempts).Do != ActionCarryOut {
		return DecisionEffect{}, false, nil
	}
	p.UpdatedAt = now
	for _, a := range attempts {
		if a.recipientPaid() {
			p.Deciding = ""
			return DecisionEffect{Status: DecisionOvertaken}, true, nil
		}
		if !a.refused() && a.open(now) {
			return DecisionEffect{}, false, nil
		}
	}
	if err := p.Move(StatusCancelled); err != nil {
		return DecisionEffect{}, false, err
	}
	p.Deciding, p.Failure = "", nil
	e = DecisionEffect{Status: DecisionCarriedOut}
	switch {
	case p.unhonoured(attempts): // void: nothing was owed
	case p.Kind == KindHonour: // the money was the house's, not the sender's
		e.Transfers = []Transfer{NewTransfer(PostVoided, p.ID, p.Amount)}
	default:
		e.Transfers = []Transfer{NewTransfer(PostCancel, p.ID, p.Amount)}
	}
	return e, true, nil
}

// CancelRefund is the refund that a cancelled payout's money goes back by: its
// own order, to the packet's sender.
func CancelRefund(p Payment, sender string, now time.Time) Payment {
	return Payment{
		ID: ID(KindRefund, p.PacketID, p.ShareIndex+1), Kind: KindRefund, PacketID: p.PacketID, App: p.App, UserID: sender, ShareIndex: -1,
		Account: sender, Amount: p.Amount, Currency: p.Currency, Remark: p.Remark,
		Status: StatusPending, CreatedAt: now, UpdatedAt: now,
	}
}

// outsideTransfer is the posting of a payment made by other means.
func outsideTransfer(k Kind) TransferKind {
	if k == KindRefund {
		return PostRefundPaidOutside
	}
	return PostPaidOutside
}
