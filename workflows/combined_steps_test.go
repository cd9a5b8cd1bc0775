package workflows

import (
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

func outcome(o activities.Outcome) *activities.Outcome { return &o }

// TestOpenNowCourses: a packet is opened by one local activity if possible. The rest continues
// with single activities: visible, and with unlimited retries.
func TestOpenNowCourses(t *testing.T) {
	readCharge := "ReadPayment c" + packetID + "0000"
	unbooked := sent(payout.ObsSucceeded, ready(payout.StatusSending, payout.ActionQuery, time.Time{}))
	unbooked.Unsettled, unbooked.OrderNo = true, chargeNo
	frozen := ended(payout.StatusFailed)
	for name, tc := range map[string]struct {
		opened activities.Opened
		err    error
		then   []string
		ends   []string // nil: by its timer
	}{
		"open": {opened: activities.Opened{Status: packet.StatusOpen,
			Charge: outcome(sent(payout.ObsSucceeded, ended(payout.StatusPaid))), PoolOpen: true}},
		"broke":    {err: errBroke, then: opening[1:]},
		"recorded": {opened: activities.Opened{Status: packet.StatusFunding}, then: opening[2:]},
		"charge due": {opened: activities.Opened{Status: packet.StatusFunding,
			Charge: outcome(activities.Outcome{State: ready(payout.StatusPending, payout.ActionSend, time.Time{})})}, then: opening[3:]},
		"charge unknown": {opened: activities.Opened{Status: packet.StatusFunding,
			Charge: outcome(sent(payout.ObsNoAnswer, ready(payout.StatusUnknown, payout.ActionQuery, time.Time{})))},
			then: steps([]string{"Ask", "Settle succeeded"}, opening[4:])},
		"charge's answer unbooked": {opened: activities.Opened{Status: packet.StatusFunding, Charge: &unbooked},
			then: steps([]string{"Settle succeeded"}, opening[4:])},
		"charged": {opened: activities.Opened{Status: packet.StatusFunding,
			Charge: outcome(sent(payout.ObsSucceeded, ended(payout.StatusPaid)))}, then: opening[4:]},
		"funded": {opened: activities.Opened{Status: packet.StatusOpen,
			Charge: outcome(sent(payout.ObsSucceeded, ended(payout.StatusPaid)))}, then: opening[5:]},
		"funded by an earlier run": {opened: activities.Opened{Status: packet.StatusOpen}, then: opening[5:]},
		"charge declined": {opened: activities.Opened{Status: packet.StatusFunding, Charge: outcome(sent(payout.ObsDeclined, frozen))},
			ends: []string{"RejectPacket account_frozen"}},
		"closed by an earlier run":  {opened: activities.Opened{Status: packet.StatusClosed}, ends: []string{"FinishPacket"}},
		"closing by an earlier run": {opened: activities.Opened{Status: packet.StatusClosing}, ends: []string{"CloseNow expired"}},
		"rejected by an earlier run": {opened: activities.Opened{Status: packet.StatusRejected},
			ends: []string{readCharge, "RejectPacket declined"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			p.openNow = func() (activities.Opened, error) { return tc.opened, tc.err }
			p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
			p.result(t)
			end, after := []string{"CloseNow expired"}, time.Hour
			if tc.ends != nil {
				end, after = tc.ends, 0
			}
			p.want(t, steps([]string{"OpenNow"}, tc.then, end)...)
			if late := p.elapsed() - after; late < 0 || late > jitterMax {
				t.Errorf("ended after %v", p.elapsed())
			}
		})
	}
}

// TestCloseNowCourses: a packet is closed by one local activity if possible; the rest continues
// with single activities.
func TestCloseNowCourses(t *testing.T) {
	all := closing(packet.CloseExpired, "FinishPacket")[1:]
	for name, tc := range map[string]struct {
		closed activities.Closed
		err    error
		then   []string
		result string
	}{
		"closed": {closed: activities.Closed{Closing: true, PoolClosed: true, LedgerClosed: true, PacketClosed: true}},
		"a refund": {closed: activities.Closed{Closing: true, PoolClosed: true, LedgerClosed: true, Remainder: 7},
			result: "expired: 0.07 go back by refund/" + packetID + "/0"},
		"broke":             {err: errBroke, then: all},
		"nothing done":      {then: all},
		"closing":           {closed: activities.Closed{Closing: true}, then: all[1:]},
		"winners not there": {closed: activities.Closed{Closing: true, PoolClosed: true}, then: all[2:]},
		"books closed":      {closed: activities.Closed{Closing: true, PoolClosed: true, LedgerClosed: true}, then: all[4:]},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			p.closeNow = func() (activities.Closed, error) { return tc.closed, tc.err }
			p.env.ExecuteWorkflow(Packet, aPacket(time.Hour))
			if tc.result == "" {
				tc.result = "expired: nothing remained"
			}
			if got := p.result(t); got != tc.result {
				t.Errorf("result %q", got)
			}
			p.want(t, steps([]string{"OpenNow", "CloseNow expired"}, tc.then)...)
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
