package payout

import (
	"testing"
	"time"
)

// TestR5_CancelOfRefused: a payout was returned, two persons cancel it, and then the provider
// reports it as refused. When that is repeated, the recipient does not have the money: the cancel
// is carried out and does not stay open.
func TestR5_CancelOfRefused(t *testing.T) {
	ends := func(s *script, says map[int]ObservationKind) {
		t.Helper()
		for range 200 {
			step := s.step()
			s.now = maxTime(s.now, step.At)
			if step.Do != ActionQuery {
				break
			}
			parts, err := Parse(step.OrderNo)
			s.must(err)
			s.queries(parts.Attempt, says[parts.Attempt])
		}
		if got, err := s.carryOut(); got != DecisionCarriedOut || err != nil {
			t.Errorf("%s, %v; next %+v", got, err, s.step())
		}
	}
	s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).is(StatusReturned)
	s.must(s.decide(DecisionCancel, true))
	ends(s.after(time.Second), map[int]ObservationKind{1: ObsDeclined})

	s = story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).retries().queries(1, ObsReturned).sends(ObsSucceeded).queries(2,
		ObsReturned)
	s.must(s.decide(DecisionCancel, true))
	ends(s.after(time.Second).queries(1, ObsPending), map[int]ObservationKind{1: ObsDeclined, 2: ObsReturned})
}

// TestR5_CancelOfNeverReceived: the provider knows nothing of a number of which two persons stated that
// its money has not moved. The cancel does not wait for the end of the provider's memory.
func TestR5_CancelOfNeverReceived(t *testing.T) {
	s := story(t, KindPayout).sends(ObsRetryAfter).after(time.Minute)
	s.must(s.decide(DecisionNotMoved, true))
	s.after(time.Second).queries(1, ObsNoAnswer).next(ActionCarryOut, 0)
	_, err := s.carryOut()
	s.must(err)
	s.is(StatusFailed).cancels(ObsNeverReceived)
}
