package browser

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/test/wait"
)

// hold places a hold of operations through the store and returns its id.
func (h *testbed) hold(scope payout.HoldScope, name, reason string) (id string) {
	h.t.Helper()
	w := staff.Write{Owner: h.ops.Key.Owner, Role: string(access.RoleOps), KeyID: h.ops.Key.ID, Route: "POST /test/holds", Key: name,
		BodyHash: "h", Reason: reason}
	_, err := h.Store.PlaceHold(h.t.Context(), w, scope, name, func(hold payout.Hold, _ staff.Releases) (int, []byte) {
		id = "h" + strconv.FormatInt(hold.ID, 10)
		return http.StatusOK, []byte("{}")
	})
	h.must(err)
	return id
}

// claim wins a share and records the claim; its payout is not sent.
func (h *testbed) claim(id, user string) (paymentID string) {
	h.t.Helper()
	won := h.win(id, user, "")
	claims, err := h.Pool.Claims(h.t.Context(), id)
	h.must(err)
	for _, c := range claims {
		_, err := h.Store.RecordClaim(h.t.Context(), c)
		h.must(err)
	}
	return won
}

// TestHoldOfAPacket: operations hold a packet. Its pages and the overview link to the hold. The first
// of two persons of finance asks for the release, another one releases it, and only what the first
// one was shown.
func TestHoldOfAPacket(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 900, "share_count": 3, "split": "equal"})
	h.grab(id, "alice", "")
	bad := h.grab(id, "bob~frozen", "")
	ops, first, second := h.signIn(h.ops, "en"), h.signIn(h.finance, "en"), h.signIn(h.second, "zh-CN")

	ops.open("/packets/" + id)
	ops.lacks(".held")
	ops.click("#hold-this summary")
	ops.fill("#hold-this textarea", " ")
	ops.follow("#hold-this button")
	ops.has("#hold-this", "The input is not valid")
	ops.set("#hold-this textarea", "the sender reports a stolen account")
	ops.follow("#hold-this button")
	if ops.where() != "/packets/"+id+"?done=hold_packet" {
		t.Errorf("at %s", ops.where())
	}
	ops.has(".note.good", "The packet is held.")
	ops.has(".held", "The packet is held", "the sender reports a stolen account", h.ops.Key.Owner)
	ops.lacks("#hold-this")
	ops.follow(".held a")
	hold := ops.at.Path
	ops.has("#release", "Finance releases")
	ops.lacks("#release form")
	if status := ops.post(hold+"/release", url.Values{"csrf": {ops.csrf()}, "key": {"k"}, "reason": {"because"}}); status != http.StatusForbidden {
		t.Errorf("operations release a packet: %d", status)
	}
	second.open("/payouts/" + bad)
	second.has(".held", "该红包已暂停", "the sender reports a stolen account")

	wait.Until(t, "a health snapshot with the hold", func() bool { // the API refreshes it
		first.open("/")
		return first.count(`#part-provider a[href="/holds"]`) == 1
	})
	first.has(`[data-key="held-packet"]`, "1")
	first.lacks(`[data-key="held-payment"]`)
	first.follow(`#live-people a[href="/holds?active=true&scope=packet"]`)
	first.has("tbody", id, "Placed by staff", "the sender reports a stolen account", h.ops.Key.Owner, "operations", "–")
	first.follow(`tbody a[href="` + hold + `"]`)
	first.has("#lets-go", "¥6.00", "¥3.00 in 1 payment is paid to winners; ¥3.00 goes to winners or back to the sender")
	first.has("#release", "needs two persons of finance")
	release := func(b *reader, button, reason string) {
		t.Helper()
		b.has("#release form button", button)
		b.fill("#release textarea", reason)
		b.follow("#release form button")
	}
	release(first, "Ask for the release", "the sender has the account back")
	asked := first.where()
	first.has("#done .note.warn", "another person of finance has to release the hold as well")
	first.has("#release", "You asked for the release", "the sender has the account back")
	first.lacks("#done .note.good")
	first.open("/holds")
	first.has("tbody", "asked for", h.finance.Key.Owner)

	carol := h.claim(id, "carol")
	second.open(hold)
	second.has("#lets-go", "¥6.00", "付给领取人")
	release(second, "解除暂停", "已核实")
	second.has("#refused", "解除涉及的资金已有变化", "请申请人重新申请")
	second.has("#status", "生效中")
	first.open(hold)
	release(first, "Ask for the release", "carol has won since")
	second.open(hold)
	release(second, "解除暂停", "已核实")
	second.has(".note.good", "暂停已解除。")
	second.has("main", "已解除", h.second.Key.Owner)
	second.lacks("#release")
	first.open(asked)
	first.lacks("#done .note", "#release")
	if status := h.drive(carol); status != payout.StatusPaid {
		t.Errorf("after the release: %s", status)
	}

	first.open("/holds")
	first.lacks("tbody")
	first.follow(`.tabs a[href="/holds?active=false"]`)
	first.has("tbody", id, h.second.Key.Owner)
	first.open("/packets/" + id)
	first.lacks(".held")
	first.has("#hold-this", "Hold this packet")
	auditor := h.signIn(h.auditor, "en")
	auditor.open("/audit?action=ask_release")
	auditor.follow(`tbody a[href="` + hold + `"]`)
	auditor.has("main", "released", "the sender reports a stolen account")
}

