package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/payout"
	"hongbao/wire"
)

// TestStaffPackets: staff finds a packet of any app at the shell, recalls it with a
// reason, and sees what became of it.
func TestStaffPackets(t *testing.T) {
	t.Parallel()
	d := newStaffStack(t)
	sold, _ := d.grabbedPacket(250, "alice")
	id, _ := d.halfGrabbedPacket(1000, "alice", "bob")
	out, _ := d.sh(exitOK, "packets", "list")
	contains(t, out, sold, id, "mall", "sender", "¥10.00", "2 of 4", "sold_out", "open")
	out, _ = d.sh(exitOK, "packets", "list", "--status", "open", "--app", "mall", "--sender", "sender", "--json")
	var page struct{ Items []wire.StaffPacket }
	if err := json.Unmarshal([]byte(out), &page); err != nil || len(page.Items) != 1 || page.Items[0].ID != id {
		t.Errorf("%v: %s", err, out)
	}
	if out, _ = d.sh(exitOK, "packets", "list", "--overdue", "--json"); strings.Contains(out, id) {
		t.Errorf("overdue: %s", out)
	}
	out, _ = d.shAs([]string{"HONGBAO_URL=" + d.public, "HONGBAO_APP_KEY=" + d.appKey}, exitOK, "packets", "list", "--status", "open")
	if strings.Contains(out, sold) || !strings.Contains(out, id) {
		t.Errorf("as the app: %s", out)
	}
	out, _ = d.sh(exitOK, "packets", "show", "--staff", id)
	contains(t, out, id, "open", "mall", "packet/"+id, "paid", "¥5.00", "alice", "bob")
	out, _ = d.sh(exitOK, "packets", "show", "--staff", id, "--json")
	var detail wire.StaffPacketDetail
	if err := json.Unmarshal([]byte(out), &detail); err != nil || detail.ID != id || len(detail.Payouts) != 1 {
		t.Errorf("%v: %s", err, out)
	}
	for _, line := range [][]string{{"list", "--status", "open"}, {"show", id}} {
		out, _ = d.sh(exitOK, slices.Concat([]string{"staff", "packets"}, line)...)
		contains(t, out, id, "mall")
	}
	_, errs := d.sh(exitUsage, "staff", "packets", "recall", id)
	contains(t, errs, "--reason is required")
	_, errs = d.sh(exitUsage, "packets", "recall", id)
	contains(t, errs, "--reason is required")
	_, errs = d.shAs(d.as("HONGBAO_OPS_KEY", d.auditor), exitRefused, "packets", "recall", id, "--reason", "r")
	contains(t, errs, "forbidden")
	if n := d.auditCount("packet/" + id); n != 0 {
		t.Fatalf("%d entries about what was refused", n)
	}
	out, _ = d.sh(exitOK, "packets", "recall", id, "--reason", "ticket 4711", "--idempotency-key", "k")
	contains(t, out, id+" is closing: ¥5.00 claimed, ¥5.00 refunded to sender.")
	out, _ = d.sh(exitOK, "packets", "recall", id, "--reason", "ticket 4711", "--idempotency-key", "k", "--json")
	contains(t, out, `"status":"closing"`)
	if n := d.auditCount("packet/" + id); n != 1 {
		t.Errorf("%d entries", n)
	}
	if refund := d.closePacket(id); d.status(refund) != payout.StatusPaid {
		t.Errorf("refund %s is %s", refund, d.status(refund))
	}
	out, _ = d.sh(exitOK, "packets", "show", "--staff", id)
	contains(t, out, "recalled", "remainder", "¥5.00")
}
