package browser

import (
	"net/http"
	"slices"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// remainder closes a packet without claims while the provider refuses refunds. It returns the
// failed refund.
func (h *testbed) remainder(sender string, total int) string {
	h.t.Helper()
	id := h.open(map[string]any{"sender_id": sender, "total_amount": total, "share_count": 2, "split": "equal"})
	refund, err := h.Close(h.t.Context(), id, packet.CloseRecalled)
	h.must(err)
	if status := h.drive(refund); status != payout.StatusFailed {
		h.t.Fatalf("the refund is %s", status)
	}
	return refund
}

// TestRetryManyRefunds: failed refunds are selected, dry-run and retried like payouts. Large ones
// await approval, and the page shows the progress of the others, also after another sign-in.
func TestRetryManyRefunds(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	h.spoil(`{"op":"refund","kind":"decline","rate":1}`)
	paid, failed, large, left := h.remainder("a", 200), h.remainder("b", 300), h.remainder("c", 200_000), h.remainder("d", 400)
	h.spoil("")
	auditor := h.signIn(h.auditor, "en")
	auditor.open("/refunds?status=failed")
	auditor.lacks("input[name=id]", "#retry-many")
	b := h.signIn(h.finance, "en")
	b.open("/refunds?status=paid")
	b.lacks("input[name=id]", "#retry-many")
	b.open("/refunds?status=failed")
	for _, id := range []string{paid, failed, large} {
		b.click(`input[value="` + id + `"]`)
	}
	fen := b.attrs("input[name=id][checked]", "data-fen")
	if slices.Sort(fen); !slices.Equal(fen, []string{"200", "200000", "300"}) {
		t.Errorf("ticked: %q", fen)
	}
	b.follow("#dry-run")
	b.has("#bulk-result", "Dry run result", "3 in total", "¥2,005.00", paid, failed, large, "will retry", "needs approval",
		payout.OrderNo(paid, 2))
	h.decidedTimes(paid, "retry", 0)
	b.expect("without a reason", b.follow("#retry-many"), http.StatusUnprocessableEntity)
	b.has("#bulk #refused", "The reason")
	b.fill("#bulk textarea", "incident 17 is over")
	b.leave()
	b.expect("signed out", b.follow("#retry-many"), http.StatusUnauthorized)
	b.fill("#key", h.finance.Token)
	b.expect("signed in", b.follow(".login button"), http.StatusOK)
	b.has("#bulk #refused", "submit it again")
	if n := b.count("input[name=id][checked]"); n != 3 {
		t.Errorf("%d are ticked", n)
	}
	b.follow("#retry-many")
	b.has("#bulk-result", "Retry result", "3 in total", "retried", "needs approval")
	b.has("#bulk-said", "0 of 2 final", "pending 2")
	for id, times := range map[string]int{paid: 1, failed: 1, large: 1, left: 0} {
		h.decidedTimes(id, "retry", times)
	}
	row := func(id string) string { return `#bulk-run tr:has(a[href="/refunds/` + id + `"])` }
	if got := h.drive(paid); got != payout.StatusPaid {
		t.Fatalf("after the retry: %s", got)
	}
	b.follow("#look-again")
	b.has(row(paid)+" .tag.good", "paid")
	b.has(row(failed), "pending")
	b.has("#bulk-run[hx-post='/refunds/progress'][hx-trigger^='every'] #look-again", "Refresh") // polling too
	h.spoil(`{"op":"refund","kind":"decline","rate":1}`)
	h.drive(failed)
	b.follow("#look-again")
	b.has(row(failed)+" .tag.bad", "failed")
	b.has("#bulk-said", "2 of 2 final", "paid 1", "failed 1")
	b.lacks("#bulk-run[hx-post]")

	// All that match means the dry run, without later matches.
	b.open("/refunds?status=failed&min=4&max=5")
	b.click(`input[name=scope][value=all]`)
	b.follow("#dry-run")
	b.has("#bulk-result", "1 in total", left)
	late := h.remainder("e", 450)
	b.fill("#bulk textarea", "what I have seen")
	b.follow("#retry-many")
	b.has("#bulk-result", "Retry result", "1 in total", left)
	h.decidedTimes(left, "retry", 1)
	h.decidedTimes(late, "retry", 0)
	b.follow(`#bulk-run a[href="/refunds/` + left + `"]`)
	b.has("h1", left)
	second := h.signIn(h.second, "en")
	second.open("/approvals")
	second.has(".waits", large, "incident 17 is over")
}
