package payout

import (
	"errors"
	"testing"
	"time"
)

// TestR5_LaterNumberThanThePaidOne: the second number was refused, and then the first one, refused
// before, was carried out after all and returned. A retry queries both; one contradictory answer
// makes the outcome unknown. From then on the provider repeats its earlier statement, and staff may
// decide again.
func TestR5_LaterNumberThanThePaidOne(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined)
	s.sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed)
	s.queries(1, ObsSucceeded).queries(1, ObsSucceeded).is(StatusPaid).owes(0)
	s.queries(1, ObsReturned).is(StatusReturned).owes(amount).retries()
	s.queries(1, ObsPending).is(StatusUnknown)
	for range 20 {
		step := s.step()
		if step.Do != ActionQuery {
			break
		}
		s.now = maxTime(s.now, step.At)
		if step.OrderNo == s.attempt(1).OrderNo {
			s.queries(1, ObsReturned)
		} else {
			s.queries(2, ObsDeclined)
		}
	}
	if s.p.Status.Open() {
		t.Fatalf("%s, and next is %+v", s.p.Status, s.step())
	}
	s.owes(amount)
}

// TestR5_NoRetryBesideAPaidNumber: while the recipient has the money of a later number, the payment is
// not retried, and the return of that number moves no money that is owed.
func TestR5_NoRetryBesideAPaidNumber(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined)
	s.sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed)
	s.queries(1, ObsSucceeded).queries(1, ObsSucceeded).queries(1, ObsReturned).is(StatusReturned).owes(amount)
	s.queries(2, ObsSucceeded).queries(2, ObsSucceeded).is(StatusReturned)
	if err := s.retry(); !errors.Is(err, ErrNotRetryable) {
		t.Errorf("a retry after a second success: %v", err)
	}
	s.queries(2, ObsReturned).is(StatusReturned).owes(amount).retries()
}

// TestR5_PaidAgainAfterItsReturn: a returned number that is reported as paid while the payment is
// failed stops a retry until the provider says otherwise.
func TestR5_PaidAgainAfterItsReturn(t *testing.T) {
	s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).retries().queries(1, ObsReturned)
	s.sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed).queries(1, ObsSucceeded).broke(BreakContradiction)
	if err := s.retry(); !errors.Is(err, ErrNotRetryable) {
		t.Errorf("a retry although the recipient is reported as paid: %v", err)
	}
	s.queries(1, ObsReturned).retries().is(StatusPending)
}

// TestR5_ReturnedThatMovesAgain: a returned number that is reported as in progress while the payment is
// failed or returned stops the number after it until the provider repeats an end.
func TestR5_ReturnedThatMovesAgain(t *testing.T) {
	for _, again := range []ObservationKind{ObsPending, ObsNeedsRecipient, ObsSucceeded} {
		s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).retries().queries(1, ObsReturned)
		s.sends(ObsNoAnswer).after(time.Hour).queries(2, ObsDeclined).queries(2, ObsDeclined).is(StatusFailed)
		s.queries(1, again).broke(BreakContradiction).is(StatusFailed).next(ActionQuery, 1)
		if again != ObsSucceeded { // a retry is refused
			s.retries().queries(2, ObsPending).is(StatusUnknown).queries(2, ObsNeverReceived).begins(NoOrderNo)
		}
		s.queries(1, ObsDeclined).begins(NoOrderNo).next(ActionQuery, 1)
		s.queries(1, ObsDeclined)
		if s.attempt(1).wanted() {
			t.Errorf("%s: asked for ever", again)
		}
	}
}
