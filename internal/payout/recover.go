package payout

import (
	"errors"
	"fmt"
	"time"

	"hongbao/internal/money"
)

// ErrUndecided means that what has happened to a payment since the backup cannot be
// told from what the provider, Redis and Temporal know (rule R13). A person has to.
var ErrUndecided = errors.New("cannot be recovered without a person")

// ErrCancelLeft is an ErrUndecided about a payout: whether it was cancelled, and its sender
// has the money, cannot be told. It may be cancelled or marked as paid, not paid again.
var ErrCancelLeft = fmt.Errorf("the refund of its cancel: %w", ErrUndecided)

// NoteRecovered puts an attempt back of which the books know nothing and the
// provider does (rule R13): it was sent at sentAt or later. Its outcome is unknown
// and is asked for; nothing is believed because the number is there. A decision
// that was being carried out has been overtaken by it. Of a payment that is paid under
// an earlier number nothing changes but that it has this one too, whose money is
// nobody's (see Settle). Errors: ErrUndecided when
// the payment could not have got another number.
func NoteRecovered(p *Payment, a *Attempt, l Limits, sentAt, now time.Time) error {
	a.sentBefore(l, sentAt, now)
	path := []Status{StatusSending, StatusUnknown}
	switch {
	case p.Status == StatusPaid: // the provider carried an earlier number out after all
		return nil
	case p.Kind == KindHonour: // who had decided to honour it is not in the books
		return fmt.Errorf("promise %s has number %d: %w", p.ID, a.No, ErrUndecided)
	case p.Status == StatusPending:
	case p.decidable(), p.Status == StatusUnknown && p.Attempt > 0:
		path = append([]Status{StatusPending}, path...)
	default:
		return fmt.Errorf("payment %s is %s and has number %d: %w", p.ID, p.Status, a.No, ErrUndecided)
	}
	return p.unknownUnder(a, path, now)
}

// NoteLeft puts the next number of a pending payment down as sent at sentAt or later, when a
// recovery has left that number to people (rule R13): the provider may know it, by another
// request. Its outcome is unknown and is asked for. Errors: those of the status table.
func NoteLeft(p *Payment, a *Attempt, l Limits, sentAt, now time.Time) error {
	a.sentBefore(l, sentAt, now)
	return p.unknownUnder(a, []Status{StatusSending, StatusUnknown}, now)
}

// sentBefore makes an attempt one that was sent, nobody knows when after sentAt.
func (a *Attempt) sentBefore(l Limits, sentAt, now time.Time) {
	a.Sends, a.StartedAt, a.QueryUntil = 1, sentAt, sentAt.Add(l.Remembers-24*time.Hour)
	a.OpenUntil = now.Add(LeaveWithin + l.LandingWindow)
	a.Next, a.NextAt = ActionQuery, now
}

// unknownUnder moves a payment along a path to unknown, under an attempt that counts from
// now on.
func (p *Payment) unknownUnder(a *Attempt, path []Status, now time.Time) error {
	if err := p.along(path); err != nil {
		return err
	}
	p.Attempt, p.Failure, p.Deciding, p.NewNumberAgreed, p.UpdatedAt = a.No, nil, "", false, now
	return nil
}

// NoteResent notes of a number that the books have, and of which they know that the
// provider had never received it, that it was sent again since the backup (rule R13).
// So it was, too, when an answer that was under way has told the restored books already
// that the order is carried out: nothing else has that said of what has failed.
// Its outcome is unknown and is asked for. It reports false, and
// changes nothing, of any other number.
func NoteResent(p *Payment, a *Attempt, l Limits, now time.Time) (bool, error) {
	path := []Status{StatusPending, StatusSending, StatusUnknown}
	switch {
	case a.No != p.Attempt || a.Booked || a.Statement != ObsNeverReceived && a.Statement != ObsPending && a.Statement != ObsNeedsRecipient:
		return false, nil
	case p.Status == StatusPending:
		path = path[1:]
	case p.Status != StatusFailed:
		return false, nil
	}
	if err := p.along(path); err != nil {
		return false, err
	}
	p.Failure, p.Deciding, p.NewNumberAgreed, p.UpdatedAt = nil, "", false, now
	a.Statement, a.Forgotten = "", false
	a.Sends++
	a.OpenUntil = now.Add(LeaveWithin + l.LandingWindow)
	a.Next, a.NextAt = ActionQuery, now
	return true, nil
}

// CancelRecovered cancels a payout whose money the provider has as a refund of its
// own to the sender, which only a cancel makes (rule R13). The posting is the
// caller's. Errors: ErrUndecided when the payout was paid.
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
	p.Failure, p.Deciding, p.DecidedAt, p.UpdatedAt = nil, "", now, now
	return nil
}

// RefuseRecovered fails a charge that the provider has never received, or has refused, and
// whose packet was rejected: the sender was told that nothing is taken (rule R13). Errors:
// ErrUndecided when it was paid.
func RefuseRecovered(p *Payment, f *Failure, now time.Time) error {
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

// along moves a payment as the table allows it, several steps at once.
func (p *Payment) along(path []Status) error {
	for _, to := range path {
		if err := p.Move(to); err != nil {
			return err
		}
	}
	return nil
}

// KnownOrder is what the books have of an order number.
type KnownOrder struct {
	Booked       bool
	ReturnBooked bool
}

// UnclaimedShare is a share that nobody has claimed in the books.
type UnclaimedShare struct {
	Index  int
	Amount money.Fen
}
