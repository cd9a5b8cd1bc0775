package browser

import (
	"net/http"
	"testing"

	"hongbao/devstack/stacktest"
)

// TestPacketWithoutParts: the page of a packet is there while the provider, and
// then Redis too, is away: it says what cannot be read, and shows what MySQL knows.
func TestPacketWithoutParts(t *testing.T) {
	redis := stacktest.FreshRedis(t)
	h := newHouseOn(t, redis.Addr, nil)
	live := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 900, "share_count": 3, "split": "equal", "greeting": "恭喜发财"})
	won := h.grab(live, "alice", "Alice")
	closed := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 500, "share_count": 2, "split": "equal"})
	h.grab(closed, "alice", "Alice")
	h.finish(closed)
	b, zh := h.newTab("en"), h.newTab("zh-CN")
	b.signIn(h.finance)
	zh.signIn(h.auditor)
	look := func(b *tab, id string, texts ...string) {
		t.Helper()
		if status := b.open("/packets/" + id); status != http.StatusOK {
			t.Errorf("%s: %d", id, status)
		}
		b.has("main", texts...)
		for _, fault := range eval[[]string](b, faults) {
			t.Error(fault)
		}
	}
	look(b, live, "恭喜发财", "lin mei", "Ledger, Redis and provider agree", "Alice")
	b.lacks("#no-proof", "#no-claims")
	h.endProvider()
	look(b, live, "恭喜发财", "lin mei", "This cannot be compared now", "paid", "¥3.00", "Alice", won)
	b.lacks("#no-claims")
	look(b, closed, "closed", "This cannot be compared now", "Amounts are those of the committed seed", "Alice")
	redis.Pause(t)
	defer redis.Resume(t)
	look(b, live, "恭喜发财", "lin mei", "This cannot be compared now", "paid", "¥3.00", "Who won what cannot be read now", "Not compared: the claims")
	b.picture("packet-without-parts")
	look(zh, live, "暂时无法核对", "暂时无法读取领取记录", "¥3.00")
	b.follow("#no-claims a")
	b.has("tbody", won, "alice")
}
