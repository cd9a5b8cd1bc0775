package payout

import (
	"slices"
	"time"
)

// Action is what has to be done next for a payment.
type Action string

// The actions. The row holds the next one, independent of the run that reads it (rule R3).
const (
	ActionSend  Action = "send" // send or repeat: BeginSend, the provider call, Settle
	ActionQuery Action = "ask"  // query the provider about an order number, then Settle
	ActionEnd   Action = "end"  // nothing, until a decision or a notification
	// ActionClose: close at the provider an order that waits for a person, then query it.
	ActionClose Action = "close"
	// ActionCarryOut: carry out the open decision; every order number has been queried.
	ActionCarryOut Action = "carry_out"
)

// Step is the next action and its earliest time.
type Step struct {
	Do      Action    `json:"do"`
	OrderNo string    `json:"order_no,omitempty"`
	At      time.Time `json:"at,omitzero"`
	// Deferred says why a due send waits until At.
	Deferred Deferral `json:"parked,omitempty"`
}

// Pauses between repeats double up to the cap and never end: no number of tries turns unknown into
// failed.
const (
	firstPause = 500 * time.Millisecond
	pauseCap   = 5 * time.Minute
)

// backoff returns the n-th pause (n counts from 0): 0.5 s, 1 s, 2 s, and so on.
func backoff(n int) time.Duration { return firstPause << min(max(n, 0), 16) }

// A pause is at most 15 s or a sixteenth of the time since the first send. After an outage of four
// minutes every order is queried again within 15 s, after an hour within four minutes. That costs
// some sixty more queries a day.
const (
	pauseShortest = 15 * time.Second
	pausePart     = 16
)

// pause returns the n-th pause of an attempt.
func (a Attempt) pause(n int, now time.Time) time.Duration {
	return min(backoff(n), max(pauseShortest, now.Sub(a.StartedAt)/pausePart), pauseCap)
}

// A sender or recipient takes minutes or hours to act, and the provider notifies. So an order that waits for one is
// queried only after personQueries since its first send, at the end of the time for the act, personLate after that,
// and daily. A notification brings the query forward; an unanswered query is repeated after a pause.
var personQueries = []time.Duration{time.Minute, 10 * time.Minute, time.Hour}

const (
	personLate  = time.Hour
	personDaily = 24 * time.Hour
)

