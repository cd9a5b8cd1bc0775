package payout

import (
	"slices"
	"testing"
	"time"
)

func (s *script) begins(want OrderNoChoice) *script {
	s.t.Helper()
	if got := ChooseOrderNo(s.p, s.attempts, s.now); got != want {
		s.t.Fatalf("%s: numbering %d, want %d", s.p.Status, got, want)
	}
	return s
}

func TestR5_FirstNumber(t *testing.T) {
	s := story(t, KindPayout).begins(NewOrderNo).next(ActionSend, 0).sends("")
	if a := s.attempts[0]; a.OrderNo != OrderNo(s.p.ID, 1) || a.Sends != 1 || s.p.Attempt != 1 || string(a.Request) != "request" ||
		!a.QueryUntil.Equal(t0.Add(limits.Remembers-24*time.Hour)) || !a.StartedAt.Equal(t0) ||
		!a.CurrentSendUntil.Equal(t0.Add(LeaveWithin+limits.LandingWindow)) {
		t.Errorf("%+v", a)
	}
	for _, status := range Statuses {
		if status != StatusPending {
			if got := ChooseOrderNo(Payment{Status: status}, nil, t0); got != NoOrderNo {
				t.Errorf("%s without attempts: %d", status, got)
			}
		}
	}
}

// TestR5_NewNumberOnlyWhenAllAreFinal: after a decision every earlier number is queried, whatever
// its last answer.
func TestR5_NewNumberOnlyWhenAllAreFinal(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).begins(NoOrderNo).retries()
	s.next(ActionQuery, 1).begins(NoOrderNo).queries(1, ObsNoAnswer).begins(NoOrderNo).queries(1,
		ObsNoAnswer).begins(NoOrderNo).is(StatusPending)
	s.queries(1, ObsDeclined).next(ActionSend, 0).begins(NewOrderNo).sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed).retries()
	s.next(ActionQuery, 1).queries(1, ObsDeclined).next(ActionQuery, 2).begins(NoOrderNo).queries(2,
		ObsDeclined).begins(NewOrderNo).sends(ObsSucceeded)
	if s.is(StatusPaid).owes(0).broke(); s.p.Attempt != 3 || s.attempts[2].OrderNo != OrderNo(s.p.ID, 3) {
		t.Errorf("attempt %d, %+v", s.p.Attempt, s.attempts)
	}
}

func TestR5_ReturnedIsFinal(t *testing.T) {
	s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).is(StatusReturned).owes(amount).retries()
	s.queries(1, ObsReturned).begins(NewOrderNo).sends(ObsSucceeded).is(StatusPaid).owes(0).broke()
}

// TestR5_QueryBeforeTheDecisionDoesNotCount: its answer comes after the decision, but it was put
// before.
func TestR5_QueryBeforeTheDecisionDoesNotCount(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined)
	stale := said(SourceQuery, s.attempt(1).OrderNo, ObsDeclined)
	stale.StartedAt = s.now
	s.retries()
	s.must(s.settle(1, stale))
	s.begins(NoOrderNo).next(ActionQuery, 1).queries(1, ObsDeclined).begins(NewOrderNo)
}

func TestR5_SameNumberAfterNeverReceived(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed).retries()
	s.queries(1, ObsNeverReceived).begins(SameOrderNo).sends(ObsSucceeded).is(StatusPaid).owes(0)
	if len(s.attempts) != 1 || s.attempts[0].Sends != 2 {
		t.Errorf("%+v", s.attempts)
	}
}

// TestR5_OneThatSucceededSettles: no new number is made, the payment is paid by the old one.
func TestR5_OneThatSucceededSettles(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).retries().queries(1, ObsSucceeded).is(StatusPaid).owes(0)
	if s.next(ActionEnd, 0); s.p.Attempt != 1 {
		t.Errorf("attempt %d", s.p.Attempt)
	}
	// After two confirmed refusals one statement is not enough.
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsSucceeded).is(StatusUnknown).begins(NoOrderNo)
	s.queries(1, ObsSucceeded).is(StatusPaid).broke(BreakContradiction)
}

