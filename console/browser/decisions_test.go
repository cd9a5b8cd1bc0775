package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestWrongRole: a role without the right to decide sees no form, and the API refuses a forged
// one.
func TestWrongRole(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	for _, who := range []harness.Owner{h.ops, h.auditor} {
		b := h.signIn(who, "en")
		b.open("/payouts/" + bad)
		b.has("#why", "account_frozen")
		b.lacks("#retry", "#cancel", "#mark-paid", "#ask", ".decisions textarea")
		form := url.Values{"csrf": {b.csrf()}, "key": {"k-" + who.Key.ID}, "reason": {"because"}, "evidence": {"slip"}}
		for _, path := range []string{"/payouts/" + bad + "/retry", "/payouts/" + bad + "/cancel", "/payouts/" + bad + "/mark-paid", "/payouts/" +
			bad + "/ask", "/breaks/b1/resolve", "/reconciliations"} {
			if status := b.post(path, form); status != http.StatusForbidden {
				t.Errorf("%s of %s: %d", path, who.Key.Role, status)
			}
		}
		hold := http.StatusForbidden
		if who.Key.Role == h.ops.Key.Role {
			hold = http.StatusSeeOther
		}
		for _, path := range []string{"/providers/sandbox/hold", "/providers/sandbox/release"} {
			if status := b.post(path, url.Values{"csrf": {b.csrf()}, "key": {"h-" + path}, "reason": {"because"}}); status != hold {
				t.Errorf("%s of %s: %d, want %d", path, who.Key.Role, status, hold)
			}
		}
		for _, path := range []string{"/payouts/" + bad + "/hold", "/packets/" + id + "/hold"} {
			if status := b.post(path, url.Values{"csrf": {b.csrf()}, "key": {"h-" + path}, "reason": {"because"}}); status != hold {
				t.Errorf("%s of %s: %d, want %d", path, who.Key.Role, status, hold)
			}
		}
		if status := b.open("/audit"); (status == http.StatusOK) != (who.Key.Role == h.auditor.Key.Role) {
			t.Errorf("audit for %s: %d", who.Key.Role, status)
		}
	}
	d, err := h.Reports.Payment(t.Context(), bad)
	h.must(err)
	if d.Status != payout.StatusFailed {
		t.Errorf("moved to %s", d.Status)
	}
}

// TestForgedWrites: writes without the CSRF token of the session, and cross-site writes, are
// refused.
func TestForgedWrites(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.signIn(h.finance, "en")
	b.open("/payouts/" + bad)
	for _, token := range []string{"", "x", strings.ToLower(b.csrf())} {
		if status := b.post("/payouts/"+bad+"/retry",
			url.Values{"csrf": {token}, "key": {"k"}, "reason": {"r"}}); status != http.StatusForbidden {
			t.Errorf("token %q: %d", token, status)
		}
	}
	token := b.csrf()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Staff+"/payouts/"+bad+"/retry",
		strings.NewReader(url.Values{"csrf": {token}, "key": {"k2"}, "reason": {"r"}}.Encode()))
	h.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", "https://evil.example")
	req.AddCookie(&http.Cookie{Name: "hongbao_desk", Value: b.cookie("hongbao_desk")})
	answer, err := http.DefaultClient.Do(req)
	h.must(err)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("from another origin, with cookie and token: %d", answer.StatusCode)
	}
	d, err := h.Reports.Payment(t.Context(), bad)
	h.must(err)
	if d.Status != payout.StatusFailed {
		t.Errorf("moved to %s", d.Status)
	}
}

// TestForgotten: a payout whose order number the provider no longer knows offers exactly the
// permitted decisions, and each works.
func TestForgotten(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	ctx := t.Context()
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	db, err := store.OpenSQL(h.DSN)
	h.must(err)
	defer func() { h.must(db.Close()) }()
	_, err = db.ExecContext(ctx, "UPDATE payments SET status = 'unknown', settled_at = NULL, failure_code = NULL, failure_message = NULL "+
		"WHERE id = ?", bad)
	h.must(err)
	_, err = db.ExecContext(ctx, "UPDATE attempts SET forgotten = 1, ask_until = NOW(6) WHERE payment_id = ?", bad)
	h.must(err)
	b := h.signIn(h.finance, "en")
	b.open("/payouts/" + bad)
	b.has("#status", "unknown")
	b.lacks("#cancel")
	offered := b.attrs(".decisions form", "id")
	if !slices.Equal(offered, []string{"retry", "mark-paid", "ask"}) {
		t.Errorf("offered: %q", offered)
	}
	for _, action := range []string{"ask", "retry"} {
		if status := b.post("/payouts/"+bad+"/"+action,
			url.Values{"csrf": {b.csrf()}, "key": {"k-" + action}, "reason": {"asked the bank"}}); status != http.StatusSeeOther {
			t.Errorf("%s: %d", action, status)
		}
	}
}

