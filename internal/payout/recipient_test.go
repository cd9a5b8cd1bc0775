package payout

import (
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
