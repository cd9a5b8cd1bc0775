package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestLongestReason: the longest reason and evidence that a write may have are kept by
// every one of them, whatever characters they are made of.
func TestLongestReason(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	_, bad := h.failed()
	_, other := h.failed()
	open := h.open(h.app, with())
	var run reconciliationBody
	long := strings.Repeat("理", 500)
	because := `{"reason":"` + long + `"}`
	h.write(h.finance, "reconciliations", "day", `{"date":"2026-02-17","reason":"`+long+`"}`).json(t, &run)
	h.reconciled(run.ID, 1)
	waits := h.decided(h.write(h.finance, "payouts/"+bad+"/mark-paid", "k", `{"reason":"`+long+`","evidence":"`+long+`"}`),
		"waiting").Approval.ID
	void := h.decided(h.write(h.finance, "payouts/"+other+"/cancel", "k", because), "waiting").Approval.ID
	second := h.colleague()
	for _, one := range []struct {
		who  owner
		path string
		want int
	}{
		{h.finance, "breaks/" + h.breaks("").Items[0].ID + "/resolve", http.StatusOK},
		{second, "approvals/" + waits + "/approve", http.StatusAccepted}, {second, "approvals/" + void + "/reject", http.StatusAccepted},
		{h.finance, "payouts/" + other + "/ask", http.StatusAccepted}, {h.finance, "payouts/" + other + "/retry", http.StatusAccepted},
		{h.ops, "providers/sandbox/hold", http.StatusOK}, {h.ops, "providers/sandbox/release", http.StatusOK},
		{h.ops, "packets/" + open + "/recall", http.StatusAccepted},
	} {
		if r := h.write(one.who, one.path, "long", because); r.status != one.want {
			t.Errorf("%s: %s", one.path, r)
		}
	}
	if r := h.breaks("").Items[0].Resolved; r == nil || r.Reason != long {
		t.Errorf("the break was resolved because of %+v", r)
	}
}