// TestWhyNumberAndWhyNot: each page gives the reason for the order number of a retry, or why
// there is no retry, in both languages, and offers the other decisions.
func TestWhyNumberAndWhyNot(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	ctx := t.Context()
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 600, "share_count": 6, "split": "equal"})
	failed, asked, forgotten := h.grab(id, "failed~frozen", ""), h.grab(id, "asked~frozen", ""), h.grab(id, "forgotten~frozen", "")
	returned := h.grab(id, "back~declined", "")
	promise := h.conflict(id, "second")
	db, err := store.OpenSQL(h.DSN)
	h.must(err)
	defer func() { h.must(db.Close()) }()
	for _, change := range []string{
		"UPDATE payments SET status = 'unknown', settled_at = NULL, failure_code = NULL, failure_message = NULL WHERE id IN ('" + asked + "', '" +
			forgotten + "')",
		"UPDATE attempts SET forgotten = 1, ask_until = NOW(6) WHERE payment_id = '" + forgotten + "'",
		"UPDATE payments SET status = 'returned' WHERE id = '" + returned + "'",
	} {
		_, err = db.ExecContext(ctx, change)
		h.must(err)
	}
	packet := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	undecided := h.grab(packet, "undecided~frozen", "")
	gone := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	maybe := h.grab(gone, "maybe~frozen", "")
	w := staff.Write{Owner: "op", Role: "operator", Route: "r", Key: "k", BodyHash: "h", Reason: "r"}
	books, err := h.Store.DeclareRestored(ctx, w, 0, time.Now())
	h.must(err)
	h.must(h.Store.NoteUndecided(ctx, packet, payout.OrderNo(undecided, 2), "d"))
	refund := payout.ID(payout.KindRefund, gone, 1)
	h.must(h.Store.NoteUndecided(ctx, gone, payout.OrderNo(refund, 1), "d"))
	_, err = h.Store.EndRecovery(ctx, w, books, 0, []string{"sandbox"}, nil, nil)
	h.must(err)
	_, err = db.ExecContext(ctx, "UPDATE holds SET released_at = placed_at, released_by = 'op' WHERE scope = 'provider'")
	h.must(err)
	h.spoil(`{"op":"refund","kind":"decline","rate":1}`)
	back := h.remainder("sender", 300)
	h.spoil("")
	_, err = db.ExecContext(ctx, "UPDATE payments SET failure_code = 'payee_declined' WHERE id = ?", back)
	h.must(err)
	for lang, says := range map[string]string{"en": "Pay another account of the sender yourself and mark as paid.",
		"zh-CN": "请自行付至发红包人的其他账户并标记为线下已付。"} {
		b := h.signIn(h.finance, lang)
		b.open("/refunds/" + back)
		b.has("#why", says)
	}
	all, none, mend := []string{"retry", "cancel", "mark-paid", "ask"}, []string{"ask"}, []string{"cancel", "mark-paid", "ask"}
	for _, c := range []struct {
		id     string
		says   map[string]string
		offers []string
	}{
		{failed, map[string]string{"en": "because the last one failed", "zh-CN": "上一单号已确认失败"}, all},
		{returned, map[string]string{"en": "because the last one was returned", "zh-CN": "上一单号已退票"}, all},
		{forgotten, map[string]string{"en": "because the provider's memory of the last one has ended", "zh-CN": "上一单号已超过渠道可查期限"},
			[]string{"retry", "mark-paid", "ask"}},
		{promise, map[string]string{"en": "because nothing was sent before", "zh-CN": "此前从未发起"}, all[:3]},
		{asked, map[string]string{"en": "The platform is querying the provider.", "zh-CN": "正在向渠道查询。"}, none},
		{undecided, map[string]string{"en": "A hold on the packet or the payment", "zh-CN": "该红包或该款项已暂停"}, mend},
		{maybe, map[string]string{"en": "A hold on the packet or the payment", "zh-CN": "该红包或该款项已暂停"}, mend},
	} {
		for lang, says := range c.says {
			b := h.signIn(h.finance, lang)
			b.open("/payouts/" + c.id)
			b.has("#preview", says)
			if offered := b.attrs(".decisions form", "id"); !slices.Equal(offered, c.offers) {
				t.Errorf("%s: offered %q", says, offered)
			}
		}
	}
}

