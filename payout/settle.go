package payout

import (
	"fmt"
	"time"
)

// Settlement is what an observation changes: the new rows, the postings and
// breaks of the same transaction, and one line for the timeline.
type Settlement struct {
	Payment  Payment
	Attempt  Attempt
	Postings []Posting
	Breaks   []Break
	Event    string
	// Changed is false when the observation was settled before.
	Changed bool
}

// Settle applies one observation to a payment and the attempt it is about. It
// is the only writer of a payment's status except BeginSend and people's
// decisions. Errors: ErrTransition when the table forbids the change, which
// means a defect in this file.
func Settle(p Payment, a Attempt, o Observation, now time.Time) (Settlement, error) {
	s := Settlement{Payment: p, Attempt: a}
	if o.ID != "" && o.ID == a.LastObservation {
		return s, nil
	}
	s.Changed = true
	s.Payment.UpdatedAt = now
	s.Attempt.LastObservation = o.ID
	s.Event = describe(o)
	o = s.verify(o)
	s.note(o, now)
	var err error
	if s.superseded() {
		s.settleSuperseded(o, now)
	} else if o.Source == SourceSend {
		err = s.settleSend(o, now)
	} else {
		err = s.settleAsk(o, now)
	}
	return s, err
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
// break and an unknown outcome: it is never success (rule R4).
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
	o.Kind = ObsUnknown
	return o
}

// note keeps what the provider said beside the attempt, whatever it changes.
func (s *Settlement) note(o Observation, now time.Time) {
	a := &s.Attempt
	if o.Source == SourceAsk {
		a.Asks++
		switch o.Kind {
		case ObsUnknown, ObsNoAnswer, ObsNotSent, ObsRetryAfter:
		default:
			a.AskedAt = now
			a.AskRequested = false
		}
	} else {
		if o.Kind == ObsNoAnswer {
			a.leaveOpen()
		} else {
			a.NotedUntil = time.Time{}
		}
		a.Refused = o.Kind == ObsDeclined
	}
	if o.Code != "" || o.Kind.Definite() {
		a.Code, a.Message = o.Code, o.Message
	}
	if o.ProviderRef != "" {
		a.ProviderRef = o.ProviderRef
	}
	if o.Token != "" {
		a.Token = o.Token
	}
}

// superseded reports whether the observation is about a number that a later
// one, already sent, has taken the place of.
func (s *Settlement) superseded() bool {
	return s.Attempt.No != s.Payment.Attempt && s.Payment.Status != StatusPending && s.Payment.Status != StatusFailed
}

// settleSuperseded: money that moves under a superseded number is money nobody
// owed: suspense, and a break.
func (s *Settlement) settleSuperseded(o Observation, now time.Time) {
	a := &s.Attempt
	if o.Source == SourceAsk && (o.Kind.Definite() || o.Kind == ObsNeverReceived) || o.Kind == ObsSucceeded {
		a.Statement = o.Kind
	}
	if o.Kind == ObsSucceeded && !a.Booked {
		s.secondSuccess(now)
	}
}

func (s *Settlement) secondSuccess(now time.Time) {
	a := &s.Attempt
	a.Booked = true
	a.EndedAt = now
	s.Postings = append(s.Postings, NewPosting(PostSecondSuccess, a.OrderNo, s.Payment.Amount))
	s.addBreak(BreakSecondSuccess, fmt.Sprintf("%d fen moved under a number that no longer counted", s.Payment.Amount))
}

func (s *Settlement) settleSend(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	open := p.Status == StatusSending || p.Status == StatusUnknown
	switch o.Kind {
	case ObsSucceeded:
		return s.succeeded(o, now)
	case ObsReturned:
		return s.returned(now)
	case ObsNeedsRecipient:
		if !open {
			return nil
		}
		a.Statement = o.Kind
		s.askAgain(now)
		return s.viaSending(StatusAwaitingRecipient)
	case ObsPending:
		a.Statement = o.Kind
		s.askAgain(now)
		if p.Status == StatusUnknown {
			return p.Move(StatusSending)
		}
		return nil
	case ObsDeclined: // to be confirmed by asking (rule R4)
		if a.Statement == ObsSucceeded || a.Statement == ObsReturned {
			s.contradiction(o)
		}
		a.Statement = o.Kind
		a.Next, a.NextAt = ActionAsk, now
		return nil
	case ObsRetryAfter, ObsNotSent:
		a.Next, a.NextAt = ActionSend, now.Add(max(o.RetryAfter, pause(a.Sends-1)))
		if p.Status == StatusUnknown {
			return p.Move(StatusSending)
		}
		return nil
	default: // unknown or no answer: ask, never send again blindly
		a.Next, a.NextAt = ActionAsk, now
		if o.Kind == ObsNoAnswer {
			a.NextAt = now.Add(firstPause)
		}
		if p.Status == StatusSending {
			return p.Move(StatusUnknown)
		}
		return nil
	}
}

func (s *Settlement) settleAsk(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	switch o.Kind {
	case ObsSucceeded:
		return s.succeeded(o, now)
	case ObsReturned:
		return s.returned(now)
	case ObsDeclined:
		return s.askedDeclined(o, now)
	case ObsNeverReceived:
		return s.askedNeverReceived(now)
	case ObsPending:
		if !a.Statement.Definite() || p.Status == StatusPending {
			a.Statement = o.Kind
		}
		s.askAgain(now)
		switch p.Status {
		case StatusUnknown:
			return p.Move(StatusSending)
		case StatusPending:
			return p.Move(StatusUnknown)
		}
		return nil
	case ObsNeedsRecipient:
		a.Statement = o.Kind
		s.askAgain(now)
		if p.Status.Open() {
			return s.viaSending(StatusAwaitingRecipient)
		}
		return nil
	default: // the question was not answered
		s.askAgain(now)
		a.NextAt = now.Add(max(o.RetryAfter, pause(a.Asks-1)))
		return nil
	}
}

