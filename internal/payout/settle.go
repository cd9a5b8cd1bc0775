package payout

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settlement is what an observation changes: the new rows, the postings and
// breaks of the same transaction, and one line for the timeline.
type Settlement struct {
	Payment   Payment
	Attempt   Attempt
	Transfers []Transfer
	Breaks    []Break
	Event     string
	// Changed is false when the observation was settled before.
	Changed bool
	// Overtaken is the open decision that this observation made pointless.
	Overtaken DecisionKind
}

// Settle applies one observation to a payment and the attempt it is about. It
// is the only writer of a payment's status except BeginSend and people's
// decisions. Errors: ErrTransition when the table forbids the change, which
// means a defect in this package.
func Settle(p Payment, a Attempt, o Observation, now time.Time) (Settlement, error) {
	s := Settlement{Payment: p, Attempt: a}
	if a.observed(o.ID) {
		return s, nil
	}
	s.Changed = true
	s.Payment.UpdatedAt = now
	// It was decided by now: the clock was set back since. What is asked from here on
	// is asked after it.
	if s.Payment.DecidedAt.After(now) {
		s.Payment.DecidedAt = now
	}
	s.Attempt.remember(o.ID)
	s.Event = describe(o)
	o = s.verify(o)
	// A question put before it was wanted, at NextAt, knows nothing of what it is wanted for.
	early := a.QueryRequested && o.Source == SourceQuery && o.Kind.usable() && o.queriedAt(now).Before(a.NextAt) && !a.NextAt.After(now)
	s.recordAnswer(o, now)
	var err error
	switch {
	case s.superseded():
		s.settleSuperseded(o, now)
	case s.Attempt.Booked:
		err = s.settleBooked(o, now)
	case o.Source == SourceSend:
		err = s.settleSend(o, now)
	default:
		err = s.settleQuery(o, now)
	}
	if early {
		s.Attempt.QueryRequested, s.Attempt.NextAt = true, a.NextAt
	}
	if d := s.Payment.Deciding; d != "" && !s.Payment.decidable() {
		s.Payment.Deciding, s.Overtaken = "", d
	}
	return s, err
}

// How many observations are remembered, and in how many bytes: a few runs of
// one payment at once, each of which repeats no more than its last.
const (
	rememberIDs   = 3
	rememberBytes = 128
)

func (a *Attempt) observed(id string) bool {
	return id != "" && slices.Contains(strings.Fields(a.Observed), id)
}

func (a *Attempt) remember(id string) {
	if id == "" {
		return
	}
	ids := append([]string{id}, strings.Fields(a.Observed)...)
	ids = ids[:min(len(ids), rememberIDs)]
	for len(ids) > 1 && len(strings.Join(ids, " ")) > rememberBytes {
		ids = ids[:len(ids)-1]
	}
	a.Observed = strings.Join(ids, " ")
}

func describe(o Observation) string {
	text := string(o.Kind)
	if o.Code != "" {
		text += " (" + o.Code + ")"
	}
	if o.Source == SourceSend {
		return "sent " + o.OrderNo + ": " + text
	}
	return "asked about " + o.OrderNo + ": " + text
}

// verify turns an answer about something else than what was stored into a
// break and an unknown outcome: it is never success (rule R4), and nothing it
// says is kept.
func (s *Settlement) verify(o Observation) Observation {
	p, a := s.Payment, s.Attempt
	var what string
	switch {
	case o.OrderNo != a.OrderNo:
		what = fmt.Sprintf("answer about order %q, stored %q", o.OrderNo, a.OrderNo)
	case o.Account != "" && o.Account != p.Account:
		what = "answer names another account than the stored request"
	case o.Amount != 0 && o.Amount != p.Amount:
		what = fmt.Sprintf("answer says %d fen, stored %d", o.Amount, p.Amount)
	default:
		return o
	}
	s.addBreak(BreakMismatch, what)
	return Observation{ID: o.ID, Adapter: o.Adapter, Source: o.Source, Kind: ObsUnknown, OrderNo: a.OrderNo,
		StartedAt: o.StartedAt, EndedAt: o.EndedAt}
}

