package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestPacketAndSearch: the page of a closed packet shows claims and fairness; the search finds
// order number, payout, packet and user.
func TestPacketAndSearch(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 888, "share_count": 3, "greeting": "恭喜发财"})
	won := h.grab(id, "用户 a", "小明")
	h.grab(id, "b", "")
	h.finish(id)
	b := h.signIn(h.auditor, "en")
	b.open("/packets/" + id)
	b.has("main", "恭喜发财", "¥8.88", "lin mei", "closed", "recalled", "Ledger, Redis and provider agree",
		"Amounts match the committed seed", "小明", "best luck", "Open in Temporal")
	if n := b.count(".luck"); n != 1 {
		t.Errorf("%d have the best luck", n)
	}
	for query, place := range map[string]string{payout.OrderNo(won, 1): "/payouts/" + won, won: "/payouts/" + won, id: "/packets/" + id,
		" " + id + " ":                      "/packets/" + id,
		payout.ID(payout.KindRefund, id, 0): "/refunds/" + payout.ID(payout.KindRefund, id, 0), payout.ID(payout.KindCharge, id, 0): "/charges/" +
			payout.ID(payout.KindCharge, id, 0)} {
		b.open("/")
		b.fill("#q", query)
		b.follow(".search button")
		if b.where() != place {
			t.Errorf("%q leads to %s, want %s", query, b.where(), place)
		}
	}
	d, err := h.Reports.Payment(t.Context(), won)
	h.must(err)
	b.open("/search?q=" + d.ProviderRef)
	b.has("main", won)
	b.lacks("main section + section")
	b.open("/")
	b.fill("#q", "用户 a")
	b.follow(".search button")
	b.has("main", won)
	b.open("/search?q=lin+mei")
	b.has("main", "Packets sent", id, "¥8.88")
	b.open("/search?q=nobody")
	b.has("main", "No results")
	// User ids may look like ids of packets and payments, or like order numbers.
	for _, user := range []string{"9m4e2mr0ui3e8a215n4g", "p9m4e2mr0ui3e8a215n4g0003", "r9m4e2mr0ui3e8a215n4g0003",
		"c9m4e2mr0ui3e8a215n4g0000", "p9m4e2mr0ui3e8a215n4g000301"} {
		sent := h.open(map[string]any{"sender_id": user, "total_amount": 300, "share_count": 3, "split": "equal"})
		won := h.grab(sent, user, "")
		if status := b.open("/search?q=" + user); status != http.StatusOK || b.where() != "/search?q="+user {
			t.Errorf("%s: %d at %s", user, status, b.where())
		}
		b.has("main", won, "Packets sent", sent)
	}
	if status := b.open("/payouts/p" + strings.Repeat("0", 24)); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	b.has("main", "Payout not found")
	if status := b.open("/packets/nothing"); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}

// TestPacketByTicket: the page of a packet with tickets says so.
func TestPacketByTicket(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "u", "total_amount": 300, "share_count": 3, "tickets": true})
	free := h.open(map[string]any{"sender_id": "u", "total_amount": 300, "share_count": 3})
	for language, words := range map[string]string{"en": "users with a ticket signed by the app", "zh": "持应用签发凭证的用户"} {
		b := h.signIn(h.auditor, language)
		b.open("/packets/" + id)
		b.has("main", words)
		b.open("/packets/" + free)
		if text := b.raw("main"); strings.Contains(text, words) {
			t.Errorf("a packet for everybody is %q", words)
		}
	}
}

// TestPages: a long list is paged and keeps its filter.
func TestPages(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 6000, "share_count": 60, "split": "equal"})
	for i := range 60 {
		h.win(id, fmt.Sprint("u", i), "")
	}
	h.record(id)
	b := h.signIn(h.auditor, "en")
	b.open("/payouts?status=failed&min=1")
	b.follow(`.tabs li:nth-child(7) a`)
	b.has("#total", "60 in total", "¥60.00")
	if b.where() != "/payouts?min=1&status=paid" {
		t.Errorf("at %s", b.where())
	}
	seen := map[string]bool{}
	for _, rows := range []int{50, 10} {
		ids := b.texts("tbody a.mono")
		if len(ids) != rows {
			t.Errorf("%d rows at %s, want %d", len(ids), b.where(), rows)
		}
		for _, id := range ids {
			seen[id] = true
		}
		b.has("#total", "60 in total")
		if rows == 50 {
			b.follow("a[rel=next]")
		}
	}
	b.lacks("a[rel=next]")
	if len(seen) != 60 {
		t.Errorf("%d payouts seen", len(seen))
	}
}

// TestFileThatCannotBeMade: a failed download explains why.
func TestFileThatCannotBeMade(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	h.grab(id, "bob~frozen", "")
	b := h.signIn(h.finance, "en")
	if status := b.open("/payouts/export.csv?status=failed&code=" + strings.Repeat("x", 200)); status != http.StatusUnprocessableEntity {
		t.Errorf("a filter that is too long: %d", status)
	}
	b.has(".note.bad", "The input is not valid", "The failure code has the wrong format")
	b.open("/payouts?status=failed")
	h.must(h.Store.Close())
	if status := b.follow("#csv"); status != http.StatusInternalServerError {
		t.Errorf("without a store: %d", status)
	}
	b.has(".note.bad", "Internal error")
}

// TestAuditIsRead: the auditor reads the audit log and verifies the hash chain.
func TestAuditIsRead(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	h.decide(h.finance, bad, "cancel", "the account is gone")
	b := h.signIn(h.auditor, "en")
	b.follow(`.nav a[href="/audit"]`)
	b.has("tbody", h.finance.Key.Owner, "cancel", bad, "the account is gone", `{"status":"failed"}`)
	b.follow(`a[href="/audit/verify"]`)
	b.has("#verdict", "Hash chain intact, 1 entries")
	b.follow("tbody a")
	if b.where() != "/payouts/"+bad {
		t.Errorf("at %s", b.where())
	}
}