func TestR5_AnythingElseIsUnknown(t *testing.T) {
	failed := func() *script { return story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries() }
	failed().queries(1, ObsPending).is(StatusUnknown).begins(NoOrderNo)
	failed().queries(1, ObsNeedsRecipient).is(StatusUnknown).begins(NoOrderNo)
	// Reported once against an earlier statement: queried again before a new number.
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).retries()
	s.queries(1, ObsDeclined).begins(NoOrderNo).next(ActionQuery, 1).queries(1, ObsDeclined).begins(NewOrderNo)
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).retries()
	s.queries(1, ObsReturned).begins(NoOrderNo).next(ActionQuery, 1).queries(1, ObsReturned).begins(NewOrderNo)
}

// TestR5_ReturnedThatIsPaidAgain: the provider reports that returned money has moved after all.
// Nothing is sent, nothing is booked twice, and there is a break for staff.
func TestR5_ReturnedThatIsPaidAgain(t *testing.T) {
	s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).retries()
	s.queries(1, ObsSucceeded).is(StatusUnknown).broke(BreakContradiction).begins(NoOrderNo)
	for range 20 {
		s.after(time.Hour).queries(1, ObsSucceeded).is(StatusUnknown).begins(NoOrderNo).next(ActionQuery, 1)
	}
	n := len(s.posted)
	if s.queries(1, ObsReturned).is(StatusReturned).owes(amount); len(s.posted) != n {
		t.Errorf("posted %v", s.posted)
	}
	// The same for every other answer about a returned order.
	for _, kind := range []ObservationKind{ObsPending, ObsNeedsRecipient, ObsDeclined, ObsNeverReceived} {
		s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).retries().queries(1, kind)
		s.is(StatusUnknown).begins(NoOrderNo)
		if s.queries(1, kind); s.p.Status != StatusUnknown || s.step().Do != ActionQuery {
			t.Errorf("%s: %s, %+v", kind, s.p.Status, s.step())
		}
		s.queries(1, ObsReturned).is(StatusReturned).owes(amount)
		refs := map[string]bool{}
		for _, p := range s.posted {
			if refs[p.Reference()] {
				t.Errorf("%s: %s posted twice", kind, p.Reference())
			}
			refs[p.Reference()] = true
		}
	}
}

func TestR5_AskUntil(t *testing.T) {
	old := limits.Remembers - 24*time.Hour
	s := story(t, KindPayout).sends(ObsNoAnswer).after(old).queries(1, ObsNeverReceived).is(StatusUnknown).next(ActionQuery,
		1).begins(NoOrderNo)
	s.queries(1, ObsSucceeded).is(StatusPaid)
	// Due to be sent again, but past QueryUntil.
	s = story(t, KindPayout).sends(ObsNoAnswer).queries(1,
		ObsNeverReceived).begins(SameOrderNo).after(old - time.Nanosecond).begins(SameOrderNo)
	s.after(time.Nanosecond).begins(NoOrderNo)
	if no, err := s.send(); no != "" || err != nil {
		t.Fatal(no, err)
	}
	s.is(StatusUnknown).next(ActionQuery, 1)
	// Refused and never received, after it: no proof. Staff decide from unknown.
	story(t, KindPayout).sends(ObsDeclined).after(old).queries(1, ObsNeverReceived).is(StatusUnknown).next(ActionQuery, 1)
	// A decision about a number too old to be sent.
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).after(old).retries().queries(1,
		ObsNeverReceived).begins(NoOrderNo)
	if no, err := s.send(); no != "" || err != nil {
		t.Fatal(no, err)
	}
	s.is(StatusUnknown)
	// A confirmed final number stays final when the provider has forgotten it.
	story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).after(old).retries().queries(1, ObsNeverReceived).begins(NewOrderNo)
	story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).after(old).retries().queries(1, ObsNeverReceived).begins(NewOrderNo)
}

