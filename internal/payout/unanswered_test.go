package payout

import (
	"testing"
	"time"
)

// TestR12_NotifiedOrderIsQueriedUntilAnswered: a notification of a return proves nothing and must
// not be lost. An answer without information about an accepted order leaves the query requested.
func TestR12_NotifiedOrderIsQueriedUntilAnswered(t *testing.T) {
	for _, evasive := range []ObservationKind{ObsNeverReceived, ObsPending, ObsNeedsRecipient, ObsDeclined, ObsNoAnswer} {
		t.Run("paid, then "+string(evasive), func(t *testing.T) {
			s := story(t, KindPayout).sends(ObsSucceeded).is(StatusPaid).next(ActionEnd, 0)
			s.attempt(1).QueryWantedAt = s.now // the notification
			for range 4 {
				s.after(time.Hour).queries(1, evasive).is(StatusPaid).next(ActionQuery, 1)
			}
			s.after(time.Hour).queries(1, ObsReturned).is(StatusReturned).next(ActionEnd, 0)
		})
	}
	t.Run("failed, then never received", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsDeclined)
		s.attempt(1).ProviderRef = "x1"
		s.queries(1, ObsDeclined).is(StatusFailed).next(ActionEnd, 0)
		s.attempt(1).QueryWantedAt = s.now
		s.after(time.Hour).queries(1, ObsNeverReceived).is(StatusFailed).next(ActionQuery, 1)
		s.after(time.Hour).queries(1, ObsSucceeded).queries(1, ObsSucceeded).is(StatusPaid)
	})
	t.Run("refused and never received: that is an answer", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed)
		s.attempt(1).QueryWantedAt = s.now
		s.after(time.Hour).queries(1, ObsNeverReceived).is(StatusFailed).next(ActionEnd, 0)
	})
	t.Run("forgotten: nothing more will be said", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsSucceeded).is(StatusPaid)
		s.attempt(1).QueryWantedAt = s.now
		s.after(60*24*time.Hour).queries(1, ObsNeverReceived).is(StatusPaid).next(ActionEnd, 0)
	})
}
