package payout

import (
	"slices"
	"time"
)

// Action is what has to be done next for a payment.
type Action string

// The actions. The row names the next one, whoever reads it (rule R3).
const (
	ActionSend  Action = "send" // make or repeat a send: BeginSend, then the provider call, then Settle
	ActionQuery Action = "ask"  // ask the provider about an order number, then Settle
	ActionEnd   Action = "end"  // nothing, until a person or a notification says otherwise
	// ActionCarryOut: carry out the open decision; every number has been asked about.
	ActionCarryOut Action = "carry_out"
)

// Step is the next thing to do, and not before when.
type Step struct {
	Do      Action    `json:"do"`
	OrderNo string    `json:"order_no,omitempty"`
	At      time.Time `json:"at,omitzero"`
	// Parked says why a send that is due waits until At.
	Deferred Deferral `json:"parked,omitempty"`
}

// Pauses between repeats. They grow by doubling up to the cap and never end:
// no count of tries turns unknown into failed.
const (
	firstPause = 500 * time.Millisecond
	pauseCap   = 5 * time.Minute
)

// grown returns the n-th pause (n counts from 0): 0.5 s, 1 s, 2 s, and so on.
func backoff(n int) time.Duration { return firstPause << min(max(n, 0), 16) }

// A pause is never longer than 15 s, or a sixteenth of the time since the first
// send: after trouble of four minutes all is asked about again within 15 s, after
// an hour within four minutes, and a day costs some sixty more questions for it.
const (
	pauseShortest = 15 * time.Second
	pausePart     = 16
)

// A recipient takes the minutes or hours that people take, and the provider notifies: the
// question is asked about every minute for an hour, then less and less often.
const (
	recipientShortest = time.Minute
	recipientPart     = 60
	recipientCap      = 15 * time.Minute
)

// pause returns the n-th pause of an attempt.
func (a Attempt) pause(n int, now time.Time) time.Duration {
	age := now.Sub(a.StartedAt)
	if a.Statement == ObsNeedsRecipient {
		return min(backoff(n), max(recipientShortest, age/recipientPart), recipientCap)
	}
	return min(backoff(n), max(pauseShortest, age/pausePart), pauseCap)
}

// Next reads the program counter off the rows (rule R3). attempts holds every
// attempt of the payment in ascending order. A question that somebody wants put is a
// step beside the payment's own: the earlier of the two is next, so that a number that
// gives no answer holds up no other. Where its answer may decide about money, the
// question comes before the send.
func Next(p Payment, attempts []Attempt) Step {
	own, asked := ownStep(p, attempts), Step{}
	first := own.Do == ActionEnd || own.Do == ActionCarryOut || own.Do == ActionSend && p.Status == StatusPending
	for _, a := range attempts {
		if !a.QueryRequested {
			continue
		}
		first = first || own.Do == ActionSend && (a.No == len(attempts) || !a.replaced(p))
		if asked.Do == "" || a.NextAt.Before(asked.At) {
			asked = Step{Do: ActionQuery, OrderNo: a.OrderNo, At: a.NextAt}
		}
	}
	if asked.Do == "" || !first && own.At.Before(asked.At) {
		return own
	}
	return asked
}

// NextDue is Next at a moment: a question that is due comes before a send, whenever that
// was due. The send may have been parked for hours, and the answer may forbid it.
func NextDue(p Payment, attempts []Attempt, now time.Time) Step {
	step := Next(p, attempts)
	if step.Do != ActionSend {
		return step
	}
	for _, a := range attempts {
		if a.queryDue(now) {
			return Step{Do: ActionQuery, OrderNo: a.OrderNo, At: a.NextAt}
		}
	}
	return step
}

// wanted reports whether somebody wants the number asked about, a notification say, and
// it is due: after a question without an answer it is not for a while.
func (a Attempt) queryDue(now time.Time) bool { return a.QueryRequested && !a.NextAt.After(now) }

// ceded reports whether a number has made way for a later one, and nothing that was said
// of it since speaks against that.
func (a Attempt) replaced(p Payment) bool {
	return a.refused() || a.Statement == ObsNeverReceived || a.consented(p)
}

// ownStep is what the payment itself needs next.
func ownStep(p Payment, attempts []Attempt) Step {
	if !p.Status.Open() {
		if p.Deciding != "" {
			return nextCancelStep(p, attempts)
		}
		return Step{Do: ActionEnd}
	}
	if len(attempts) == 0 {
		return Step{Do: ActionSend}
	}
	if p.Status == StatusPending {
		for _, a := range attempts {
			if !a.QueriedAt.After(p.DecidedAt) {
				return Step{Do: ActionQuery, OrderNo: a.OrderNo, At: a.NextAt}
			}
		}
		return Step{Do: ActionSend}
	}
	cur := attempts[len(attempts)-1]
	return Step{Do: cur.Next, OrderNo: cur.OrderNo, At: cur.NextAt}
}

// Numbering says under which number BeginSend sends.
type OrderNoChoice int

// The numberings.
const (
	// NewOrderNo: attempt n+1. Only when every earlier number is confirmed final (rule R5).
	NewOrderNo OrderNoChoice = iota
	// SameOrderNo: the current number again, byte for byte.
	SameOrderNo
	// NoOrderNo: nothing may be sent now; go on asking.
	NoOrderNo
)

