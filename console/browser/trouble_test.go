package browser

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// spoil sets the fault rules of the provider; "" removes them.
func (h *testbed) spoil(rules string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPut, h.ProviderURL+"/_faults", strings.NewReader(`{"rules":[`+rules+`]}`))
	h.must(err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	h.must(err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		h.t.Fatalf("faults: %d", res.StatusCode)
	}
}

// sendOnce sends the payout of a packet's one claim and settles the observation.
func (h *testbed) sendOnce(packetID string) {
	h.t.Helper()
	order := h.begin(packetID)
	_, err := h.Store.Settle(h.t.Context(), h.Provider.Send(h.t.Context(), *order), order.OrderNo)
	h.must(err)
}

// TestTroubleOfTheProvider: the overview shows payments refused for insufficient balance, and
// those deferred behind them, with the remedy, until they are accepted.
func TestTroubleOfTheProvider(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	one := map[string]any{"sender_id": "s", "total_amount": 100, "share_count": 1, "split": "equal"}
	refused, waits := h.open(one), h.open(one)
	won := h.win(refused, "bob", "")
	h.spoil(`{"op":"transfer","kind":"low_balance","rate":1}`)
	h.sendOnce(refused)
	h.spoil("")
	behind := h.win(waits, "eve", "")
	claims, err := h.Pool.Claims(t.Context(), waits)
	h.must(err)
	_, err = h.Store.RecordClaim(t.Context(), claims[0])
	h.must(err)

	en, zh := h.signIn(h.ops, "en"), h.signIn(h.ops, "zh-CN")
	for b, says := range map[*reader][]string{
		en: {"Insufficient balance", "1, oldest", "Top up our balance", "Deferred payments", "Rate limited", "No usable response"},
		zh: {"余额不足", "1 项，最早", "请为我方渠道账户充值", "暂缓发起的款项", "触发渠道限流", "无有效响应"},
	} {
		wait.Until(h.t, "the refusal is shown", func() bool { b.open("/"); return strings.Contains(b.text("#part-provider"), says[1]) })
		b.has("#part-provider", says...)
		b.has(".verdict", says[0])
	}
	en.follow("#part-provider a[href*='status=sending']")
	en.has("main table", won)
	en.open("/")
	en.has("#part-provider dd:not(.do) a[href='#open-title']", "2, oldest") // a count of all kinds links to the overview's table
	en.follow("section[aria-labelledby=open-title] a[href='/payouts?status=pending']")
	en.has("main table", behind)

	for _, id := range []string{won, behind} {
		wait.Until(h.t, "paid", func() bool { return h.drive(id) == payout.StatusPaid })
	}
	wait.Until(h.t, "nothing is in trouble", func() bool {
		en.open("/")
		return !strings.Contains(en.text("#part-provider"), "oldest")
	})
	en.lacks("#part-provider .do")
}

// TestChargeThatWaits: the overview leads to a charge in progress by its packet.
func TestChargeThatWaits(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	status, raw := h.call(http.MethodPost, "/v1/packets", map[string]any{"sender_id": "s", "total_amount": 100, "share_count": 1})
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, raw)
	}
	var made struct{ ID string }
	h.must(json.Unmarshal(raw, &made))
	view, err := h.Pool.View(t.Context(), made.ID)
	h.must(err)
	sealed, err := packet.SealSeed(h.Config.SeedKey, made.ID, packet.DeriveSeed(h.Config.SeedKey, made.ID))
	h.must(err)
	_, err = h.Store.RecordPacket(t.Context(), view.Packet, sealed, nil)
	h.must(err)

	b := h.signIn(h.ops, "en")
	wait.Until(h.t, "the charge is shown", func() bool { b.open("/"); return strings.Contains(b.text("#part-provider"), "1, oldest") })
	b.lacks("#part-provider a[href^='/payouts']")
	b.follow("section[aria-labelledby=open-title] a[href='/packets?status=funding']")
	b.has("main table", made.ID)
}
