package payout

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settlement is the effect of an observation: the new rows, the transfers and breaks of the same
// transaction, and one line for the timeline.
type Settlement struct {
	Payment   Payment
	Attempt   Attempt
	Transfers []Transfer
	Breaks    []Break
	// OutcomeKnown: the order number has its outcome after the provider's memory of it has ended. Its break
	// outcome_unknown is resolved.
	OutcomeKnown bool
	Event        Event
	// Changed is false when the observation was settled before.
	Changed bool
	// Overtaken is the open decision that this observation made pointless.
	OvertakenDecision DecisionKind
}

// Settle applies one observation to a payment and its attempt. It is the only writer of a payment's
// status except BeginSend and decisions. Errors: ErrTransition when the table forbids the change,
// which means a defect in this package.
func Settle(p Payment, a Attempt, o Observation, now time.Time) (Settlement, error) {
	s := Settlement{Payment: p, Attempt: a}
	if a.observed(o.ID) {
		return s, nil
	}
	s.Changed = true
	s.Payment.UpdatedAt = now
	s.Attempt.remember(o.ID)
	s.Event = o.event(a)
	o = s.verify(o)
	wanted := s.Attempt.QueryWantedAt
	err := s.apply(o, a.LastAnswer(), now)
	if err == nil {
		err = s.endRetry(o, now)
	}
	if o.queriedAt(now).Before(wanted) && s.answered(o) && !a.NextAt.After(now) { // the wanted query is still due
		s.Attempt.NextAt = wanted
	}
	if err == nil {
		err = s.overtake(a)
	}
	if !s.Payment.Status.Open() || s.Attempt.No != s.Payment.Attempt { // nobody confirms any more
		s.Attempt.SealedAction = nil
	}
	if b := outcomeUnknown(s.Payment, s.Attempt, p.UpdatedAt, now); b != nil {
		s.Breaks = append(s.Breaks, *b)
	}
	s.OutcomeKnown = a.pastMemory(now) && !a.outcomeKnown() && s.Attempt.outcomeKnown()
	return s, err
}

// apply applies an observation by its source and the state of its order number. last is the provider's
// last answer before it.
func (s *Settlement) apply(o Observation, last ObservationKind, now time.Time) error {
	if o.Source == SourceOperator {
		return s.settleOperator(o, now)
	}
	s.recordAnswer(o, now)
	switch {
	case s.noNews(o, last):
		s.scheduleQuery(now)
		s.Attempt.NextAt = maxTime(s.Attempt.NextAt, now.Add(o.RetryAfter))
	case s.superseded():
		s.settleSuperseded(o, now)
	case s.Attempt.Booked:
		return s.settleBooked(o, now)
	case o.Source == SourceSend:
		return s.settleSend(o, now)
	default:
		return s.settleQuery(o, now)
	}
	return nil
}

// How many observation ids are kept, and in how many bytes: for a few concurrent runs of one
// payment, each of which repeats only its last observation.
const (
	rememberIDs   = 3
	rememberBytes = 128
)

func (a *Attempt) observed(id string) bool {
	return id != "" && slices.Contains(strings.Fields(a.ObservedIDs), id)
}

func (a *Attempt) remember(id string) {
	if id == "" {
		return
	}
	ids := append([]string{id}, strings.Fields(a.ObservedIDs)...)
	ids = ids[:min(len(ids), rememberIDs)]
	for len(ids) > 1 && len(strings.Join(ids, " ")) > rememberBytes {
		ids = ids[:len(ids)-1]
	}
	a.ObservedIDs = strings.Join(ids, " ")
}

// verify turns an answer about another order, account or amount into a break and an unknown
// outcome: it is never success (rule R4), and nothing of it is kept.
func (s *Settlement) verify(o Observation) Observation {
	p, a := s.Payment, s.Attempt
	var what string
	switch {
	case o.OrderNo != a.OrderNo:
		what = fmt.Sprintf("answer about order %q, stored %q", o.OrderNo, a.OrderNo)
	case o.Account != "" && o.Account != a.Account:
		what = "answer names another account than the stored request"
	case o.Amount != 0 && o.Amount != p.Amount:
		what = fmt.Sprintf("answer says %d fen, stored %d", o.Amount, p.Amount)
	case o.Kind == ObsNeedsPayer && p.PayUntil.IsZero():
		what = "answer waits for a payer, the stored request has none"
	case o.Kind == ObsNeedsRecipient && !p.PayUntil.IsZero():
		what = "answer waits for a recipient, the stored request has a payer"
	default:
		return o
	}
	s.addBreak(BreakMismatch, what)
	return Observation{ID: o.ID, Adapter: o.Adapter, Source: o.Source, Kind: ObsNoAnswer, OrderNo: a.OrderNo,
		StartedAt: o.StartedAt, EndedAt: o.EndedAt}
}

