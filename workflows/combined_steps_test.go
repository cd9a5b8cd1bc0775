package workflows

import (
	"cmp"
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

func outcome(o activities.Outcome) *activities.Outcome { return &o }

// TestAdvanceCourses: a packet is opened, and closed, by one local activity each if possible. The rest
// continues with single activities: visible, and with unlimited retries.
func TestAdvanceCourses(t *testing.T) {
	unsettled := sent(payout.ObsSucceeded, ready(payout.StatusSending, payout.ActionQuery, time.Time{}))
	unsettled.Unsettled, unsettled.OrderNo = true, chargeNo
	funding, taken := packet.Facts{Status: packet.StatusFunding}, packet.Facts{Status: packet.StatusFunding, Charge: packet.ChargeTaken}
	open := packet.Facts{Status: packet.StatusOpen}
	for name, tc := range map[string]struct {
		opened activities.Advanced
		err    error
		then   []string
	}{
		"open":     {opened: activities.Advanced{Facts: packet.Facts{Status: packet.StatusOpen, Pool: packet.PoolUsed}}},
		"broke":    {err: errBroke, then: opening[1:]},
		"recorded": {opened: activities.Advanced{Facts: funding}, then: opening[2:]},
		"charge due": {opened: activities.Advanced{Facts: funding,
			Charge: outcome(activities.Outcome{State: ready(payout.StatusPending, payout.ActionSend, time.Time{})})}, then: opening[3:]},
		"charge unknown": {opened: activities.Advanced{Facts: funding,
			Charge: outcome(sent(payout.ObsNoAnswer, ready(payout.StatusUnknown, payout.ActionQuery, time.Time{})))},
			then: steps([]string{"Ask", "Settle succeeded"}, opening[4:])},
		"charge's answer not settled": {opened: activities.Advanced{Facts: funding, Charge: &unsettled},
			then: steps([]string{"Settle succeeded"}, opening[4:])},
		"charged":                  {opened: activities.Advanced{Facts: taken}, then: opening[5:]},
		"funded":                   {opened: activities.Advanced{Facts: open}, then: opening[6:]},
		"closed by an earlier run": {opened: activities.Advanced{Facts: packet.Facts{Status: packet.StatusClosed}}, then: []string{"FinishPacket"}},
		"rejected by an earlier run": {opened: activities.Advanced{Facts: packet.Facts{Status: packet.StatusRejected}},
			then: []string{"RejectPacket"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			p.advance = func(f packet.Facts) (activities.Advanced, error) {
				switch {
				case f.Status == "":
					return tc.opened, tc.err
				case f.Reason == "":
					return activities.Advanced{}, errBroke
				}
				f.Status, f.Finished = packet.StatusClosed, true
				return activities.Advanced{Facts: f}, nil
			}
			p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
			p.result(t)
			end, after := []string{"Advance expired"}, time.Hour
			if ended := tc.opened.Facts.Status; ended == packet.StatusClosed || ended == packet.StatusRejected {
				end, after = nil, 0
			}
			p.want(t, steps([]string{"Advance"}, tc.then, end)...)
			if late := p.elapsed() - after; late < 0 || late > 2*time.Second {
				t.Errorf("ended after %v", p.elapsed())
			}
		})
	}
	all := closing(packet.CloseExpired, "FinishPacket")[1:]
	for name, tc := range map[string]struct {
		closed func(*packet.Facts)
		err    error
		then   []string
		result string
	}{
		"a refund": {closed: func(f *packet.Facts) {
			f.Status, f.Pool, f.Remainder = packet.StatusClosing, packet.PoolEnded, new(money.Fen(7))
		}, result: "expired: 0.07 go back by refund/" + packetID + "/0"},
		"broke":        {err: errBroke, then: all},
		"nothing done": {closed: func(*packet.Facts) {}, then: all},
		"closing":      {closed: func(f *packet.Facts) { f.Status = packet.StatusClosing }, then: all[1:]},
		"claims not recorded": {closed: func(f *packet.Facts) { f.Status, f.Pool = packet.StatusClosing, packet.PoolEnded },
			then: all[2:]},
		"books closed": {closed: func(f *packet.Facts) {
			f.Status, f.Pool, f.Remainder = packet.StatusClosing, packet.PoolEnded, new(money.Fen)
		}, then: all[4:]},
	} {
		t.Run("closing: "+name, func(t *testing.T) {
			p := newParts(t)
			normal := p.advance
			p.advance = func(f packet.Facts) (activities.Advanced, error) {
				if f.Reason == "" {
					return normal(f)
				}
				if tc.err == nil {
					tc.closed(&f)
				}
				return activities.Advanced{Facts: f}, tc.err
			}
			p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
			if got := p.result(t); got != cmp.Or(tc.result, "expired: nothing remained") {
				t.Errorf("result %q", got)
			}
			p.want(t, steps([]string{"Advance", "Advance expired"}, tc.then)...)
		})
	}
}

// TestRefundNowCourses: a refund is sent and its packet closed by one local activity if possible.
func TestRefundNowCourses(t *testing.T) {
	unbooked := sent(payout.ObsSucceeded, ready(payout.StatusSending, payout.ActionQuery, time.Time{}))
	unbooked.Unsettled, unbooked.OrderNo = true, "r"+packetID+"000001"
	for name, tc := range map[string]struct {
		done  activities.Refunded
		err   error
		then  []string
		fails bool
	}{
		"paid and closed": {done: activities.Refunded{Outcome: sent(payout.ObsSucceeded, ended(payout.StatusPaid)), PacketClosed: true}},
		"paid": {done: activities.Refunded{Outcome: sent(payout.ObsSucceeded, ended(payout.StatusPaid))},
			then: []string{"FinishPacket"}},
		"broke": {err: errBroke, then: []string{"ReadPayment " + refundID, "Send", "FinishPacket"}},
		"due": {done: activities.Refunded{Outcome: activities.Outcome{State: ready(payout.StatusPending, payout.ActionSend, time.Time{})}},
			then: []string{"Send", "FinishPacket"}},
		"unbooked": {done: activities.Refunded{Outcome: unbooked}, then: []string{"Settle succeeded", "FinishPacket"}},
		"unknown": {done: activities.Refunded{Outcome: sent(payout.ObsNoAnswer, ready(payout.StatusUnknown, payout.ActionQuery, time.Time{}))},
			then: []string{"Ask", "Settle succeeded", "FinishPacket"}},
		"declined": {done: activities.Refunded{Outcome: sent(payout.ObsDeclined, ended(payout.StatusFailed))}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			p.refundNow = func() (activities.Refunded, error) { return tc.done, tc.err }
			p.env.ExecuteWorkflow(Refund, RefundInput{PaymentID: refundID, PacketID: packetID})
			if err := p.env.GetWorkflowError(); (err != nil) != tc.fails {
				t.Errorf("ended with %v", err)
			}
			p.want(t, steps([]string{"RefundNow " + refundID}, tc.then)...)
		})
	}
}
