package workflows

import (
	"strings"
	"testing"

	sdkpb "go.temporal.io/api/sdk/v1"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// TestDetailsOfARun: the details in the UI show the payment's state, the next step and its links.
func TestDetailsOfARun(t *testing.T) {
	for status, says := range map[payout.Status][]string{
		payout.StatusPaid: {"**paid**", "GET /v1/staff/payouts/", "Console: [payouts/" + payoutID + "](https://desk.example/payouts/" +
			payoutID + ")"},
		payout.StatusFailed: {"**failed**", "`account_frozen`", "**Next:** ", "GET /v1/staff/payouts/", "](https://desk.example/payouts/" +
			payoutID + ")"},
	} {
		p := newSteps(t)
		p.settle = func(payout.Observation) payout.State { return ended(status) }
		in := claimInput()
		in.Console = "https://desk.example/"
		p.env.ExecuteWorkflow(Payout, in)
		answer, err := p.env.QueryWorkflow("__temporal_workflow_metadata")
		if err != nil {
			t.Fatal(err)
		}
		var about sdkpb.WorkflowMetadata
		if err := answer.Get(&about); err != nil {
			t.Fatal(err)
		}
		for _, text := range says {
			if !strings.Contains(about.GetCurrentDetails(), text) {
				t.Errorf("%s: no %q in %q", status, text, about.GetCurrentDetails())
			}
		}
	}
}

// TestDetailsLeadToTheRightPath: a refund is no payout, and a charge is seen with its packet.
func TestDetailsLeadToTheRightPath(t *testing.T) {
	const packetID = "00000000000000000000"
	for kind, want := range map[payout.Kind]string{
		payout.KindPayout: "/v1/staff/payouts/p" + packetID + "0001", payout.KindHonour: "/v1/staff/payouts/h" + packetID + "0001",
		payout.KindRefund: "/v1/staff/refunds/r" + packetID + "0001", payout.KindCharge: "/v1/staff/packets/" + packetID,
	} {
		text := PaymentDetails(payout.ID(kind, packetID, 1), "")
		if !strings.Contains(text, "`GET "+want+"`") || strings.Contains(text, "/retry") != (kind != payout.KindCharge) ||
			strings.Contains(text, "/retry") && !strings.Contains(text, "`POST "+want+"/retry`") {
			t.Errorf("%c: %s", kind, text)
		}
	}
}

// TestDetailsLeadToTheConsole: the details link to the console if its address is set, and do not
// mention it otherwise.
func TestDetailsLeadToTheConsole(t *testing.T) {
	const packetID = "00000000000000000000"
	p := packet.Packet{ID: packetID}
	for kind, page := range map[payout.Kind]string{
		payout.KindPayout: "payouts/p" + packetID + "0001", payout.KindHonour: "payouts/h" + packetID + "0001", payout.KindRefund: "refunds/r" +
			packetID + "0001",
		payout.KindCharge: "packets/" + packetID,
	} {
		id := payout.ID(kind, packetID, 1)
		st := payout.State{PaymentID: id, Status: payout.StatusUnknown}
		for _, console := range []string{"https://desk.example", "https://desk.example/", ""} {
			link := "[" + page + "](https://desk.example/" + page + ")"
			for what, text := range map[string]string{"static": PaymentDetails(id, console), "waiting": waitDetails(st, console),
				"ended": endDetails(st, console)} {
				if strings.Contains(text, link) != (console != "") || strings.Contains(text, "Console") != (console != "") {
					t.Errorf("%s with console %q: %s", what, console, text)
				}
			}
			if text := PacketDetails(p, console); strings.Contains(text, "[packets/"+packetID+"](https://desk.example/packets/"+packetID+
				")") != (console != "") {
				t.Errorf("packet with console %q: %s", console, text)
			}
		}
	}
}
