package main

import (
	"time"

	"hongbao/internal/packet"
)

// testDecideConflicts: a dry run decides nothing; two persons void what they select.
func (d *staffStack) testDecideConflicts() {
	t := d.t
	p, _ := d.grabbedPacket(10, "taken")
	conflict := packet.Claim{PacketID: p, UserID: "conflicting", Amount: 10, ClaimedAt: time.Now()}
	st, err := d.store.RecordShareConflict(t.Context(), conflict, "share taken")
	d.check(err)
	first, second := d.as("HONGBAO_FINANCE_KEY", d.finance), d.as("HONGBAO_FINANCE_KEY", d.second)
	many := []string{"share-conflicts", "void", "--packet", p, "--default-decision", "honour"}
	out, _ := d.shAs(first, exitOK, many...)
	contains(t, out, st.PaymentID, "conflicting", "honour", "waiting", "Selected: 1, ¥0.10 (10 fen). Nothing was decided")
	many = append(many, "--reason", "looked at", "--yes")
	out, _ = d.shAs(first, exitWaiting, many...)
	contains(t, out, "Of 1 share conflicts, ¥0.10 (10 fen): 0 decided, 1 wait for a second person, 0 refused")
	out, _ = d.shAs(first, exitOK, many...)
	contains(t, out, "No share conflict matches")
	out, _ = d.shAs(second, exitOK, append(many, "--json")...)
	contains(t, out, `"result":"decided"`, `"asked_by":"li-na"`)
	_, errs := d.shAs(first, exitUsage, "share-conflicts", "honour", "--reason", "r")
	contains(t, errs, "give a filter")
}