// succeeded: the money has moved.
func (s *Settlement) succeeded(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	if a.Booked {
		if a.Statement == ObsReturned {
			s.contradiction(o)
		}
		return nil
	}
	if a.Statement == ObsDeclined && o.Source == SourceAsk {
		// The answer said declined, the query says succeeded: believe it when it is said twice.
		s.contradiction(o)
		a.Statement = ObsSucceeded
		a.AskRequested = !p.Status.Open()
		return s.askSoonAsUnknown(now)
	}
	a.Statement = ObsSucceeded
	switch p.Status {
	case StatusPaid, StatusReturned, StatusCancelled, StatusPaidOutside:
		s.secondSuccess(now)
		return nil
	case StatusFailed:
		s.addBreak(BreakLateSuccess, "the provider reports success of a payment that had failed")
	}
	if err := p.Move(StatusPaid); err != nil {
		return err
	}
	p.Attempt = a.No
	p.Failure = nil
	s.book(now)
	return nil
}

func (s *Settlement) book(now time.Time) {
	a := &s.Attempt
	a.Booked = true
	a.EndedAt = now
	s.Postings = append(s.Postings, NewPosting(successPosting(s.Payment.Kind), a.OrderNo, s.Payment.Amount))
}

// returned: the money moved and came back, perhaps before we knew that it had moved.
func (s *Settlement) returned(now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	was := a.Statement
	a.Statement = ObsReturned
	if p.Kind == KindCharge {
		s.addBreak(BreakContradiction, "the provider reports a charge as returned")
		return nil
	}
	switch p.Status {
	case StatusReturned, StatusCancelled, StatusPaidOutside, StatusFailed, StatusPending:
		if was != ObsReturned && !a.Booked {
			// Moved and came back under a number already given up: nothing is left to book.
			s.addBreak(BreakLateSuccess, "moved and came back after the payment had been given up")
		}
		return nil
	}
	if !a.Booked {
		s.book(now)
	}
	if err := p.Move(StatusReturned); err != nil {
		return err
	}
	p.Failure = NewFailure("returned", a.Message)
	a.EndedAt = now
	s.Postings = append(s.Postings, NewPosting(returnPosting(p.Kind), a.OrderNo, p.Amount))
	return nil
}

// askedDeclined: a final failure needs two statements, the second by asking.
func (s *Settlement) askedDeclined(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	switch a.Statement {
	case ObsSucceeded, ObsReturned:
		s.contradiction(o)
		if a.Booked || !p.Status.Open() {
			return nil
		}
		a.Statement = ObsDeclined
		return s.askSoonAsUnknown(now)
	case ObsDeclined:
		return s.fail(a.Code, a.Message, now)
	}
	a.Statement = ObsDeclined
	a.Next, a.NextAt = ActionAsk, now.Add(firstPause)
	if p.Status == StatusPending {
		return nil // asked about before a new number: said to be final
	}
	return nil
}

func (s *Settlement) askedNeverReceived(now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	if a.Booked {
		s.addBreak(BreakForgotten, "the provider does not know an order it had carried out")
		return nil
	}
	if !p.Status.Open() {
		return nil
	}
	if !now.Before(a.AskUntil) { // it may simply have forgotten: proves nothing
		s.askAgain(now)
		return nil
	}
	if p.Status == StatusPending {
		if a.Statement != ObsDeclined || a.Refused {
			a.Statement = ObsNeverReceived
		}
		return nil
	}
	switch {
	case a.Refused && !a.open(now):
		a.Statement = ObsNeverReceived
		return s.fail("never_received", a.Message, now)
	case a.Refused:
		a.leaveOpen()
		a.Next, a.NextAt = ActionAsk, a.OpenUntil
	default:
		a.Next, a.NextAt = ActionSend, now.Add(pause(a.Sends-1))
	}
	if p.Status == StatusSending {
		return p.Move(StatusUnknown)
	}
	return nil
}

// fail: confirmed final failure. A payment waiting under a new decision keeps its status.
func (s *Settlement) fail(code, message string, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	if p.Status == StatusPending || !p.Status.Open() {
		return nil
	}
	if err := p.Move(StatusFailed); err != nil {
		return err
	}
	p.Failure = NewFailure(code, message)
	a.EndedAt = now
	return nil
}

func (s *Settlement) askAgain(now time.Time) {
	s.Attempt.Next, s.Attempt.NextAt = ActionAsk, now.Add(pause(s.Attempt.Asks))
}

func (s *Settlement) askSoonAsUnknown(now time.Time) error {
	s.Attempt.Next, s.Attempt.NextAt = ActionAsk, now.Add(pause(min(s.Attempt.Asks, 4)))
	switch s.Payment.Status {
	case StatusSending, StatusAwaitingRecipient, StatusPending:
		return s.Payment.Move(StatusUnknown)
	}
	return nil
}

// viaSending moves to a status that pending cannot reach directly.
func (s *Settlement) viaSending(to Status) error {
	if s.Payment.Status == StatusPending {
		if err := s.Payment.Move(StatusUnknown); err != nil {
			return err
		}
	}
	return s.Payment.Move(to)
}

func (s *Settlement) contradiction(o Observation) {
	s.addBreak(BreakContradiction, fmt.Sprintf("said %s before, now %s", s.Attempt.Statement, o.Kind))
}

func (s *Settlement) addBreak(kind BreakKind, detail string) {
	s.Breaks = append(s.Breaks, Break{Kind: kind, OrderNo: s.Attempt.OrderNo, Detail: detail})
}
