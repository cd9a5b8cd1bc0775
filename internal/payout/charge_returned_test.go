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

// TestR12_ChargeCameBack: a booked charge is reported as returned. Repeated by a query, the packet is
// held; a single report, or one of another kind of payment, holds nothing.
func TestR12_ChargeCameBack(t *testing.T) {
	s := story(t, KindCharge).sends(ObsSucceeded)
	var holds []Hold
	for range 3 {
		s.queries(1, ObsReturned)
		if h := s.last.Hold(); h != nil {
			holds = append(holds, *h)
		}
		s.is(StatusPaid)
	}
	if len(holds) != 2 || holds[0].Scope != HoldPacket || holds[0].Name != s.p.PacketID || holds[0].Kind != HoldChargeReturned ||
		holds[0].Cause != holds[1].Cause {
		t.Errorf("%+v", holds)
	}
	payout := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).queries(1, ObsReturned)
	if h := payout.last.Hold(); h != nil {
		t.Errorf("a payout that was returned: %+v", h)
	}
}