// TestR5_MaxAttempts: two base32 digits are the limit.
func TestR5_MaxAttempts(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined)
	for no := 2; no <= MaxAttempts; no++ {
		s.begins(NewOrderNo)
		a := s.attempts[0]
		a.No, a.OrderNo = no, OrderNo(s.p.ID, no)
		s.attempts = append(s.attempts, a)
	}
	s.begins(NoOrderNo)
	if no, err := s.send(); no != "" || err != nil || s.p.Status != StatusUnknown {
		t.Fatal(no, err, s.p.Status)
	}
}

func TestR3_RecordedSendIsQueried(t *testing.T) {
	s := story(t, KindPayout).sends("").next(ActionQuery, 1).begins(NoOrderNo)
	if no, err := s.send(); no != "" || err != nil {
		t.Fatal("sent twice under one note", no, err)
	}
	s.queries(1, ObsNoAnswer).begins(NoOrderNo).queries(1, ObsNeverReceived).begins(SameOrderNo)
}

func TestR3_NextOfEveryStatus(t *testing.T) {
	for _, past := range pasts {
		s := story(t, KindPayout)
		past.live(s)
		step := s.step()
		wanted := slices.ContainsFunc(s.attempts, func(a Attempt) bool { return a.wanted() })
		if (s.p.Status.Open() || wanted) == (step.Do == ActionEnd) {
			t.Errorf("%s: %s, next %+v", past.name, s.p.Status, step)
		}
		// A notification or staff request a query: in any status.
		s.attempts[0].QueryWantedAt, s.attempts[0].NextAt = s.now, s.now // as the store does
		// An unanswered query stays requested; the number in progress is due before it.
		if s.attempts[0].consented() || s.p.OpenDecision == DecisionNotMoved { // two persons gave it up: no answer is an answer
			if s.next(ActionQuery, 1).queries(1, ObsNoAnswer); s.attempts[0].wanted() {
				t.Errorf("%s: asked for ever", past.name)
			}
			continue
		}
		own := ActionQuery
		if step.Do == ActionSend && s.p.Status != StatusPending {
			own = ActionSend
		}
		s.next(ActionQuery, 1).queries(1, ObsNoAnswer).next(own, len(s.attempts))
		if a := s.attempt(1); a.QueryWantedAt.IsZero() || !a.NextAt.After(s.now) {
			t.Errorf("%s: an unanswered query is repeated at once", past.name)
		}
	}
}

func TestPausesGrowAndAreCapped(t *testing.T) {
	last, old := time.Duration(0), Attempt{StartedAt: t0.Add(-999 * time.Hour)}
	for n := range 100 {
		p := old.pause(n, t0)
		if p < last || p > pauseCap || n < 9 && p != firstPause<<n {
			t.Fatalf("pause %d is %v after %v", n, p, last)
		}
		last = p
	}
	if last != pauseCap || old.pause(-1, t0) != firstPause || old.pause(1<<40, t0) != pauseCap {
		t.Errorf("last %v, before the first %v", last, old.pause(-1, t0))
	}
}

// TestPausesAfterOutage: after an outage every order is queried within a sixteenth of its length,
// however often it was tried.
func TestPausesAfterOutage(t *testing.T) {
	a := Attempt{StartedAt: t0}
	for age, want := range map[time.Duration]time.Duration{0: pauseShortest, 4 * time.Minute: 15 * time.Second,
		32 * time.Minute: 2 * time.Minute, 24 * time.Hour: pauseCap} {
		if got := a.pause(1000, t0.Add(age)); got != want {
			t.Errorf("after %v: %v, want %v", age, got, want)
		}
	}
	if got := a.pause(0, t0.Add(24*time.Hour)); got != firstPause {
		t.Errorf("the first pause is %v", got)
	}
}