// note keeps what the provider said beside the attempt, whatever it changes.
func (s *Settlement) recordAnswer(o Observation, now time.Time) {
	a := &s.Attempt
	// What a refused request was refused for is what the failure will show.
	if keep := a.Refused && o.Source == SourceQuery; o.Kind.Definite() || o.Code != "" && !keep {
		a.Code, a.Message = o.Code, o.Message
	}
	if o.Source == SourceQuery {
		a.Queries++
		if o.Kind.usable() {
			if a.QueriedAt = o.queriedAt(now); o.StartedAt.After(now) {
				a.QueriedAt = time.Time{} // the clock was set back: nobody knows when it was put
			}
			a.QueryRequested = false
			a.Forgotten = o.Kind == ObsNeverReceived && !a.QueriedAt.Before(a.QueryUntil)
		}
	} else {
		// While an earlier send is open, this may be the answer to that one.
		if o.Kind.endsSend() && !now.Before(a.OpenUntil) {
			a.NotedUntil = time.Time{}
		} else {
			a.leaveOpen()
		}
		a.Refused = o.Kind == ObsDeclined
	}
	if o.ProviderRef != "" {
		a.ProviderRef = o.ProviderRef
	}
	if o.Token != "" && len(o.Token) <= MaxToken { // a part of one is of no use
		a.Token = o.Token
	}
}

// asked is when the question was put: an answer that was long on its way says
// nothing about what has happened since.
func (o Observation) queriedAt(now time.Time) time.Time {
	if o.StartedAt.IsZero() || o.StartedAt.After(now) {
		return now
	}
	return o.StartedAt
}

// usable reports whether the answer to a query says anything about the order.
func (k ObservationKind) usable() bool {
	switch k {
	case ObsUnknown, ObsNoAnswer, ObsNotSent, ObsRetryAfter:
		return false
	}
	return true
}

// superseded reports whether the observation is about a number that a later
// one, already sent, has taken the place of.
func (s *Settlement) superseded() bool {
	return s.Attempt.No != s.Payment.Attempt && s.Payment.Status != StatusPending && s.Payment.Status != StatusFailed
}

// settleSuperseded: money that moves under a superseded number is money nobody
// owed: suspense, and a break. While it may move, nothing is paid in its stead.
func (s *Settlement) settleSuperseded(o Observation, now time.Time) {
	a := &s.Attempt
	if o.Source == SourceQuery {
		s.scheduleQuery(now)
		a.NextAt = maxTime(a.NextAt, now.Add(o.RetryAfter))
	}
	gone := a.Booked && !a.ReturnBooked
	switch {
	case o.Source == SourceQuery && o.Kind == ObsNeverReceived && a.mayMove():
		s.forgottenInFlight()
	case o.Kind == ObsReturned && gone:
		s.secondReturned(now)
	case o.Kind == ObsSucceeded && !a.Booked:
		a.Statement = o.Kind
		s.secondSuccess(now)
	case o.Kind == ObsSucceeded && gone:
		a.Statement = o.Kind
	case o.Kind == ObsDeclined && gone, o.Kind == ObsNeverReceived && a.Booked:
		s.contradiction(o)
	case o.Kind == ObsDeclined && a.Booked:
		s.contradiction(o)
		if o.Source == SourceQuery && (!a.refused() || a.EndedAt.IsZero()) {
			s.endWhenRepeated(o, now)
		}
	case o.Kind.mayMove() && gone:
		if o.Source == SourceQuery && s.Payment.Deciding != "" {
			s.contradiction(o)
			a.Statement = o.Kind
		}
	case o.Kind.mayMove(): // or, of what came back, succeeded
		s.movesAgain(o, now)
	case o.Source == SourceQuery && o.Kind == ObsNeverReceived:
		a.Statement = o.Kind
	case o.Source == SourceQuery && o.Kind.Definite():
		s.endWhenRepeated(o, now)
	}
}

// stirs: a number that was given up is under way again, or its money has gone again after
// it came back. It is asked about until that is over; nothing is paid in its stead before.
func (s *Settlement) movesAgain(o Observation, now time.Time) {
	a := &s.Attempt
	if a.Statement != "" && !a.mayMove() {
		s.contradiction(o)
	}
	a.Statement, a.EndedAt = o.Kind, time.Time{}
	// A cancel that is being carried out ends by a success: nothing is left to ask for.
	a.QueryRequested = o.Kind != ObsSucceeded || s.Payment.Deciding == ""
	if o.Source == SourceSend {
		a.Next, a.NextAt = ActionQuery, now
	}
}

// settles: a refusal, or a return, of a number that was under way again counts when it is
// said twice.
func (s *Settlement) endWhenRepeated(o Observation, now time.Time) {
	a := &s.Attempt
	if once := a.mayMove(); once {
		a.QueryRequested, a.NextAt = true, now.Add(firstPause)
	} else if a.EndedAt.IsZero() {
		a.EndedAt = now
	}
	a.Statement = o.Kind
}