// Begin decides under which number a send may go out now (rule R5).
func ChooseOrderNo(p Payment, attempts []Attempt, now time.Time) OrderNoChoice {
	if len(attempts) == 0 {
		if p.Status == StatusPending {
			return NewOrderNo
		}
		return NoOrderNo
	}
	cur := attempts[len(attempts)-1]
	switch p.Status {
	case StatusSending, StatusUnknown:
		// Money that moved under an earlier number is not sent once more, nor what may have.
		forbids := func(a Attempt) bool { return a.queryDue(now) || a.No != cur.No && a.blocksResend(p, cur) }
		if cur.Next == ActionSend && !cur.Booked && now.Before(cur.QueryUntil) && !slices.ContainsFunc(attempts, forbids) {
			return SameOrderNo
		}
		return NoOrderNo
	case StatusPending:
	default:
		return NoOrderNo
	}
	for _, a := range attempts {
		if !a.QueriedAt.After(p.DecidedAt) || a.QueryRequested {
			return NoOrderNo
		}
		if !a.refused() && !a.consented(p) && !(a.No == cur.No && a.Statement == ObsNeverReceived) {
			return NoOrderNo
		}
	}
	if cur.Statement == ObsNeverReceived && !cur.consented(p) {
		if cur.Booked || cur.open(now) || !now.Before(cur.QueryUntil) {
			return NoOrderNo
		}
		return SameOrderNo
	}
	if cur.No >= MaxAttempts {
		return NoOrderNo
	}
	return NewOrderNo
}

// refused reports whether the provider's word under this number is final: no
// money moves, or it came back.
func (a Attempt) refused() bool { return a.Statement == ObsDeclined || a.Statement == ObsReturned }

// agreed reports whether two persons took it on themselves that the provider no
// longer knows this number; that a later one was sent shows that they did, unless the
// number had been refused by then, and was called under way only afterwards.
func (a Attempt) consented(p Payment) bool {
	consented := p.NewNumberAgreed && !a.QueryUntil.After(p.DecidedAt) // what was lost later, nobody decided about
	return a.Forgotten && !a.Booked && (consented || a.No < p.Attempt && !a.mayMove())
}

// moving reports whether the provider's last word about a number that is not booked, or
// whose money came back, was that its money moves, or may.
func (a Attempt) mayMove() bool { return (!a.Booked || a.ReturnBooked) && a.Statement.mayMove() }

// unsettled reports whether the money of a number that was given up may still move: the
// provider says so, or has said once only that this is over.
func (a Attempt) unsettled() bool {
	return a.mayMove() || a.refused() && a.QueryRequested && a.EndedAt.IsZero()
}

// forbids reports whether an earlier number keeps a payment from being sent under cur: its
// money moved, or may (rule R5). That two persons gave it up, because the provider no longer
// knows it, shows in cur having been made after that.
func (a Attempt) blocksResend(p Payment, cur Attempt) bool {
	givenUp := a.consented(p) || a.Forgotten && !a.QueryUntil.After(cur.StartedAt)
	return a.recipientPaid() || a.unsettled() && !givenUp
}

// Holds reports whether the money of one of a payment's numbers may still move, as far as
// the provider can be asked about it. The refund of a cancelled payout waits for that (rule R5).
func MayStillMove(attempts []Attempt) bool {
	return slices.ContainsFunc(attempts, func(a Attempt) bool { return a.unsettled() && !a.Forgotten })
}

// open reports whether a send may still land. An answered repeat does not close
// an earlier send that got no final answer.
func (a Attempt) open(now time.Time) bool {
	return now.Before(a.OpenUntil) || now.Before(a.NotedUntil)
}

// leaveOpen keeps the window of the noted send, which got no final answer.
func (a *Attempt) leaveOpen() {
	if a.NotedUntil.After(a.OpenUntil) {
		a.OpenUntil = a.NotedUntil
	}
	a.NotedUntil = time.Time{}
}

// NewAttempt returns attempt number no of a payment, not sent yet.
func NewAttempt(p Payment, no int, request []byte) Attempt {
	return Attempt{OrderNo: OrderNo(p.ID, no), PaymentID: p.ID, No: no, Op: OpOf(p.Kind), Request: request}
}

// LeaveWithin is how long after its note a send may still leave. Whoever comes
// later asks first: the landing window counts from here, not from the note.
const LeaveWithin = 5 * time.Second

// RecordSend notes a send before it goes out: whoever reads the row from now on
// asks before anything else, and the send stays open for the landing window.
func RecordSend(p *Payment, a *Attempt, l Limits, now time.Time) error {
	if err := p.Move(StatusSending); err != nil {
		return err
	}
	if a.No != p.Attempt {
		p.NewNumberAgreed = false
	}
	p.Attempt = a.No
	p.Failure = nil
	p.UpdatedAt = now
	if a.Sends == 0 {
		a.StartedAt = now
		a.QueryUntil = now.Add(l.Remembers - 24*time.Hour)
	}
	a.Sends++
	a.Refused = false // what an earlier send was refused for is no answer to this one
	a.leaveOpen()
	a.NotedUntil = now.Add(LeaveWithin + l.LandingWindow)
	a.Next, a.NextAt = ActionQuery, now
	return nil
}

// RevertToUnknown is the outcome of a decision whose earlier numbers are not all
// confirmed final (rule R5): the payment goes on being asked about.
func RevertToUnknown(p *Payment, a *Attempt, now time.Time) error {
	if err := p.Move(StatusUnknown); err != nil {
		return err
	}
	p.UpdatedAt = now
	a.Next, a.NextAt = ActionQuery, now.Add(a.pause(a.Queries, now))
	return nil
}