// TestPausesOfEveryAnswer: an open payment whose provider gives the same answer for a day is not
// queried, or sent, more often than the pauses allow, and continues to the end of the day.
func TestPausesOfEveryAnswer(t *testing.T) {
	const day = 24 * time.Hour
	most := 30 + 2*(64+int(day/pauseCap)) // a send and its query per pause; 64 while the pauses still grow with the age
	for _, kind := range []Kind{KindPayout, KindCharge, KindRefund} {
		for _, sent := range allKinds {
			for _, queried := range allKinds {
				s := story(t, kind)
				steps := 0
				for step := s.step(); step.Do != ActionEnd && s.now.Sub(t0) < day && steps <= most; step = s.step() {
					steps++
					if step.At.After(s.now) {
						s.now = step.At
					}
					if step.Do == ActionSend {
						if no, err := s.send(); err != nil || no == "" {
							t.Fatalf("%c %s/%s: %q, %v", kind, sent, queried, no, err)
						}
						s.answers(SourceSend, 1, sent)
					} else {
						s.queries(1, queried)
					}
				}
				if steps > most {
					t.Errorf("%c, answers %s and %s: %d steps in %v", kind, sent, queried, steps, s.now.Sub(t0))
				}
			}
		}
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	s := story(t, KindPayout).sends("")
	o := said(SourceSend, s.attempt(1).OrderNo, ObsRetryAfter)
	o.RetryAfter = time.Hour
	s.must(s.settle(1, o))
	if at := s.next(ActionSend, 1).step().At; !at.Equal(s.now.Add(time.Hour)) {
		t.Errorf("again at %v", at)
	}
	s = story(t, KindPayout).sends("")
	o.Source = SourceQuery
	s.must(s.settle(1, o))
	if at := s.next(ActionQuery, 1).step().At; !at.Equal(s.now.Add(time.Hour)) {
		t.Errorf("queried again at %v", at)
	}
}

// TestR5_BookedIsNeverSent: whatever the next step in its row.
func TestR5_BookedIsNeverSent(t *testing.T) {
	a := Attempt{No: 1, Sends: 1, Next: ActionSend, QueryUntil: t0.Add(time.Hour), Statement: ObsNeverReceived, QueriedAt: t0}
	for _, status := range []Status{StatusSending, StatusUnknown, StatusPending} {
		p := Payment{Status: status, Attempt: 1, DecidedAt: t0.Add(-time.Minute)}
		a.Booked = false
		if got := ChooseOrderNo(p, []Attempt{a}, t0); got != SameOrderNo {
			t.Errorf("%s: %d", status, got)
		}
		a.Booked = true
		if got := ChooseOrderNo(p, []Attempt{a}, t0); got != NoOrderNo {
			t.Errorf("%s, booked: %d", status, got)
		}
	}
	a.Booked, a.EarlierSendsUntil = false, t0.Add(time.Second)
	if got := ChooseOrderNo(Payment{Status: StatusPending, Attempt: 1, DecidedAt: t0.Add(-time.Minute)}, []Attempt{a}, t0); got != NoOrderNo {
		t.Errorf("open: %d", got)
	}
}

// TestR5_EveryNumberIsQueriedAgain: the first of two numbers contradicts its last statement. It is
// queried again although the second is the current one, and settles the payment when it repeats the
// statement: nothing was sent since.
func TestR5_EveryNumberIsQueriedAgain(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined)
	s.sends(ObsDeclined).queries(2, ObsDeclined).retries().queries(1,
		ObsSucceeded).broke(BreakContradiction).is(StatusPending).next(ActionQuery, 2).queries(2, ObsDeclined).next(ActionQuery, 1)
	if n := ChooseOrderNo(s.p, s.attempts, s.now); n != NoOrderNo {
		t.Errorf("begins %d", n)
	}
	s.queries(1, ObsSucceeded).is(StatusPaid).owes(0).next(ActionEnd, 0)
	if s.p.Attempt != 1 {
		t.Errorf("under %d", s.p.Attempt)
	}
}

// TestFinalNumberIsQueried: a number with a final outcome is queried when the payment is opened
// again, not sent.
func TestFinalNumberIsQueried(t *testing.T) {
	for _, last := range []ObservationKind{ObsSucceeded, ObsReturned} {
		s := story(t, KindPayout).sends(ObsNotSent).next(ActionSend, 1).queries(1, last)
		if a := s.attempt(1); a.Next != ActionQuery {
			t.Errorf("%s: next %s", last, a.Next)
		}
	}
}
