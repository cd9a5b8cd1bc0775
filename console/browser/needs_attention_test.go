package browser

import (
	"fmt"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
)

// TestNeedsADecision: overview and banner list what needs a decision, by reason, with count and
// amount. Each links to the list with exactly these, and resolved items are gone.
func TestNeedsADecision(t *testing.T) {
	t.Parallel()
	h := newTestbedOn(t, stacktest.FreshRedis(t).Addr, nil) // in a shared Redis the verdict would show the state of other tests
	b, zh := h.signIn(h.finance, "en"), h.signIn(h.second, "zh-CN")
	b.open("/")
	b.has("section[aria-labelledby=people-title]", "Needs a decision", "Nothing needs a decision.")
	if first := b.attrs("#live section", "aria-labelledby")[0]; first != "people-title" {
		t.Errorf("the first card is %s", first)
	}
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 400, "share_count": 4, "split": "equal"})
	h.grab(id, "alice", "")
	var bad []string
	for _, user := range []string{"a~frozen", "b~frozen", "c~declined"} {
		bad = append(bad, h.grab(id, user, ""))
	}
	h.conflict(id, "another")
	h.decide(h.second, bad[0], "cancel", "gone")
	for _, one := range []struct {
		href, key, en, zh string
		count, fen        int64
	}{
		{"/payouts?status=failed", "due-payout_failed", "Failed payouts", "失败的付款", 4, 400},
		{"/approvals?status=waiting", "due-approval", "Approval requests", "待复核的申请", 1, 100},
		{"/breaks?resolved=false&kind=share_conflict", "due-break-share_conflict", "Break: ", "差异：", 1, 100},
	} {
		b.open("/")
		amount := "¥" + money.Fen(one.fen).String()
		b.has("section[aria-labelledby=people-title]", one.en)
		b.has(fmt.Sprintf(`[data-key="%s"]`, one.key), fmt.Sprint(one.count))
		b.has(fmt.Sprintf(`[data-key="%s-sum"]`, one.key), amount)
		b.follow(fmt.Sprintf(`#live-people a[href="%s"]`, one.href))
		b.has("#total", fmt.Sprintf("%d in total", one.count), amount)
		zh.open("/")
		zh.has("#live-people", one.zh)
	}
	b.open("/")
	b.has("#live-verdict .warn", "Needs attention", "Failed payouts: 4")
	b.follow(`#live-verdict a[href="/payouts?status=failed"]`)
	b.has("#total", "4 in total")
}
