package payout

import (
	"errors"
	"fmt"
	"time"

	"hongbao/internal/money"
)

// ErrUndecided means that the provider, Redis and Temporal do not show what has happened to a
// payment since the backup (rule R13). Staff have to decide.
var ErrUndecided = errors.New("not recoverable without a decision of staff")

// RecordRecovered restores an attempt that MySQL lost and the provider knows (rule R13): it was sent
// at sentAt or later. Its outcome is unknown and is queried; that the order exists proves nothing.
// A decision that was being carried out is overtaken by it. A payment that is paid under an earlier
// order number only gets this attempt, whose money was not owed (see Settle). Errors: ErrUndecided
// when the payment could not have got another number.
func RecordRecovered(p *Payment, a *Attempt, l Limits, sentAt, now time.Time) error {
	a.sentBefore(l, sentAt, now)
	path := []Status{StatusSending, StatusUnknown}
	switch {
	case p.Status == StatusPaid: // the provider carried out an earlier number after all
		return nil
	case p.Kind == KindHonour: // the decision to honour it is not in MySQL
		return fmt.Errorf("share conflict %s has order number %d: %w", p.ID, a.No, ErrUndecided)
	case p.Status == StatusPending:
	case p.Decidable(), p.Status == StatusUnknown && p.Attempt > 0:
		path = append([]Status{StatusPending}, path...)
	default:
		return fmt.Errorf("payment %s is %s and has order number %d: %w", p.ID, p.Status, a.No, ErrUndecided)
	}
	return p.unknownUnder(a, path, now)
}

// sentBefore makes an attempt one that was sent at an unknown time after sentAt.
func (a *Attempt) sentBefore(l Limits, sentAt, now time.Time) {
	a.Sends, a.StartedAt, a.QueryUntil = 1, sentAt, sentAt.Add(l.Remembers-24*time.Hour)
	a.EarlierSendsUntil = now.Add(LeaveWithin + l.LandingWindow)
	a.Next, a.NextAt = ActionQuery, now
}

// unknownUnder moves a payment along a path to unknown, under an attempt that is the current one
// from now on.
func (p *Payment) unknownUnder(a *Attempt, path []Status, now time.Time) error {
	if err := p.along(path); err != nil {
		return err
	}
	p.Attempt, p.Failure, p.OpenDecision, p.UpdatedAt = a.No, nil, "", now
	return nil
}

// RecordResent records for an order number that MySQL lists as never received that it was, or may have
// been, sent again since the backup (rule R13). The same holds when an answer in transit has already
// reported the order as in progress to the restored MySQL: nothing else reports that for a failed
// payment. The outcome is unknown and is queried. For any other number it returns false and changes
// nothing.
func RecordResent(p *Payment, a *Attempt, l Limits, now time.Time) (bool, error) {
	path := []Status{StatusPending, StatusSending, StatusUnknown}
	switch {
	case a.No != p.Attempt || a.Booked || a.Statement != ObsNeverReceived && a.Statement != ObsPending &&
		a.Statement != ObsNeedsRecipient && a.Statement != ObsNeedsPayer:
		return false, nil
	case p.Status == StatusPending:
		path = path[1:]
	case p.Status != StatusFailed:
		return false, nil
	}
	if err := p.along(path); err != nil {
		return false, err
	}
	p.Failure, p.OpenDecision, p.UpdatedAt = nil, "", now
	a.Statement, a.Forgotten, a.Consented = "", false, ""
	a.Sends++
	a.EarlierSendsUntil = now.Add(LeaveWithin + l.LandingWindow)
	a.Next, a.NextAt = ActionQuery, now
	return true, nil
}

// CancelRecovered cancels a payout for which the provider has a refund to the sender, which only a
// cancel creates (rule R13). The caller adds the ledger transfer. Errors: ErrUndecided when the
// payout was paid.
func CancelRecovered(p *Payment, now time.Time) error {
	var path []Status
	switch {
	case p.Kind != KindPayout || p.Status == StatusPaid || p.Status == StatusPaidOutside:
		return fmt.Errorf("payment %s is %s, and its money was refunded: %w", p.ID, p.Status, ErrUndecided)
	case p.Status == StatusPending:
		path = []Status{StatusSending, StatusFailed}
	case p.Status.Open():
		path = []Status{StatusFailed}
	}
	if err := p.along(append(path, StatusCancelled)); err != nil {
		return err
	}
	p.Failure, p.OpenDecision, p.DecidedAt, p.UpdatedAt = nil, "", now, now
	return nil
}

// FailRecovered fails a charge that the provider never received, or refused, and whose packet was
// rejected: the API has reported to the sender that nothing is charged (rule R13). Errors:
// ErrUndecided when it was paid.
func FailRecovered(p *Payment, f *Failure, now time.Time) error {
	path := []Status{StatusFailed}
	switch {
	case p.Kind != KindCharge || p.Status == StatusPaid:
		return fmt.Errorf("payment %s is %s, and its packet was rejected: %w", p.ID, p.Status, ErrUndecided)
	case p.Status == StatusPending:
		path = []Status{StatusSending, StatusFailed}
	}
	if err := p.along(path); err != nil {
		return err
	}
	p.Failure, p.UpdatedAt = f, now
	return nil
}

// along moves a payment several steps at once, as the table permits.
func (p *Payment) along(path []Status) error {
	for _, to := range path {
		if err := p.Move(to); err != nil {
			return err
		}
	}
	return nil
}

// KnownOrder is what MySQL has of an order number.
type KnownOrder struct {
	Booked       bool
	ReturnBooked bool
}

// UnclaimedShare is a share without a claim in MySQL.
type UnclaimedShare struct {
	Index  int
	Amount money.Fen
}
