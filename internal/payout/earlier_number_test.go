package payout

import "testing"

// TestR5_EarlierNumberNotKnown: "never received" for an earlier number proves nothing. No third
// number is made, and the second one is not sent again either.
func TestR5_EarlierNumberNotKnown(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed).retries().queries(1, ObsDeclined)
	s.begins(NewOrderNo).sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed).retries()
	s.queries(1, ObsNeverReceived).queries(2, ObsDeclined).begins(NoOrderNo)
	s.queries(1, ObsDeclined).begins(NoOrderNo).queries(1, ObsDeclined).begins(NewOrderNo)
}