// TestAuditOfTheWorker: entries of the system and an operator are shown, and so are those of an
// unknown role.
func TestAuditOfTheWorker(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	ctx := t.Context()
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	h.decide(h.finance, bad, "cancel", "the account is gone")
	waiting, err := h.Store.Approvals(ctx, staff.ApprovalFilter{Limit: 1})
	h.must(err)
	w := staff.Write{Owner: h.second.Key.Owner, Role: string(h.second.Key.Role), KeyID: h.second.Key.ID, Route: "POST /test/approve",
		Key: "k", BodyHash: "h", Reason: "seen"}
	_, err = h.Store.AnswerApproval(ctx, w, waiting[0].Decision.ApprovalID, true,
		func(*staff.Decision, staff.PaymentRow, error) (int, []byte) { return http.StatusAccepted, []byte("{}") })
	h.must(err)
	wait.Until(h.t, "cancelled", func() bool { return h.drive(bad) == payout.StatusCancelled })
	w = staff.Write{Owner: "op", Role: "butler", Reason: "restored"}
	books, err := h.Store.DeclareRestored(ctx, w, 0, time.Now())
	h.must(err)
	_, err = h.Store.EndRecovery(ctx, w, books, 0, []string{"sandbox"}, nil, nil)
	h.must(err)
	for language, wanted := range map[string][]string{"en": {"system", "Cancelled", "cancel_carried_out", "butler"},
		"zh-CN": {"系统", "取消已执行", "同意取消", "butler"}} {
		b := h.signIn(h.auditor, language)
		if status := b.open("/audit"); status != http.StatusOK {
			t.Errorf("%s: %d", language, status)
		}
		b.has("tbody", wanted...)
		if status := b.open("/audit/verify"); status != http.StatusOK {
			t.Errorf("%s, verified: %d", language, status)
		}
		b.has("tbody", wanted...)
	}
}

// TestReconciliationIsAsked: finance requests the reconciliation of a day and resolves a break.
func TestReconciliationIsAsked(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	h.grab(id, "a", "")
	h.conflict(id, "<b>another</b>")
	b := h.signIn(h.finance, "en")
	b.follow(`.nav a[href="/reconciliations"]`)
	b.fill("main input[name=reason]", "month end")
	b.follow("main form button")
	b.has(".note.good", "The reconciliation is requested")
	b.has("#run", "requested", "month end", "sandbox")
	b.open("/reconciliations")
	b.has("tbody", time.Now().UTC().Format("2006-01-02"), h.finance.Key.Owner)
	b.open("/breaks")
	b.has("main", "share_conflict", "<b>another</b>", id)
	b.lacks("main b")
	b.click("main section summary")
	b.fill("main section textarea", "the user was informed")
	b.follow("main section button")
	b.has(".note.good", "The break is resolved")
	b.has("main", "No entries.")
	b.open("/breaks?resolved=true")
	b.has("main", "the user was informed", h.finance.Key.Owner)
}

// TestBalancesAreHeld: after a recovery the overview links to the hold of the balances of apps, which two persons
// of finance release.
func TestBalancesAreHeld(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	w := staff.Write{Owner: "op", Role: "operator", Reason: "r"}
	books, err := h.Store.DeclareRestored(t.Context(), w, 0, time.Now())
	h.must(err)
	_, err = h.Store.EndRecovery(t.Context(), w, books, 0, []string{payout.BalanceProvider}, nil, nil)
	h.must(err)
	ops := h.signIn(h.ops, "en")
	ops.has("#hold-balance", "two persons of finance")
	ops.lacks("#hold-balance form")
	ops.follow("#hold-balance a")
	ops.has("#release", "The release needs two persons of finance", "Finance releases this hold.")
	ops.lacks("#release form")
	for _, who := range []struct {
		owner  harness.Owner
		button string
	}{{h.finance, "Ask for the release"}, {h.second, "Release"}} {
		b := h.signIn(who.owner, "en")
		b.follow("#hold-balance a")
		b.has("#release button", who.button)
		b.fill("#release textarea", "the bank statement fits")
		b.follow("#release button")
	}
	ops.open("/")
	ops.has("#hold-balance summary", "Hold provider")
}

// TestProviderSwitch: operations hold and release the provider with a reason.
func TestProviderSwitch(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	b := h.signIn(h.ops, "zh-CN")
	b.click("#hold-sandbox summary")
	b.fill("#hold-sandbox textarea", "对账不平")
	b.follow("#hold-sandbox button")
	b.has(".note.good", "渠道已暂停")
	b.has("#live", "已暂停", h.ops.Key.Owner, "对账不平")
	state, err := h.Store.ProviderState(t.Context(), "sandbox")
	h.must(err)
	if state.Hold == nil || state.Hold.Reason != "对账不平" {
		t.Errorf("%+v", state)
	}
	b.fill("#hold-sandbox textarea", "已查明")
	b.follow("#hold-sandbox button")
	b.has(".note.good", "渠道已恢复")
}

// TestRevokedKey: revoking a key ends its session at once, also for a polling page.
func TestRevokedKey(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	b := h.signIn(h.ops, "en")
	_, err := h.Store.RevokeKey(t.Context(), h.ops.Key.ID)
	h.must(err)
	wait.Until(h.t, "signed out", func() bool { b.open("/payouts"); return strings.HasPrefix(b.where(), "/login") })
	if b.cookie("hongbao_desk") != "" {
		t.Error("the cookie is still there")
	}
}
