package payout

import (
	"errors"
	"testing"
	"time"
)

// TestRecipientAction: a failed or returned payout always says what the recipient can do, a moving
// or ended one never, and only failures of the catalogue have an action of their own.
func TestRecipientAction(t *testing.T) {
	listed := map[string]bool{}
	for _, f := range FailureCodes {
		listed[f.Code] = true
	}
	for code := range recipientActions {
		if !listed[code] {
			t.Errorf("%q is not in FailureCodes", code)
		}
	}
	for _, s := range Statuses {
		for code, want := range map[string]RecipientAction{
			"account_frozen": RecipientFixAccount, "confirmation_expired": RecipientConfirm, "declined": RecipientWait, "brand_new": RecipientWait,
		} {
			switch s {
			case StatusFailed, StatusReturned:
			case StatusAwaitingRecipient:
				want = RecipientConfirm
			default:
				want = ""
			}
			if got := RecipientActionOf(s, code); got != want {
				t.Errorf("%s, %s: %q, want %q", s, code, got, want)
			}
		}
	}
}

// TestSetRecipient: the recipient changes before the first send and after a failure, never between. What the
// recipient had to correct is retried, as long as no second person is needed and at most three times.
func TestSetRecipient(t *testing.T) {
	now := time.Now()
	failed := func(code string) Payment {
		return Payment{ID: "p", Kind: KindPayout, Status: StatusFailed, Failure: &Failure{Code: code}, Amount: 1}
	}
	sent := func(n int) (out []Attempt) {
		for i := range n {
			out = append(out, Attempt{No: i + 1, Account: "old", Sends: 1, Statement: ObsDeclined, EndedAt: now})
		}
		return out
	}
	moving := Payment{ID: "p", Kind: KindPayout, Status: StatusUnknown}
	charge := Payment{ID: "c", Kind: KindCharge, Status: StatusPending}
	again := Payment{ID: "p", Kind: KindPayout, Status: StatusPending}
	two, honour, deciding := failed("account_frozen"), failed("account_frozen"), failed("account_frozen")
	two.NeedsSecondPerson, honour.Kind, deciding.OpenDecision = true, KindHonour, DecisionCancel
	for what, c := range map[string]struct {
		p        Payment
		attempts []Attempt
		again    bool
		err      error
	}{
		"not sent":                      {p: again},
		"sent, to be sent again":        {p: again, attempts: sent(1), err: ErrRecipientFixed},
		"under way":                     {p: moving, attempts: sent(1), err: ErrRecipientFixed},
		"of a charge":                   {p: charge, err: ErrRecipientFixed},
		"wrong account":                 {p: failed("account_frozen"), attempts: sent(1), again: true},
		"wrong name":                    {p: failed("payee_name_differs"), attempts: sent(3), again: true},
		"wrong name, the fourth time":   {p: failed("payee_name_differs"), attempts: sent(4)},
		"not confirmed":                 {p: failed(FailureNotConfirmed), attempts: sent(1)},
		"for finance":                   {p: failed("declined"), attempts: sent(1)},
		"needs a second person":         {p: two, attempts: sent(1)},
		"of an honoured share conflict": {p: honour, attempts: sent(1)},
		"a cancel is under way":         {p: deciding, attempts: sent(1), err: ErrDecisionPending},
	} {
		p := c.p
		got, err := SetRecipient(&p, c.attempts, Recipient{Account: "new", SealedName: "n", Authorization: "a"}, now)
		if got != c.again || !errors.Is(err, c.err) {
			t.Errorf("%s: %t, %v", what, got, err)
		}
		if want := (Recipient{"new", "n", "a"}); c.err == nil && (p.Recipient() != want || p.Status != c.p.Status) ||
			c.err != nil && p.Recipient() != c.p.Recipient() {
			t.Errorf("%s: %+v", what, p)
		}
	}
}

// TestAnswerAboutTheEarlierAccount: an answer is compared with the account in the request of its own number.
func TestAnswerAboutTheEarlierAccount(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed)
	o := said(SourceQuery, s.attempt(1).OrderNo, ObsDeclined)
	o.Account, s.p.Account = s.p.Account, "new"
	s.must(s.settle(1, o))
	s.broke().retries().queries(1, ObsDeclined).sends("")
	o = said(SourceSend, s.attempt(2).OrderNo, ObsSucceeded)
	o.Account = "new"
	s.must(s.settle(2, o))
	s.is(StatusPaid).broke()
}

// confirms settles that the recipient has to confirm, with sealed client data; nil: none.
func (s *script) confirms(source Source, action []byte) *script {
	s.t.Helper()
	o := said(source, s.attempt(1).OrderNo, ObsNeedsRecipient)
	o.SealedAction = action
	s.must(s.settle(1, o))
	return s.is(StatusAwaitingRecipient)
}

