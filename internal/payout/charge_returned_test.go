package payout

import (
	"errors"
	"testing"
)

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

// TestR12_ChargeReturned: a booked charge is reported as returned. Repeated by a query, the house pays
// what is owed, and the packet is held. It counts once.
func TestR12_ChargeReturned(t *testing.T) {
	s := story(t, KindCharge).sends(ObsSucceeded).queries(1, ObsReturned).is(StatusPaid).next(ActionQuery, 1)
	if h := s.last.Hold(); h != nil {
		t.Errorf("reported once: %+v", h)
	}
	s.queries(1, ObsReturned).is(StatusReturned).next(ActionEnd, 0)
	if h := s.last.Hold(); h == nil || h.Scope != HoldPacket || h.Name != s.p.PacketID || h.Kind != HoldChargeReturned {
		t.Errorf("%+v", h)
	}
	for _, later := range []ObservationKind{ObsReturned, ObsSucceeded, ObsDeclined, ObsPending, ObsNeverReceived} {
		s.queries(1, later).is(StatusReturned)
	}
	if len(s.posted) != 2 || s.posted[1] != NewTransfer(PostChargeReturned, s.posted[0].OrderNo, amount) {
		t.Errorf("posted %v", s.posted)
	}
	payout := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).queries(1, ObsReturned)
	if h := payout.last.Hold(); h != nil {
		t.Errorf("a payout that was returned: %+v", h)
	}
}

// TestR12_RefundTakenBack: a refund that its sender must not get is cancelled by two persons, before
// it was sent or after it has failed; any other refund is not.
func TestR12_RefundTakenBack(t *testing.T) {
	for _, kind := range []TransferKind{PostRefundKept, PostRefundDropped} {
		unsent := story(t, KindRefund)
		failed := story(t, KindRefund).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed)
		lost := story(t, KindRefund).sends(ObsNoAnswer).queries(1, ObsNeverReceived).is(StatusUnknown)
		for name, s := range map[string]*script{"unsent": unsent, "failed": failed, "never received": lost} {
			if err := CheckDecision(s.p, s.attempts, DecisionCancel, t0); !errors.Is(err, ErrNotRetryable) {
				t.Fatalf("%s, owed to its sender: %v", name, err)
			}
			s.p.TakenBack = kind
			if !NeedsApproval(s.p, s.attempts, DecisionRequest{Kind: DecisionCancel}, s.now) {
				t.Errorf("%s: one person is enough", name)
			}
			s.decides(DecisionCancel, true)
			if got := ChooseOrderNo(s.p, s.attempts, s.now); got != NoOrderNo {
				t.Errorf("%s: it is sent while it is being cancelled: %v", name, got)
			}
			switch name {
			case "failed":
				s.next(ActionQuery, 1).queries(1, ObsDeclined)
			case "never received":
				s.next(ActionQuery, 1).queries(1, ObsNeverReceived).after(limits.LandingWindow+LeaveWithin).next(ActionQuery, 1)
				s.queries(1, ObsNeverReceived)
			}
			s.next(ActionCarryOut, 0)
			p := s.p
			e, ok, err := CarryOut(&p, s.attempts, s.now)
			if err != nil || !ok || p.Status != StatusCancelled || len(e.Transfers) != 1 || e.Transfers[0] != NewTransfer(kind, p.ID, amount) {
				t.Errorf("%s: %+v, %t, %v, %s", name, e, ok, err, p.Status)
			}
			p = s.p
			p.TakenBack = "" // the money of the second success was returned
			if e, ok, err := CarryOut(&p, s.attempts, s.now); err != nil || !ok || e.Status != DecisionOvertaken || p.OpenDecision != "" {
				t.Errorf("%s, owed again: %+v, %t, %v", name, e, ok, err)
			}
		}
	}
	paid := story(t, KindRefund).sends(ObsNoAnswer)
	paid.p.TakenBack = PostRefundKept
	if paid.decides(DecisionCancel, true).queries(1, ObsSucceeded).is(StatusPaid); paid.p.OpenDecision != "" {
		t.Error("the sender has the refund, and its cancel is still open")
	}
	if got := TakeBack(StatusPaid, nil); got != "" {
		t.Errorf("an ordinary remainder: %q", got)
	}
	back := []Attempt{{No: 1, Booked: true, ReturnBooked: true}}
	if got := TakeBack(StatusPaid, back); got != "" {
		t.Errorf("the money of the payout was returned: %q", got)
	}
	if got := TakeBack(StatusPaid, append(back, Attempt{No: 2, Booked: true})); got != PostRefundDropped {
		t.Errorf("the payout has reached its recipient: %q", got)
	}
	if got := TakeBack(StatusReturned, back); got != PostRefundKept {
		t.Errorf("the charge was returned: %q", got)
	}
}
