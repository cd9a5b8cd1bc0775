package console

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/wire"
)

// TestNoTemporalUI: without HONGBAO_TEMPORAL_UI_URL pages do not link to Temporal. A bare path
// would lead to a page that the console does not have.
func TestNoTemporalUI(t *testing.T) {
	const payout, packet, run = "p3q5k9v0c1m7e2u8h4r6t0003", "3q5k9v0c1m7e2u8h4r6t", "7"
	for base, link := range map[string]bool{"": false, "https://temporal.example": true} {
		workflow := wire.WorkflowLink{ID: "payout/x/u", URL: base + "/namespaces/hongbao/workflows/payout%2Fx%2Fu"}
		staffPacket := &wire.StaffPacketDetail{}
		staffPacket.ID, staffPacket.StaffPacket.Workflow, staffPacket.Status, staffPacket.Split = packet, workflow, wire.PacketOpen, "random"
		desk, err := New(Config{SessionKeys: [][32]byte{{1}}, StaffAPI: funcAPI{newKeys(map[string]access.Role{"o": access.RoleOps}),
			func(r *http.Request) any {
				return map[string]any{
					"/v1/staff/payouts/" + payout: wire.PayoutDetail{Payout: wire.Payout{Payment: wire.Payment{ID: payout, Status: wire.PayoutPaid,
						Workflow: workflow}}},
					"/v1/staff/reconciliations/" + run:       wire.Reconciliation{ID: run, Status: "done", Workflow: workflow},
					"/v1/staff/approvals":                    wire.List[wire.ApprovalItem]{},
					"/v1/staff/holds":                        wire.List[wire.StaffHold]{},
					"/v1/staff/breaks":                       wire.List[wire.Break]{},
					"/v1/staff/packets/" + packet:            staffPacket,
					"/v1/staff/packets/" + packet + "/grabs": wire.List[wire.Claim]{},
				}[r.URL.Path]
			}}})
		if err != nil {
			t.Fatal(err)
		}
		v := newVisitor(t, desk)
		v.signIn("o")
		for _, path := range []string{"/payouts/" + payout, "/reconciliations/" + run, "/packets/" + packet} {
			res := v.do("GET", path, nil)
			page, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d %v\n%s", path, res.StatusCode, err, page)
			}
			if got := strings.Contains(string(page), `href="`+workflow.URL); got != link {
				t.Errorf("%s with a Temporal UI at %q: a link %v, want %v", path, base, got, link)
			}
			if !link && !strings.Contains(string(page), workflow.ID) {
				t.Errorf("%s does not name the workflow", path)
			}
		}
	}
}