// TestRetryManyOfAnotherPage: a bulk retry carries out its dry run: the same selection of the
// same page, or all that match. The list then continues from there.
func TestRetryManyOfAnotherPage(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	h.runs = func(context.Context, string) (staff.WorkflowRuns, error) {
		t.Error("Temporal is asked for what MySQL knows")
		return staff.WorkflowRuns{}, nil
	}
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 5300, "share_count": 53, "split": "equal"})
	for i := range 53 {
		h.win(id, fmt.Sprintf("u%d~frozen", i), "")
	}
	h.record(id)
	b := h.signIn(h.finance, "en")
	b.open("/payouts?status=failed&min=1")
	b.follow("a[rel=next]")
	place := b.where()
	onPage := b.attrs("input[name=id]", "value")
	ticked := func(id string) {
		t.Helper()
		if got := b.attrs("input[name=id][checked]", "value"); !slices.Equal(got, []string{id}) {
			t.Errorf("ticked: %q", got)
		}
	}
	if len(onPage) != 3 {
		t.Fatalf("%d payouts at %s", len(onPage), place)
	}
	press := func(button string) {
		t.Helper()
		wait.Until(t, "an answer to "+button, func() bool {
			if b.count("#again button") > 0 { // the answer took too long
				button = "#again button"
			}
			return b.follow(button) == http.StatusOK && b.count("#bulk-result") > 0
		})
	}
	b.click(`input[value="` + onPage[1] + `"]`)
	press("#dry-run")
	b.has("#bulk-result", "Dry run result", "1 in total", onPage[1])
	if again := b.attrs("input[name=id]", "value"); !slices.Equal(again, onPage) {
		t.Errorf("the page has %q, before %q", again, onPage)
	}
	ticked(onPage[1])
	if status := b.follow("#retry-many"); status != http.StatusUnprocessableEntity { // without a reason
		t.Errorf("%d", status)
	}
	b.has("#bulk #refused", "The reason")
	ticked(onPage[1])
	b.fill("#bulk textarea", "incident 17 is over")
	press("#retry-many")
	b.has("#bulk-result", "Retry result", "1 in total", onPage[1], "retried")
	d, err := h.Reports.Payment(t.Context(), onPage[1])
	h.must(err)
	if d.Status != payout.StatusPending {
		t.Errorf("%s", d.Status)
	}

	b.open("/payouts?status=failed")
	b.click(`input[name=scope][value=all]`)
	press("#dry-run")
	b.has("#bulk-result", "52 in total")
	if b.count("input[name=scope][value=all][checked]") != 1 {
		t.Error("all that fit are not chosen any more")
	}
	if status := b.follow("a[rel=next]"); status != http.StatusOK || !strings.HasPrefix(b.where(), "/payouts?cursor=") {
		t.Errorf("the next page is %s: %d", b.where(), status)
	}
	if rest := b.attrs("input[name=id]", "value"); len(rest) != 2 {
		t.Errorf("%d payouts on the next page", len(rest))
	}
	b.open("/payouts?status=failed")
	b.click(`input[name=scope][value=all]`)
	press("#dry-run")
	b.fill("#bulk textarea", "all of them")
	press("#retry-many")
	b.has("#bulk-result", "Retry result", "52 in total")
}

// TestProgressWithoutScripts: without scripts a button refreshes the progress; forged progress is
// refused, and polling does not extend the session.
func TestProgressWithoutScripts(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "a~frozen", "")
	b := h.signIn(h.finance, "en")
	b.open("/payouts?status=failed")
	b.click(`input[value="` + bad + `"]`)
	b.fill("#bulk textarea", "incident 17 is over")
	b.follow("#retry-many")
	b.has("#bulk-said", "0 of 1 final")
	h.drive(bad)
	b.follow("#look-again")
	b.has("#bulk-said", "1 of 1 final", "failed 1")
	b.has("#bulk-run", bad, "retried", "failed")
	b.open("/payouts/" + bad)
	began := strconv.FormatInt(time.Now().Unix(), 10)
	good := bad + " retried  " + payout.OrderNo(bad, 2) + " false pending"
	for _, form := range []url.Values{{}, {"began": {"x"}, "item": {good}}, {"began": {began}}, {"began": {began}, "item": {"x"}},
		{"began": {began}, "item": {bad + " retried   false <b>"}},
		{"began": {began}, "item": slices.Repeat([]string{good}, 201)}} {
		form.Set("csrf", b.csrf())
		if status := b.post("/payouts/progress", form); status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", form, status)
		}
	}
	if status := b.post("/payouts/progress", url.Values{"began": {began}, "item": {good}, "csrf": {"x"}}); status != http.StatusForbidden {
		t.Errorf("without the token: %d", status)
	}
	if status := b.post("/payouts/progress", url.Values{"began": {began}, "item": {good}, "csrf": {b.csrf()}}); status != http.StatusOK {
		t.Errorf("%d", status)
	}
}
