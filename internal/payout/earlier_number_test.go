package payout

import "testing"

// TestR5_EarlierNumberNotKnown: "never received" for an earlier number proves nothing. No third
// number is made, and the second one is not sent again either.
func TestR5_EarlierNumberNotKnown(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).asks(1, ObsDeclined).is(StatusFailed).retries().asks(1, ObsDeclined)
	s.begins(NewOrderNo).sends(ObsDeclined).asks(2, ObsDeclined).is(StatusFailed).retries()
	s.asks(1, ObsNeverReceived).asks(2, ObsDeclined).begins(NoOrderNo)
	s.asks(1, ObsDeclined).begins(NoOrderNo).asks(1, ObsDeclined).begins(NewOrderNo)
}
