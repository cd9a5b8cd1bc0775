package workflows

import (
	"testing"

	"hongbao/activities"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
)

// TestTimeoutsNest: each timeout ends before the one around it. A provider call ends by itself
// before Temporal gives up on its activity; that ends before a stopping worker goes. And a send
// is over before it no longer counts as open, so that "never received" after the window is final
// (rule R4).
func TestTimeoutsNest(t *testing.T) {
	if provider.DefaultTimeout != ProviderTimeout {
		t.Errorf("the adapter's call takes up to %v, the workflows think %v", provider.DefaultTimeout, ProviderTimeout)
	}
	if ProviderTimeout >= queryTimeout {
		t.Errorf("provider timeout %v is not below the %v of a query", ProviderTimeout, queryTimeout)
	}
	if queryTimeout >= WorkerStopTimeout {
		t.Errorf("a query may take %v, a worker that stops waits for %v", queryTimeout, WorkerStopTimeout)
	}
	if activities.SendCallTimeout < ProviderTimeout {
		t.Errorf("the adapter's call takes up to %v, a send has %v for it", ProviderTimeout, activities.SendCallTimeout)
	}
	if payout.LeaveWithin+activities.SendCallTimeout+activities.SendSettleTimeout > sendTimeout || sendTimeout >= WorkerStopTimeout {
		t.Errorf("a send may leave after %v and take %v to end; it has %v, a worker that stops waits for %v",
			payout.LeaveWithin, activities.SendCallTimeout+activities.SendSettleTimeout, sendTimeout, WorkerStopTimeout)
	}
	if activities.SendCallTimeout > provider.SandboxLandingWindow {
		t.Errorf("a send may be under way for %v, its window is %v", activities.SendCallTimeout, provider.SandboxLandingWindow)
	}
	if payNowTimeout >= TaskTimeout*4/5 {
		t.Errorf("a payment within a workflow task may take %v of its %v", payNowTimeout, TaskTimeout)
	}
	if activities.PayNowCallTimeout+activities.PayNowSettleTimeout >= payNowTimeout {
		t.Errorf("a payment within a workflow task has %v, calling and booking may take %v", payNowTimeout, activities.PayNowCallTimeout+
			activities.PayNowSettleTimeout)
	}
	if activities.PayNowCallTimeout > provider.SandboxLandingWindow {
		t.Errorf("a send may be under way for %v, its window is %v", activities.PayNowCallTimeout, provider.SandboxLandingWindow)
	}
	if heartbeat >= bulkTimeout || storeTimeout >= bulkTimeout {
		t.Errorf("heartbeat %v and store timeout %v must be below %v", heartbeat, storeTimeout, bulkTimeout)
	}
}

func TestPaymentWorkflowIDs(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    payout.Payment
		want string
	}{
		{"payout", payout.Payment{ID: payoutID, Kind: payout.KindPayout, PacketID: packetID, UserID: "Alice "}, "payout/" + packetID + "/Alice "},
		{"honoured promise", payout.Payment{ID: "h" + packetID + "0001", Kind: payout.KindHonour, PacketID: packetID, UserID: "u"}, "honour/" +
			packetID + "/1"},
		{"refund of the remainder", payout.Payment{ID: refundID, Kind: payout.KindRefund, PacketID: packetID}, "refund/" + packetID + "/0"},
		{"refund of a cancelled payout", payout.Payment{ID: "r" + packetID + "0013", Kind: payout.KindRefund, PacketID: packetID}, "refund/" +
			packetID + "/35"},
		{"a charge belongs to its packet", payout.Payment{ID: "c" + packetID + "0000", Kind: payout.KindCharge, PacketID: packetID}, ""},
		{"a malformed refund has none", payout.Payment{ID: "r", Kind: payout.KindRefund, PacketID: packetID}, ""},
	} {
		if got := PaymentWorkflowID(tc.p); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
