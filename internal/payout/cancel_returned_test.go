package payout

import (
	"errors"
	"testing"
	"time"
)

// TestR5_CancelOfPaidAgain: a payout was returned, two persons cancel it, and a query reports that
// the money has moved after all. The cancel is overtaken, as a retry would be, and another one is refused:
// the sender is not refunded what the recipient has.
func TestR5_CancelOfPaidAgain(t *testing.T) {
	returned := func() *script {
		s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).is(StatusReturned)
		s.must(s.decide(DecisionCancel, true))
		return s.after(time.Second).next(ActionQuery, 1)
	}
	carries := func(s *script, want DecisionStatus, status Status) {
		t.Helper()
		if got, err := s.carryOut(); got != want || err != nil {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
		s.is(status)
	}
	carries(returned().queries(1, ObsReturned).next(ActionCarryOut, 0), DecisionCarriedOut, StatusCancelled)
	s := returned().queries(1, ObsSucceeded).broke(BreakContradiction).next(ActionCarryOut, 0)
	carries(s, DecisionOvertaken, StatusReturned)
	s.owes(amount).next(ActionEnd, 0)
	if err := CheckDecision(s.p, s.attempts, DecisionCancel, s.now); !errors.Is(err, ErrNotRetryable) {
		t.Errorf("cancelled again, although the recipient has the money: %v", err)
	}
	s.must(s.decide(DecisionMarkPaid, true)) // it waits for a decision again
	// In progress, refused or unknown: queried until it is returned, or has moved.
	for _, kind := range []ObservationKind{ObsPending, ObsNeedsRecipient, ObsDeclined, ObsNeverReceived} {
		s := returned().queries(1, kind).next(ActionQuery, 1)
		carries(s, DecisionOpen, StatusReturned)
		carries(s.queries(1, ObsReturned).next(ActionCarryOut, 0), DecisionCarriedOut, StatusCancelled)
	}
	// The same for a superseded number.
	for _, kind := range []ObservationKind{ObsSucceeded, ObsPending} {
		s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).retries().queries(1, ObsReturned).sends(ObsSucceeded).queries(2,
			ObsReturned)
		s.must(s.decide(DecisionCancel, true))
		s.after(time.Second).queries(1, kind).queries(2, ObsReturned)
		if status, err := s.carryOut(); status == DecisionCarriedOut || err != nil || s.p.Status == StatusCancelled {
			t.Errorf("%s of a superseded number: %s, %v, %s", kind, status, err, s.p.Status)
		}
	}
}

// TestR5_CancelAfterAContradiction: after a success reported once, one refusal is not enough for a
// cancel, as it is not for a failure.
func TestR5_CancelAfterAContradiction(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed)
	s.must(s.decide(DecisionCancel, true))
	s.after(time.Second).queries(1, ObsSucceeded).queries(1, ObsDeclined).next(ActionQuery, 1).queries(1, ObsDeclined).next(ActionCarryOut, 0)
}