// TestHoldOfAPayment: finance hold a failed payout. Its page and the overview show the hold, and
// others that name it stay when one is released.
func TestHoldOfAPayment(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad, paid := h.grab(id, "bob~frozen", ""), h.grab(id, "alice", "")
	b := h.signIn(h.finance, "en")
	b.open("/payouts/" + paid)
	b.lacks("#hold-this", ".held")
	b.open("/payouts/" + bad)
	b.click("#hold-this summary")
	b.fill("#hold-this textarea", "the account is under investigation")
	b.follow("#hold-this button")
	b.has(".note.good", "The payment is held.")
	b.has(".held", "The payment is held", "the account is under investigation")
	b.has("#preview", "not possible now", "A hold on the packet or the payment")
	b.has("#mark-paid", "Mark as paid")
	b.lacks("#hold-this", "#retry")
	b.open("/")
	b.follow(`#live-people a[href="/holds?active=true&scope=payment"]`)
	b.follow(`tbody a[href="/payouts/` + bad + `"]`)
	b.follow(".held a")
	b.has("#lets-go", "¥1.00", "¥1.00 moves after a retry")
	b.open("/holds?scope=packet")
	b.lacks("tbody")
	b.open("/holds?scope=payment&name=" + bad)
	b.has("tbody", bad)
	if status := b.open("/holds/h0"); status != http.StatusNotFound {
		t.Errorf("no such hold: %d", status)
	}
	charge := h.hold(payout.HoldPayment, payout.ID(payout.KindCharge, id, 0), "the charge is disputed")
	b.open("/packets/" + id)
	b.has(".held", "The charge of the packet is held", "the charge is disputed")
	b.open("/holds/" + charge)
	b.has("#lets-go", "nothing moves now")
	b.fill("#release textarea", "settled")
	b.follow("#release form button")
	b.has(".note.good", "The hold is released.")
	b.open("/packets/" + id)
	b.lacks(".held")
	b.open("/payouts/" + bad)
	b.has(".held", "the account is under investigation")
}

// TestReleaseMany: after a dry run the first of two persons of finance asks for the release of all
// holds that match the filter; another one, who sees who has asked, releases them.
func TestReleaseMany(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	var ids []string
	for range 2 {
		id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
		ids = append(ids, id)
		h.hold(payout.HoldPacket, id, "looked into")
	}
	first, second := h.signIn(h.finance, "en"), h.signIn(h.second, "zh-CN")
	first.open("/holds")
	first.lacks("#release-many") // without a filter
	first.open("/holds?active=true&kind=staff&scope=packet")
	first.has("tbody", ids[0], ids[1])
	first.lacks(`#release-many [value="release"]`)
	first.follow(`#release-many [value="dry"]`)
	first.has("#release-result", "Dry run result", "¥4.00", "needs two persons", ids[0], "¥2.00 goes to winners or back to the sender")
	first.follow(`#release-many [value="release"]`)
	first.has("#release-many", "The input is not valid")
	first.fill("#release-many textarea", "looked at both")
	first.follow(`#release-many [value="release"]`)
	first.has("#release-result", "Result of the release", "needs two persons", h.finance.Key.Owner)
	first.follow(`#release-many [value="dry"]`)
	first.has("#release-result", "Nothing is left for you")
	second.open("/holds?active=true&scope=packet")
	second.follow(`#release-many [value="dry"]`)
	second.has("#release-result", "将解除", h.finance.Key.Owner, "¥4.00")
	second.fill("#release-many textarea", "已核实")
	second.follow(`#release-many [value="release"]`)
	second.has("#release-result", "已解除", ids[0], ids[1])
	second.open("/holds")
	second.lacks("tbody")
	ops := h.signIn(h.ops, "en")
	ops.open("/holds?active=true&kind=staff")
	ops.lacks("#release-many")
}

// TestDecideConflicts: after a dry run the first of two persons of finance asks to honour the share
// conflicts that match the filter; another one, who sees who has asked, honours them.
func TestDecideConflicts(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	conflict := packet.Claim{PacketID: id, UserID: "conflicting", Amount: 100, ClaimedAt: time.Now()}
	st, err := h.Store.RecordShareConflict(t.Context(), conflict, "share taken")
	if err != nil {
		t.Fatal(err)
	}
	first, second := h.signIn(h.finance, "en"), h.signIn(h.second, "zh-CN")
	first.open("/share-conflicts")
	first.lacks("#decide-many") // without a filter
	first.open("/share-conflicts?default_decision=honour")
	first.lacks(`#decide-many button[value="decide"]`)
	first.follow(`#decide-many button[value="void"]`)
	first.has("#decide-result", "Dry run result", "void", "¥1.00")
	first.follow(`#decide-many button[value="honour"]`)
	first.has("#decide-result", "Dry run result", "honour", "¥1.00", "needs two persons", st.PaymentID, "conflicting")
	first.follow(`#decide-many button[value="decide"]`)
	first.has("#decide-many", "The input is not valid", "honour: 1")
	first.fill("#decide-many textarea", "looked at it")
	first.follow(`#decide-many button[value="decide"]`)
	first.has("#decide-result", "Result", "needs two persons")
	first.follow(`#decide-many button[value="honour"]`)
	first.has("#decide-result", "Nothing is left for you")
	second.open("/share-conflicts?packet_id=" + id)
	second.follow(`#decide-many button[value="void"]`)
	second.has("#decide-result", "跳过")
	second.follow(`#decide-many button[value="honour"]`)
	second.has("#decide-result", "将生效", h.finance.Key.Owner, "¥1.00")
	second.fill("#decide-many textarea", "已核实")
	second.follow(`#decide-many button[value="decide"]`)
	second.has("#decide-result", "已生效", st.PaymentID)
	ops := h.signIn(h.ops, "en")
	ops.open("/share-conflicts?default_decision=honour")
	ops.lacks("#decide-many")
}
