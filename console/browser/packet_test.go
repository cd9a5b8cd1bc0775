package browser

import (
	"net/http"
	"net/url"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
)

// TestPacketWithoutParts: during an outage of the provider, and of Redis too, the page of a
// packet names what is unavailable and shows what MySQL has.
func TestPacketWithoutParts(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newTestbedOn(t, redis.Addr, nil)
	live := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 900, "share_count": 3, "split": "equal", "greeting": "恭喜发财"})
	won := h.grab(live, "alice", "Alice")
	closed := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 500, "share_count": 2, "split": "equal"})
	h.grab(closed, "alice", "Alice")
	h.finish(closed)
	b, zh := h.signIn(h.finance, "en"), h.signIn(h.auditor, "zh-CN")
	look := func(b *reader, id string, texts ...string) {
		t.Helper()
		if status := b.open("/packets/" + id); status != http.StatusOK {
			t.Errorf("%s: %d", id, status)
		}
		b.has("main", texts...)
	}
	look(b, live, "恭喜发财", "lin mei", "Ledger, Redis and provider agree", "Alice")
	b.lacks("#no-proof", "#no-claims")
	b.has("#proof-sources", h.Provider.Name(), "its own sums")
	h.must(h.StopProvider())
	look(b, live, "恭喜发财", "lin mei", "Comparison unavailable", "paid", "¥3.00", "Alice", won)
	b.lacks("#no-claims")
	look(b, closed, "closed", "Comparison unavailable", "Amounts match the committed seed", "Alice")
	redis.Pause(t)
	defer redis.Resume(t)
	look(b, live, "恭喜发财", "lin mei", "Comparison unavailable", "paid", "¥3.00", "Claims are unavailable",
		"Not compared: the claims")
	look(zh, live, "暂时无法核对", "暂时无法读取领取记录", "¥3.00")
	b.follow("#no-claims a")
	b.has("tbody", won, "alice")
}

// TestRecallOfAPacket: operations recall a packet with a reason. The remainder is refunded, the
// packet closes, and the audit log shows actor and reason.
func TestRecallOfAPacket(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 900, "share_count": 3, "split": "equal"})
	h.grab(id, "alice", "Alice")
	auditor := h.signIn(h.auditor, "en")
	auditor.open("/packets/" + id)
	auditor.lacks("#recall")
	forged := url.Values{"key": {"k"}, "reason": {"because"}}
	for _, csrf := range []string{"", auditor.csrf()} { // without a token, and with a role that may not
		if forged.Set("csrf", csrf); auditor.post("/packets/"+id+"/recall", forged) != http.StatusForbidden {
			t.Errorf("recalled with the token %q", csrf)
		}
	}
	b := h.signIn(h.ops, "en")
	b.open("/packets/" + id)
	b.has("#recall", "Recall packet")
	b.fill("#recall textarea", " ")
	b.follow("#recall button")
	b.has("main", "The input is not valid", "open")
	b.set("#recall textarea", "the sender was deceived, ticket 4711")
	b.follow("#recall button")
	if b.where() != "/packets/"+id+"?done=recall" {
		t.Errorf("at %s", b.where())
	}
	b.has(".note.good", "The packet is recalled")
	b.has("main", "closing")
	b.lacks("#recall")
	h.finish(id)
	b.open("/packets/" + id)
	b.has("main", "closed", "recalled", "¥6.00", payout.ID(payout.KindRefund, id, 0), "unclaimed remainder")
	b.lacks("#recall")
	auditor.open("/audit?action=recall")
	auditor.has("tbody", h.ops.Key.Owner, "packet/"+id, "the sender was deceived, ticket 4711", `{"status":"open"}`, `{"status":"closing"}`)
}