// lost: the provider does not know a number that it had called under way. As long as it
// remembers numbers that proves nothing.
func (s *Settlement) forgottenInFlight() {
	if s.Attempt.Forgotten {
		return
	}
	s.addBreak(BreakForgotten, "the provider does not know an order that it had called under way")
	s.Attempt.QueryRequested = true
}

// ended reports whether the payment came to its end by a person, without the provider. What
// the sender gets back for it waits for the numbers that may still move.
func (p Payment) endedByStaff() bool {
	return p.Status == StatusCancelled || p.Status == StatusPaidOutside
}

func (s *Settlement) settleSend(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	switch o.Kind {
	case ObsSucceeded:
		return s.succeeded(o, now)
	case ObsReturned:
		return s.returned(o, now)
	case ObsNeedsRecipient, ObsPending:
		return s.underway(o, now)
	}
	if !p.Status.Open() || p.Status == StatusPending {
		return nil // too late to say how to go on
	}
	switch o.Kind {
	case ObsDeclined: // to be confirmed by asking (rule R4)
		if a.Statement == ObsSucceeded || a.Statement == ObsReturned {
			s.contradiction(o)
		}
		a.Statement = o.Kind
		a.Next, a.NextAt = ActionQuery, now
		return nil
	case ObsRetryAfter, ObsNotSent:
		if p.Status == StatusAwaitingRecipient {
			return nil
		}
		a.Next, a.NextAt = ActionSend, now.Add(max(o.RetryAfter, a.pause(a.Sends-1, now)))
		return p.Move(StatusSending)
	default: // it says nothing: ask, never send again blindly
		if p.Status == StatusAwaitingRecipient {
			return nil
		}
		a.Next, a.NextAt = ActionQuery, now.Add(firstPause) // it may just be landing
		return p.Move(StatusUnknown)
	}
}

func (s *Settlement) settleQuery(o Observation, now time.Time) error {
	switch o.Kind {
	case ObsSucceeded:
		return s.succeeded(o, now)
	case ObsReturned:
		return s.returned(o, now)
	case ObsDeclined:
		return s.queriedDeclined(o, now)
	case ObsNeverReceived:
		return s.queriedNeverReceived(o, now)
	case ObsPending, ObsNeedsRecipient:
		return s.underway(o, now)
	default: // the question was not answered
		s.scheduleQuery(now)
		s.Attempt.NextAt = now.Add(max(o.RetryAfter, s.Attempt.pause(s.Attempt.Queries-1, now)))
		return nil
	}
}

// underway: the provider has the order and no final answer. After a definite
// statement, or of a payment that has failed, that is a contradiction (rule R4).
func (s *Settlement) underway(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	if p.endedByStaff() {
		s.scheduleQuery(now)
		s.movesAgain(o, now)
		return nil
	}
	contradicted := a.Statement.Definite() || p.Status == StatusFailed
	if contradicted {
		s.contradiction(o)
	}
	a.Statement, a.EndedAt = o.Kind, time.Time{}
	s.scheduleQuery(now)
	a.QueryRequested = a.QueryRequested || a.No != p.Attempt // a later number waits for it
	switch {
	case !p.Status.Open(): // its money may still move: go on asking
		a.QueryRequested = true
		return nil
	case contradicted, p.Status == StatusPending:
		return p.Move(StatusUnknown)
	case o.Kind == ObsNeedsRecipient:
		return p.Move(StatusAwaitingRecipient)
	case p.Status == StatusUnknown:
		return p.Move(StatusSending)
	}
	return nil
}

func (s *Settlement) scheduleQuery(now time.Time) {
	s.Attempt.Next, s.Attempt.NextAt = ActionQuery, now.Add(s.Attempt.pause(s.Attempt.Queries, now))
}

// queryAsUnknown: the provider contradicts itself; only what it says twice counts.
func (s *Settlement) queryAsUnknown(now time.Time) error {
	s.scheduleQuery(now)
	if s.Payment.Status.Open() {
		return s.Payment.Move(StatusUnknown)
	}
	if s.Payment.Deciding != "" {
		s.Attempt.QueriedAt = time.Time{}
	}
	return nil
}

func (s *Settlement) contradiction(o Observation) {
	s.addBreak(BreakContradiction, fmt.Sprintf("said %s before, now %s", s.Attempt.Statement, o.Kind))
}

func (s *Settlement) addBreak(kind BreakKind, detail string) {
	s.Breaks = append(s.Breaks, Break{Kind: kind, OrderNo: s.Attempt.OrderNo, Detail: detail})
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