// TestRecipientGetsClientData: client data is kept until the payout has ended. While there is none, the same
// order number is sent again, and queries do not put that off.
func TestRecipientGetsClientData(t *testing.T) {
	s := story(t, KindPayout).sends("").confirms(SourceSend, []byte("sealed")).next(ActionQuery, 1)
	s.after(time.Hour).confirms(SourceQuery, nil).next(ActionQuery, 1)
	if no, err := s.send(); no != "" || err != nil {
		t.Errorf("sent %q, %v", no, err)
	}
	if a := s.attempt(1); string(a.SealedAction) != "sealed" || a.Sends != 1 {
		t.Errorf("%+v", a)
	}
	if s.queries(1, ObsSucceeded).is(StatusPaid); s.attempt(1).SealedAction != nil {
		t.Error("kept after the end")
	}
	late := said(SourceSend, s.attempt(1).OrderNo, ObsNeedsRecipient)
	late.SealedAction = []byte("late")
	if s.must(s.settle(1, late)); s.attempt(1).SealedAction != nil {
		t.Error("stored after the end")
	}

	s = story(t, KindPayout).sends(ObsNoAnswer).is(StatusUnknown).confirms(SourceQuery, nil)
	for range 20 { // the provider notifies, and staff query
		s.after(20*time.Millisecond).confirms(SourceQuery, nil)
	}
	s.after(firstPause).next(ActionSend, 1).sends("").is(StatusAwaitingRecipient)
	s.confirms(SourceSend, nil).after(2*firstPause).next(ActionSend, 1).sends("").confirms(SourceSend, []byte("sealed"))
	if a := s.attempt(1); a.Sends != 3 || len(s.attempts) != 1 || string(a.SealedAction) != "sealed" {
		t.Errorf("%d sends of %d numbers, %q", a.Sends, len(s.attempts), a.SealedAction)
	}
	s.next(ActionQuery, 1).queries(1, ObsDeclined).queries(1, ObsDeclined).is(StatusFailed)
	if s.attempt(1).SealedAction != nil {
		t.Error("kept after a failure")
	}

	s = story(t, KindPayout).sends(ObsNoAnswer).confirms(SourceQuery, nil)
	s.now = s.attempt(1).QueryUntil
	if no, err := s.send(); no != "" || err != nil {
		t.Errorf("after the provider may have forgotten it: sent %q, %v", no, err)
	}
	s.is(StatusAwaitingRecipient).confirms(SourceQuery, nil).next(ActionQuery, 1)
	s.queries(1, ObsSucceeded).is(StatusPaid) // nothing was contradicted

	s = story(t, KindPayout).sends(ObsNoAnswer).confirms(SourceQuery, nil).after(firstPause)
	s.sends(ObsNoAnswer).is(StatusAwaitingRecipient).next(ActionQuery, 1).queries(1, ObsSucceeded).is(StatusPaid)
}

// TestR4_OrderWithoutClientDataIsClosed: a provider that does not give what the recipient needs, however often the
// order is sent, is asked to close the order. Only queries fail it, and then the recipient can confirm another one.
func TestR4_OrderWithoutClientDataIsClosed(t *testing.T) {
	waits := func() *script {
		s := story(t, KindPayout).sends("").confirms(SourceSend, nil)
		for s.step().Do != ActionClose {
			s.now = maxTime(s.now, s.step().At)
			if s.step().Do == ActionSend {
				s.sends("").confirms(SourceSend, nil)
			} else {
				s.confirms(SourceQuery, nil)
			}
		}
		if a := s.attempt(1); a.Sends != sendsForAction || len(s.attempts) != 1 {
			t.Fatalf("closed after %d sends of %d numbers", a.Sends, len(s.attempts))
		}
		return s.due(ActionClose, 0)
	}
	s := waits()
	s.recordClose(false)
	s.due(ActionClose, firstPause)
	s.recordClose(true)
	s.due(ActionQuery, 0).confirms(SourceQuery, nil).due(ActionClose, firstPause) // it had no effect
	s.recordClose(true)
	late := said(SourceSend, s.attempt(1).OrderNo, ObsNeedsRecipient)
	late.SealedAction = []byte("late")
	if s.must(s.settle(1, late)); s.attempt(1).SealedAction != nil {
		t.Error("the recipient gets what is being closed")
	}
	s.after(firstPause)
	s.recordClose(true)
	cancelled := func() {
		o := said(SourceQuery, s.attempt(1).OrderNo, ObsDeclined)
		o.Code = failureTransferCancelled
		s.must(s.settle(1, o))
	}
	cancelled()
	s.is(StatusAwaitingRecipient).after(time.Second)
	cancelled()
	if s.is(StatusFailed).broke(); s.p.Failure.Code != FailureNotConfirmed || s.p.Failure.Message != messageNothingToConfirm ||
		CheckConfirmAgain(s.p, s.attempts, s.now) != nil {
		t.Errorf("%+v", s.p.Failure)
	}
	if s.retries().queries(1, ObsDeclined).sends(""); len(s.attempts) != 2 || s.p.closing() {
		t.Errorf("%d numbers, closing %t", len(s.attempts), s.p.closing())
	}

	s = waits()
	s.recordClose(true)
	s.queries(1, ObsSucceeded).is(StatusPaid).broke()
	s = waits()
	s.recordClose(true)
	s.queries(1, ObsNeverReceived).is(StatusUnknown).next(ActionSend, 1) // not a failure: it is sent again
	if s.p.closing() {
		t.Error("what the provider does not have is to be closed")
	}
}