// nextPersonQuery is when an order that waits for a person is queried next. until: the end of the time for the act;
// zero: not known.
func (a Attempt) nextPersonQuery(now, until time.Time) time.Time {
	var times []time.Time
	for _, after := range personQueries {
		times = append(times, a.StartedAt.Add(after))
	}
	if !until.IsZero() {
		times = append(times, until, until.Add(personLate))
	}
	next := now.Add(personDaily)
	for _, at := range times {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	return next
}

// Next reads the program counter from the rows (rule R3). attempts holds every attempt of the
// payment in ascending order. A requested query is a step of its own; the earlier of it and the
// payment's own step is next, so that an unanswered query blocks nothing. A query whose answer may
// decide about money precedes the send.
func Next(p Payment, attempts []Attempt) Step {
	own, asked := ownStep(p, attempts), Step{}
	first := own.Do == ActionEnd || own.Do == ActionCarryOut || own.Do == ActionSend && p.Status == StatusPending
	for _, a := range attempts {
		if !a.wanted() {
			continue
		}
		replaced := a.fate().refused() || a.fate() == FateNotFound || a.consented() // by a later order number
		first = first || own.Do == ActionSend && (a.No == len(attempts) || !replaced)
		if asked.Do == "" || a.NextAt.Before(asked.At) {
			asked = Step{Do: ActionQuery, OrderNo: a.OrderNo, At: a.NextAt}
		}
	}
	if asked.Do == "" || !first && own.At.Before(asked.At) {
		return own
	}
	return asked
}

// NextDue is Next at a moment: a due query precedes a send, whichever was due first. The send may
// have been deferred for hours, and the answer may forbid it.
func NextDue(p Payment, attempts []Attempt, now time.Time) Step {
	step := Next(p, attempts)
	if step.Do != ActionSend {
		return step
	}
	if n := len(attempts); n > 0 && !p.mayPay(now) { // it was due before the deadline
		return Step{Do: ActionClose, OrderNo: attempts[n-1].OrderNo, At: attempts[n-1].NextAt}
	}
	for _, a := range attempts {
		if a.queryDue(now) {
			return Step{Do: ActionQuery, OrderNo: a.OrderNo, At: a.NextAt}
		}
	}
	return step
}

// queryDue reports whether a query of the order number is requested, by a notification for example,
// and due. An unanswered query is not due again for a while.
func (a Attempt) queryDue(now time.Time) bool { return a.wanted() && !a.NextAt.After(now) }

// wanted reports whether a query of the order number is requested.
func (a Attempt) wanted() bool { return !a.QueryWantedAt.IsZero() }

// want requests a query of the order number that is put from now on. An earlier request stands: runs that
// query at once must not put each other's answers off.
func (a *Attempt) want(now time.Time) {
	if !a.wanted() {
		a.QueryWantedAt = now
	}
}

// ownStep is the payment's own next step, without requested queries.
func ownStep(p Payment, attempts []Attempt) Step {
	if p.OpenDecision != "" {
		return nextCancelStep(p, attempts)
	}
	if !p.Status.Open() {
		return Step{Do: ActionEnd}
	}
	if len(attempts) == 0 {
		return Step{Do: ActionSend}
	}
	if p.Status == StatusPending {
		return Step{Do: ActionSend} // after the queries that the decision wants
	}
	cur := attempts[len(attempts)-1]
	own := Step{Do: cur.Next, OrderNo: cur.OrderNo, At: cur.NextAt}
	if cur.renewal(p.Status) && !p.closing() && !cur.RenewAt.After(own.At) {
		own.Do, own.At = ActionSend, cur.RenewAt
	}
	return p.closeStep(cur, own)
}

// OrderNoChoice says under which order number BeginSend sends.
type OrderNoChoice int

// The choices.
const (
	// NewOrderNo: attempt n+1, only when every earlier number is confirmed final (rule R5).
	NewOrderNo OrderNoChoice = iota
	// SameOrderNo: the current number again, with the same bytes.
	SameOrderNo
	// NoOrderNo: nothing may be sent now; queries continue.
	NoOrderNo
)

// ChooseOrderNo decides under which order number a send may go out now (rule R5). A charge past its deadline, or
// withdrawn, is not sent. One without attempts ends by ExpireUnsent, which precedes this; only where a restored MySQL
// may lack its first send does the order go out, so that the provider closes it.
func ChooseOrderNo(p Payment, attempts []Attempt, now time.Time) OrderNoChoice {
	if p.OpenDecision != "" || len(attempts) > 0 && !p.mayPay(now) {
		return NoOrderNo
	}
	if len(attempts) == 0 {
		if p.Status == StatusPending {
			return NewOrderNo
		}
		return NoOrderNo
	}
	cur := attempts[len(attempts)-1]
	switch p.Status {
	case StatusSending, StatusUnknown:
		if cur.Next == ActionSend && mayRepeat(attempts, now) {
			return SameOrderNo
		}
		return NoOrderNo
	case StatusAwaitingPayer, StatusAwaitingRecipient:
		if cur.renewal(p.Status) && !now.Before(cur.RenewAt) && mayRepeat(attempts, now) {
			return SameOrderNo
		}
		return NoOrderNo
	case StatusPending:
	default:
		return NoOrderNo
	}
	for _, a := range attempts {
		if a.wanted() {
			return NoOrderNo
		}
		if a.fate() != FateEnded && !a.consented() && !(a.No == cur.No && a.fate() == FateNotFound) {
			return NoOrderNo
		}
	}
	if cur.fate() == FateNotFound && !cur.consented() {
		if cur.open(now) || !now.Before(cur.QueryUntil) {
			return NoOrderNo
		}
		return SameOrderNo
	}
	if cur.No >= MaxAttempts {
		return NoOrderNo
	}
	return NewOrderNo
}

// mayRepeat reports whether the current order number may be sent again. Money that moved, or may move, under an
// earlier number is not sent again.
func mayRepeat(attempts []Attempt, now time.Time) bool {
	cur := attempts[len(attempts)-1]
	forbids := func(a Attempt) bool {
		return a.queryDue(now) || a.No != cur.No && (a.fate().paid() || a.fate().unsettled() && !a.consented())
	}
	return !cur.Booked && now.Before(cur.QueryUntil) && !slices.ContainsFunc(attempts, forbids)
}

// MayStillMove reports whether the money of one of a payment's numbers may still move, while the
// provider can be queried about it. The refund of a cancelled payout waits for that (rule R5).
func MayStillMove(attempts []Attempt) bool {
	return slices.ContainsFunc(attempts, func(a Attempt) bool { return a.mayMove() && !a.Forgotten })
}

// mayMove reports whether the money of a number may still move, and nobody gave it up.
func (a Attempt) mayMove() bool { return a.fate().unsettled() && !a.consented() }

// open reports whether a send may still land. The answer to a repeat does not end the window of an
// earlier send without a final answer.
func (a Attempt) open(now time.Time) bool { return now.Before(a.sendsUntil()) }

// sendsUntil is until when a send may land.
func (a Attempt) sendsUntil() time.Time { return maxTime(a.EarlierSendsUntil, a.CurrentSendUntil) }

// keepWindow keeps the landing window of the recorded send, which got no final answer.
func (a *Attempt) keepWindow() {
	if a.CurrentSendUntil.After(a.EarlierSendsUntil) {
		a.EarlierSendsUntil = a.CurrentSendUntil
	}
	a.CurrentSendUntil = time.Time{}
}

// NewAttempt returns the unsent attempt number no of a payment.
func NewAttempt(p Payment, no int, request []byte) Attempt {
	return Attempt{OrderNo: OrderNo(p.ID, no), PaymentID: p.ID, No: no, Op: OpOf(p.Kind), Account: p.Account, Request: request}
}

// LeaveWithin is how long after its record a send may still leave. A later caller queries first:
// the landing window counts from this deadline.
const LeaveWithin = 5 * time.Second

// RecordSend records a send before it goes out. From then on every reader of the row queries first,
// and the send stays open for the landing window. A payment that waits for a person goes on waiting while
// its client data is obtained again.
func RecordSend(p *Payment, a *Attempt, l Limits, now time.Time) error {
	if !a.renewal(p.Status) {
		if err := p.Move(StatusSending); err != nil {
			return err
		}
	}
	p.Attempt = a.No
	p.Failure = nil
	p.UpdatedAt = now
	if a.Sends == 0 {
		a.StartedAt = now
		a.QueryUntil = now.Add(l.Remembers - 24*time.Hour)
	}
	a.Sends++
	a.RenewAt = time.Time{}
	a.Refused, a.EndedAt = false, time.Time{} // the refusal of an earlier send is no answer to this one
	a.keepWindow()
	a.CurrentSendUntil = now.Add(LeaveWithin + l.LandingWindow)
	a.Next, a.NextAt = ActionQuery, now
	return nil
}

// RefuseSend records that a due send must not go out (rule R5). The payment becomes unknown and is queried further;
// one that waits for its recipient keeps its status, without client data. The break is that of an order number that
// was sent for too long.
func RefuseSend(p *Payment, a *Attempt, now time.Time) (*Break, error) {
	if p.Status == StatusAwaitingRecipient {
		a.RenewAt = time.Time{}
	} else if err := p.Move(StatusUnknown); err != nil {
		return nil, err
	}
	before := p.UpdatedAt
	p.UpdatedAt = now
	a.Next, a.NextAt = ActionQuery, now.Add(a.pause(a.Queries, now))
	return outcomeUnknown(*p, *a, before, now), nil
}
