package payout

import "testing"

// TestR2_ReturnedChargeFails: the provider reports a charge as returned whose success was never
// seen. When that is repeated, the charge has failed: the packet is rejected and does not stay
// funding.
func TestR2_ReturnedChargeFails(t *testing.T) {
	s := story(t, KindCharge).sends(ObsNoAnswer)
	for range 20 {
		if s.step().Do != ActionQuery {
			break
		}
		s.now = maxTime(s.now, s.step().At)
		s.queries(1, ObsReturned)
	}
	s.is(StatusFailed).next(ActionEnd, 0)
	if len(s.posted) != 0 || s.p.Failure.Code != "returned" {
		t.Errorf("posted %v, failed with %+v", s.posted, s.p.Failure)
	}
}