// recordAnswer stores the answer's details in the attempt.
func (s *Settlement) recordAnswer(o Observation, now time.Time) {
	a := &s.Attempt
	// The reason of a refused request is what the failure will show.
	if keep := a.Refused && o.Source == SourceQuery; o.Kind.Definite() || o.Code != "" && !keep {
		a.Code, a.Message = o.Code, o.Message
	}
	if o.Source == SourceQuery {
		a.Queries++
		if s.answered(o) {
			a.QueriedAt = maxTime(a.QueriedAt, o.queriedAt(now))
			if !o.StartedAt.After(now) && !o.queriedAt(now).Before(a.QueryWantedAt) { // an earlier query does not answer it
				a.QueryWantedAt = time.Time{}
			}
		}
		if o.Kind.usable() {
			a.Forgotten = o.Kind == ObsNeverReceived && !o.queriedAt(now).Before(a.QueryUntil)
		}
	} else {
		// While an earlier send is open, this may be the answer to that one.
		if o.Kind.endsSend() && !now.Before(a.EarlierSendsUntil) {
			a.CurrentSendUntil = time.Time{}
		} else {
			a.keepWindow()
		}
		a.Refused = o.Kind == ObsDeclined
	}
	if o.ProviderRef != "" && !(a.Booked && a.ProviderRef != "") { // that of the booked payment stays
		a.ProviderRef = o.ProviderRef
	}
	if n := len(o.SealedAction); n > 0 && n <= MaxSealedAction {
		a.SealedAction = o.SealedAction
	}
}

// queriedAt is when the query was put: a slow answer shows nothing of what has happened since.
func (o Observation) queriedAt(now time.Time) time.Time {
	if o.StartedAt.IsZero() || o.StartedAt.After(now) {
		return now
	}
	return o.StartedAt
}

// usable reports whether the answer to a query says anything about the order.
func (k ObservationKind) usable() bool {
	switch k {
	case ObsNoAnswer, ObsNotSent, ObsRetryAfter:
		return false
	}
	return true
}

func (s *Settlement) settleSend(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	switch o.Kind {
	case ObsSucceeded:
		return s.succeeded(o, now)
	case ObsReturned:
		return s.returned(o, now)
	case ObsNeedsRecipient, ObsNeedsPayer, ObsPending:
		return s.underway(o, now)
	}
	if !p.Status.Open() || p.Status == StatusPending {
		return nil // too late to decide the next step
	}
	switch o.Kind {
	case ObsDeclined: // to be confirmed by a query (rule R4)
		if a.Statement == ObsSucceeded || a.Statement == ObsReturned {
			s.contradiction(o)
		}
		a.Statement = o.Kind
		a.Next, a.NextAt = ActionQuery, now
		return nil
	case ObsRetryAfter, ObsNotSent:
		if p.Status.awaitsPerson() {
			return nil
		}
		a.Next, a.NextAt = ActionSend, now.Add(max(o.RetryAfter, a.pause(a.Sends-1, now)))
		return p.Move(StatusSending)
	default: // no information: query, never send again blindly
		if p.Status.awaitsPerson() {
			return nil
		}
		a.Next, a.NextAt = ActionQuery, now.Add(firstPause) // it may be landing right now
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
	case ObsPending, ObsNeedsRecipient, ObsNeedsPayer:
		return s.underway(o, now)
	default: // the query was not answered
		s.scheduleQuery(now)
		s.Attempt.NextAt = now.Add(max(o.RetryAfter, s.Attempt.pause(s.Attempt.Queries-1, now)))
		return nil
	}
}

// underway settles an answer without a final statement. After a definite statement, or of a failed
// payment, that is a contradiction (rule R4).
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
	if !p.Status.Open() || a.No != p.Attempt { // its money may still move, or a later number waits for it
		a.want(now)
	}
	switch {
	case !p.Status.Open():
		return nil
	case contradicted, p.Status == StatusPending:
		return p.Move(StatusUnknown)
	case o.Kind == ObsNeedsRecipient:
		return s.awaitRecipient(o, now)
	case o.Kind == ObsNeedsPayer:
		return s.awaitPayer(o, now)
	case p.Status == StatusUnknown:
		return p.Move(StatusSending)
	}
	return nil
}

func (s *Settlement) scheduleQuery(now time.Time) {
	s.Attempt.Next, s.Attempt.NextAt = ActionQuery, now.Add(s.Attempt.pause(s.Attempt.Queries, now))
}

// queryAsUnknown queries again after a contradiction: only a repeated statement counts.
func (s *Settlement) queryAsUnknown(now time.Time) error {
	s.scheduleQuery(now)
	if s.Payment.Status.Open() {
		return s.Payment.Move(StatusUnknown)
	}
	s.repeat(now)
	return nil
}

// repeat asks for another answer after a statement that was made once, where a decision or a refund
// waits for the order number.
func (s *Settlement) repeat(now time.Time) {
	p, a := &s.Payment, &s.Attempt
	if p.Status == StatusPending || p.OpenDecision != "" || p.endedByStaff() {
		a.want(now)
	}
}

func (s *Settlement) contradiction(o Observation) {
	s.addBreak(BreakContradiction, fmt.Sprintf("reported %s before, now %s", s.Attempt.Statement, o.Kind))
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

// confirm records since when the outcome of an order number is final.
func (s *Settlement) confirm(now time.Time) {
	if s.Attempt.EndedAt.IsZero() {
		s.Attempt.EndedAt = now
	}
}

// endedByStaff reports whether a decision ended the payment without the provider. The sender's
// refund for it waits for the numbers that may still move.
func (p Payment) endedByStaff() bool {
	return p.Status == StatusCancelled || p.Status == StatusPaidOutside
}
