package api_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// write is a staff write.
func (h *fixture) write(who owner, path, key, body string) result {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/v1/staff/" + path, key: who.token, body: body, header: map[string]string{"Idempotency-Key": key}})
}

// colleague is a second person of finance whose key is known already.
func (h *fixture) colleague() owner {
	h.t.Helper()
	o := h.newOwner("finance")
	wait.Until(h.t, "the new key is known", func() bool { return h.as(o, "GET", "/v1/staff/approvals", "").status == http.StatusOK })
	return o
}

// answeredBody is the answer to a decision or to a second person.
type answeredBody struct {
	Decision struct {
		ID, Kind, Reason, By, Status string
		KeyID                        string `json:"key_id"`
	}
	Payout   *payoutBody
	Refund   *struct{ ID, Status, Kind string }
	Approval *struct {
		ID        string
		ExpiresAt string `json:"expires_at"`
	}
}

func (h *fixture) decided(r result, status string) answeredBody {
	h.t.Helper()
	var d answeredBody
	r.json(h.t, &d)
	if r.status != http.StatusAccepted || d.Decision.Status != status {
		h.t.Fatalf("want %s: %s", status, r)
	}
	return d
}

const because = `{"reason":"because"}`

// TestCancel: two persons send a payout's money back to the sender.
func TestCancel(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id, bad := h.failed()
	colleague := h.colleague()
	d := h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	if d.Approval == nil || d.Approval.ExpiresAt == "" || d.Payout.Status != "failed" || d.Decision.Kind != "cancel" {
		t.Fatalf("%+v", d)
	}
	if r := h.write(h.finance, "payouts/"+bad+"/retry", "concurrent", because); r.status != 409 || r.code() != "decision_pending" {
		t.Errorf("concurrent retry: %s", r)
	}
	if r := h.write(h.finance, "approvals/"+d.Approval.ID+"/approve", "self", because); r.status != 403 || r.code() != "forbidden" ||
		!strings.Contains(string(r.body), "another person") {
		t.Errorf("approved by the person who decided: %s", r)
	}
	yes := h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "yes", because)
	if a := h.decided(yes, "open"); a.Payout == nil || a.Payout.Status != "failed" || a.Approval != nil || a.Refund != nil {
		t.Errorf("%+v", a)
	}
	if again := h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "yes", because); string(again.body) != string(yes.body) ||
		again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again)
	}
	if r := h.write(colleague, "approvals/"+d.Approval.ID+"/reject", "no", because); r.status != 409 || r.code() != "not_retryable" {
		t.Errorf("rejected after it was approved: %s", r)
	}
	if p := h.proof(h.app, id); p.Owed == 0 || p.Refunding != 0 {
		t.Errorf("moved before every number was asked about: %+v", p)
	}
	if st := h.drive(bad); st.Status != payout.StatusCancelled {
		t.Fatalf("%+v", st)
	}
	if p := h.proof(h.app, id); p.Owed != 0 || p.Refunding != 250 || p.Paid != 500 {
		t.Errorf("%+v", p)
	}
	parts, err := payout.Parse(bad)
	h.check(err)
	refund := payout.ID(payout.KindRefund, id, parts.Number+1)
	if st := h.drive(refund); st.Status != payout.StatusPaid {
		t.Fatalf("%+v", st)
	}
	h.finish(id, packet.CloseRecalled)
	if p := h.proof(h.app, id); !p.Balanced || p.Refunded != 500 || p.Paid != 500 || p.Owed != 0 {
		t.Errorf("%+v", p)
	}
	if p := h.packet(h.app, id); p.RefundedAmount != 500 || p.Status != "closed" {
		t.Errorf("%+v", p)
	}
	if r := h.write(h.finance, "payouts/"+bad+"/mark-paid", "late", `{"reason":"r","evidence":"e"}`); r.code() != "not_retryable" {
		t.Errorf("cancelled: %s", r)
	}
}

// TestDecisionChanged: an approval covers what was shown when the decision was made. If the
// provider's answer changes it before, nothing happens and the answer has the current state.
func TestDecisionChanged(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	_, bad := h.failed()
	colleague := h.colleague()
	d := h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	type previewBody struct {
		Status       string
		Amount       int64
		FailureCode  *string `json:"failure_code"`
		AttemptCount int     `json:"attempt_count"`
		OrderNo      *string `json:"order_no"`
	}
	listed := func(changed bool) {
		t.Helper()
		var list struct {
			Items []struct {
				ID      string
				Changed bool
				Preview *previewBody
			}
		}
		h.as(h.auditor, "GET", "/v1/staff/approvals?status=waiting&payment_id="+bad, "").json(t, &list)
		if len(list.Items) != 1 || list.Items[0].Changed != changed || list.Items[0].Preview == nil || list.Items[0].Preview.Amount != 250 {
			t.Errorf("want changed %t: %+v", changed, list)
		}
	}
	listed(false)
	no := payout.OrderNo(bad, 1)
	_, err := h.store.Settle(t.Context(), payout.Observation{ID: rand.Text(), Adapter: payout.Adapter{Provider: "sandbox", Account: "sandbox"},
		Source: payout.SourceQuery, Kind: payout.ObsPending, OrderNo: no}, no)
	h.check(err)
	listed(true)
	r := h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "blind", because)
	var p struct {
		Code    string
		Preview *previewBody
	}
	if r.json(t, &p); r.status != 409 || p.Code != "decision_changed" || p.Preview == nil || p.Preview.Status != "failed" ||
		p.Preview.Amount != 250 || p.Preview.AttemptCount != 1 || p.Preview.FailureCode == nil || p.Preview.OrderNo != nil {
		t.Fatalf("%s", r)
	}
	if st, err := h.store.PaymentState(t.Context(), bad); err != nil || st.Status != payout.StatusFailed {
		t.Errorf("%+v, %v", st, err)
	}
	listed(true)
	h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/reject", "no", because), "rejected")
	d = h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "again", because), "waiting")
	h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "seen", because), "open")
}

// TestWithdraw: the one who has asked for a second person takes the request back, and
// nobody else does.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id, bad := h.failed()
	colleague := h.colleague()
	d := h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	path := "approvals/" + d.Approval.ID + "/withdraw"
	if r := h.write(colleague, path, "not-mine", because); r.status != 403 || r.code() != "forbidden" {
		t.Errorf("another's: %s", r)
	}
	if r := h.write(h.finance, path, "why", `{"reason":""}`); r.status != 422 {
		t.Errorf("without a reason: %s", r)
	}
	mine := h.write(h.finance, path, "mine", `{"reason":"the wrong payout"}`)
	if a := h.decided(mine, "withdrawn"); a.Payout == nil || a.Payout.Status != "failed" || a.Approval != nil {
		t.Errorf("%+v", a)
	}
	if again := h.write(h.finance, path, "mine", `{"reason":"the wrong payout"}`); string(again.body) != string(mine.body) ||
		again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again)
	}
	for who, o := range map[string]owner{"/withdraw": h.finance, "/approve": colleague, "/reject": colleague} {
		if r := h.write(o, "approvals/"+d.Approval.ID+who, "late"+who, because); r.status != 409 || r.code() != "not_retryable" {
			t.Errorf("%s of what was withdrawn: %s", who, r)
		}
	}
	var list struct {
		Items []struct {
			ID, Status string
			AnsweredBy *string `json:"answered_by"`
			Why        string  `json:"answer_reason"`
		}
	}
	h.as(h.auditor, "GET", "/v1/staff/approvals?status=withdrawn&payment_id="+bad, "").json(t, &list)
	if len(list.Items) != 1 || list.Items[0].ID != d.Approval.ID || list.Items[0].AnsweredBy != nil ||
		list.Items[0].Why != "the wrong payout" {
		t.Errorf("%+v", list)
	}
	if p := h.proof(h.app, id); p.Owed == 0 || p.Refunding != 0 {
		t.Errorf("%+v", p)
	}
	h.decided(h.write(colleague, "payouts/"+bad+"/cancel", "instead", because), "waiting")
}

func TestMarkPaid(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id, bad := h.failed()
	colleague := h.colleague()
	for body, want := range map[string]string{
		because: "evidence required", `{"evidence":"e"}`: "reason required", `{"reason":"r","evidence":" "}`: "evidence wrong_length",
		`{"reason":"r","evidence":"` + strings.Repeat("e", 501) + `"}`: "evidence wrong_length",
		`{"reason":"r","evidence":3}`:                                  "evidence wrong_type",
	} {
		if r := h.write(h.finance, "payouts/"+bad+"/mark-paid", "k", body); r.status != 422 || !slices.Equal(fieldsOf(t, r), []string{want}) {
			t.Errorf("%.60s: %s", body, r)
		}
	}
	d := h.decided(h.write(h.finance, "payouts/"+bad+"/mark-paid", "k", `{"reason":"r","evidence":"slip 1"}`), "waiting")
	no := h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/reject", "no", `{"reason":"the slip is of another day"}`), "rejected")
	if no.Payout.Status != "failed" {
		t.Errorf("%+v", no)
	}
	d = h.decided(h.write(h.finance, "payouts/"+bad+"/mark-paid", "k2", `{"reason":"r","evidence":"slip 2"}`), "waiting")
	if a := h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "yes", because),
		"carried_out"); a.Payout.Status != "paid_outside" || a.Payout.Failure != nil {
		t.Errorf("%+v", a)
	}
	h.drive(bad)
	if p := h.proof(h.app, id); !p.Balanced || p.Paid != 750 || p.Owed != 0 {
		t.Errorf("%+v", p)
	}
	var list struct {
		Items []struct {
			ID, Status, Evidence string
			Payout               *payoutBody
			AnsweredBy           string `json:"answered_by"`
		}
	}
	h.as(h.auditor, "GET", "/v1/staff/approvals", "").json(t, &list)
	if len(list.Items) != 2 || list.Items[0].Status != "carried_out" || list.Items[0].Evidence != "slip 2" ||
		list.Items[0].AnsweredBy != colleague.key.Owner ||
		list.Items[1].Status != "rejected" || list.Items[1].Payout == nil || list.Items[1].Payout.ID != bad {
		t.Errorf("%+v", list)
	}
	for filter, want := range map[string]int{"payment_id=" + bad: 2, "payment_id=" + bad + "&status=rejected": 1,
		"payment_id=p3q5k9v0c1m7e2u8h4r6t0003": 0} {
		if h.as(h.auditor, "GET", "/v1/staff/approvals?"+filter, "").json(t, &list); len(list.Items) != want {
			t.Errorf("%s: %+v", filter, list)
		}
	}
	if r := h.as(h.auditor, "GET", "/v1/staff/approvals?payment_id=", ""); r.status != 422 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestApprovalsWaitingForMe: by_others leaves out what one has decided oneself, on every page, and a
// cursor is good for nobody else.
func TestApprovalsWaitingForMe(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	colleague := h.colleague()
	var mine, others []string
	for i := range 3 {
		_, bad := h.failed()
		mine = append(mine, h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", fmt.Sprint("m", i), because), "waiting").Approval.ID)
		_, bad = h.failed()
		others = append(others, h.decided(h.write(colleague, "payouts/"+bad+"/cancel", fmt.Sprint("o", i), because), "waiting").Approval.ID)
	}
	for _, tc := range []struct {
		who  owner
		want []string
	}{{h.finance, others}, {colleague, mine}, {h.auditor, append(slices.Clone(mine), others...)}} {
		var got []string
		next := ""
		for more := true; more; {
			var page struct {
				Items []struct{ ID string }
				Next  *string `json:"next_cursor"`
			}
			h.as(tc.who, "GET", "/v1/staff/approvals?status=waiting&by_others=true&limit=2"+next, "").json(t, &page)
			for _, item := range page.Items {
				got = append(got, item.ID)
			}
			if more = page.Next != nil; !more {
				break
			}
			next = "&cursor=" + url.QueryEscape(*page.Next)
			if tc.who.token == colleague.token {
				if r := h.as(h.finance, "GET", "/v1/staff/approvals?cursor="+url.QueryEscape(*page.Next), ""); r.code() != "invalid_request" {
					t.Errorf("another person's cursor: %s", r)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(tc.want)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.who.key.Owner, got, tc.want)
		}
	}
}

func TestQueryDecision(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	_, bad := h.failed()
	d := h.decided(h.write(h.finance, "payouts/"+bad+"/ask", "k", because), "carried_out")
	if d.Approval != nil || d.Payout.Status != "failed" {
		t.Errorf("%+v", d)
	}
	st, err := h.store.PaymentState(t.Context(), bad)
	h.check(err)
	if st.Step.Do != payout.ActionQuery || st.Status != payout.StatusFailed {
		t.Errorf("%+v", st)
	}
	if st := h.drive(bad); st.Status != payout.StatusFailed {
		t.Errorf("%+v", st)
	}
}

func TestRefundDecisions(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with("sender_id", `"payer"`, "total_amount", "300000", "share_count", "3"))
	h.grab(h.app, id, "winner")
	_, err := h.store.BeginClosing(t.Context(), id, packet.CloseRecalled)
	h.check(err)
	_, err = h.pool.ClosePool(t.Context(), id, packet.CloseRecalled)
	h.check(err)
	h.record(id)
	_, err = h.store.CloseBooks(t.Context(), id, "")
	h.check(err)
	refund := payout.ID(payout.KindRefund, id, 0)
	if r := h.do(call{method: "PUT", base: h.provider, path: "/_faults",
		body: `{"rules":[{"op":"refund","kind":"decline","rate":1}]}`}); r.status != http.StatusNoContent {
		t.Fatalf("%s", r)
	}
	if st := h.drive(refund); st.Status != payout.StatusFailed {
		t.Fatalf("%+v", st)
	}
	for _, path := range []string{"payouts/" + refund + "/retry", "refunds/p" + refund[1:] + "/retry", "refunds/x/retry", "payouts/" + refund +
		"/cancel"} {
		if r := h.write(h.finance, path, "wrong", because); r.status != 404 {
			t.Errorf("%s: %s", path, r)
		}
	}
	d := h.decided(h.write(h.finance, "refunds/"+refund+"/mark-paid", "k", `{"reason":"r","evidence":"e"}`), "waiting")
	if d.Refund == nil || d.Refund.ID != refund || d.Payout != nil {
		t.Errorf("%+v", d)
	}
	if a := h.decided(h.write(h.colleague(), "approvals/"+d.Approval.ID+"/approve", "yes", because), "carried_out"); a.Refund == nil ||
		a.Refund.Status != "paid_outside" || a.Payout != nil {
		t.Errorf("%+v", a)
	}
	due, err := h.store.DueOutbox(t.Context(), 10)
	h.check(err)
	if !slices.ContainsFunc(due, func(d payout.DueRun) bool { return d.Payment.ID == refund }) {
		t.Errorf("nobody closes the packet: %+v", due)
	}
	h.drive(refund)
	if p := h.proof(h.app, id); !p.Balanced {
		t.Errorf("%+v", p)
	}
}

// bulkBody is the answer to a bulk retry.
type bulkBody struct {
	DryRun bool `json:"dry_run"`
	Count  int
	Amount int64
	More   bool
	Items  []struct {
		PayoutID    string `json:"payout_id"`
		Result      string
		Code        *string
		OrderNo     *string `json:"order_no"`
		SameOrderNo bool    `json:"same_order_no"`
	}
}

func TestBulkRetry(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.ApprovalAmount = 300 }})
	_, small := h.failed()
	big := h.open(h.app, with("share_count", "2", "split", `"equal"`))
	h.grab(h.app, big, "大~frozen")
	h.record(big)
	bulk := func(key, body string) bulkBody {
		t.Helper()
		r := h.write(h.finance, "payouts/retry", key, body)
		var b bulkBody
		r.json(t, &b)
		if r.status != http.StatusOK {
			t.Fatalf("%s", r)
		}
		return b
	}
	for body, want := range map[string]string{
		`{"reason":"r"}`: "filter required", `{"reason":"r","filter":{}}`: "filter required",
		`{"reason":"r","filter":{"status":null}}`: "filter required", `{"filter":{"status":"failed"}}`: "reason required",
		`{"reason":"r","filter":{"state":"failed"}}`:              "filter.state unknown_field",
		`{"reason":"r","filter":{"status":"lost"}}`:               "filter.status not_allowed",
		`{"reason":"r","filter":{"status":"failed"},"dry_run":1}`: "dry_run wrong_type", `{"reason":"r","filter":[]}`: "filter wrong_type",
		`{"reason":"r","filter":{"amount_min":2,"amount_max":1}}`: "filter.amount_max out_of_range",
	} {
		if r := h.write(h.finance, "payouts/retry", "bad", body); r.status != 422 || !slices.Equal(fieldsOf(t, r), []string{want}) {
			t.Errorf("%s: %s", body, r)
		}
	}
	const frozen = `{"reason":"unfrozen","filter":{"failure_code":"account_frozen"}`
	dry := bulk("dry", frozen+"}")
	if !dry.DryRun || dry.Count != 2 || dry.Amount != 750 || len(dry.Items) != 2 || dry.Items[0].Result != "needs_approval" ||
		dry.Items[1].Result != "would_retry" ||
		dry.Items[1].PayoutID != small || *dry.Items[1].OrderNo != payout.OrderNo(small, 2) || dry.Items[1].SameOrderNo ||
		*dry.Items[1].Code != "account_frozen" {
		t.Fatalf("%+v", dry)
	}
	if st, err := h.store.PaymentState(t.Context(), small); err != nil || st.Status != payout.StatusFailed {
		t.Errorf("a dry run moved something: %+v, %v", st, err)
	}
	real := bulk("real", frozen+`,"dry_run":false}`)
	if real.DryRun || real.Count != 2 || real.Items[0].Result != "needs_approval" || real.Items[1].Result != "retried" ||
		*real.Items[1].OrderNo != payout.OrderNo(small, 2) {
		t.Errorf("%+v", real)
	}
	if again := bulk("real", frozen+`,"dry_run":false}`); again.Count != 2 || again.Items[1].Result != "retried" {
		t.Errorf("again: %+v", again)
	}
	if r := h.write(h.finance, "payouts/retry", "real", frozen+"}"); r.code() != "idempotency_key_reused" {
		t.Errorf("another body: %s", r)
	}
	// What is left of the filter waits for a second person.
	if left := bulk("left", frozen+`,"dry_run":false}`); left.Count != 0 || left.Amount != 0 || len(left.Items) != 1 ||
		left.Items[0].Result != "skipped" || *left.Items[0].Code != "decision_pending" {
		t.Errorf("%+v", left)
	}
	if paid := bulk("paid", `{"reason":"r","filter":{"status":"paid"}}`); paid.Count != 0 || len(paid.Items) != 2 ||
		paid.Items[0].Result != "skipped" || *paid.Items[0].Code != "not_retryable" {
		t.Errorf("%+v", paid)
	}
	if st := h.drive(small); st.Status != payout.StatusFailed { // still frozen
		t.Errorf("%+v", st)
	}
	if r := h.do(call{method: "POST", base: h.provider, path: "/_unfreeze/" +
		url.PathEscape("用/户~frozen")}); r.status != http.StatusNoContent {
		t.Fatalf("%s", r)
	}
	bulk("third", frozen+`,"dry_run":false}`)
	if st := h.drive(small); st.Status != payout.StatusPaid {
		t.Errorf("%+v", st)
	}
}

// TestDecisionRoles: only finance decides.
func TestDecisionRoles(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	_, bad := h.failed()
	for _, path := range []string{"payouts/" + bad + "/retry", "payouts/" + bad + "/cancel", "payouts/" + bad + "/mark-paid", "payouts/" +
		bad + "/ask", "payouts/" + bad + "/withdraw",
		"payouts/retry", "refunds/retry", "approvals/a/approve", "approvals/a/reject", "approvals/a/withdraw",
		"refunds/r" + bad[1:] + "/retry", "refunds/r" + bad[1:] + "/mark-paid"} {
		for who, o := range map[string]owner{"ops": h.ops, "auditor": h.auditor, "app": h.app} {
			if r := h.write(o, path, "k", because); r.status != 403 || r.code() != "forbidden" {
				t.Errorf("%s as %s: %s", path, who, r)
			}
		}
		body := because
		switch {
		case path == "payouts/retry", path == "refunds/retry":
			body = `{"reason":"r","filter":{"status":"failed"}}`
		case strings.HasSuffix(path, "mark-paid"):
			body = `{"reason":"r","evidence":"e"}`
		}
		if r := h.as(h.finance, "POST", "/v1/staff/"+path, body); r.code() != "idempotency_key_required" {
			t.Errorf("%s without a key: %s", path, r)
		}
	}
	if r := h.write(h.finance, "approvals/anobody/approve", "k", because); r.status != 404 || r.code() != "not_found" {
		t.Errorf("%s", r)
	}
}

// TestLongOwners: who has the longest name that a key may carry decides, asks, agrees
// and looks like everybody, and repeats too.
func TestLongOwners(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	var long [2]owner
	for i, first := range []string{"𠮷", "𡈽"} { // four bytes each
		o := owner{}
		o.token, o.key.ID = access.NewToken(access.RoleFinance)
		o.key.Role, o.key.SecretHash, o.key.Owner = access.RoleFinance, access.HashToken(o.token), strings.Repeat(first, 64)
		if !access.ValidOwner(o.key.Owner) {
			t.Fatal("nobody has such a name")
		}
		h.check(h.store.EnsureKey(t.Context(), o.key))
		wait.Until(h.t, "the new key is known", func() bool { return h.as(o, "GET", "/v1/staff/approvals", "").status == http.StatusOK })
		long[i] = o
	}
	_, bad := h.failed()
	asked := h.decided(h.write(long[0], "payouts/"+bad+"/cancel", "k", because), "waiting")
	if asked.Decision.By != long[0].key.Owner {
		t.Errorf("%+v", asked)
	}
	h.decided(h.write(long[1], "approvals/"+asked.Approval.ID+"/approve", "k", because), "open")
	for range 2 {
		for path, body := range map[string]string{"providers/sandbox/hold": because, "reconciliations": `{}`} {
			if r := h.write(long[0], path, "k", body); r.status >= 300 || !strings.Contains(string(r.body), long[0].key.Owner) {
				t.Errorf("%s: %s", path, r)
			}
		}
	}
	for _, o := range long {
		if r := h.as(h.auditor, "GET", "/v1/staff/audit?actor="+url.QueryEscape(o.key.Owner), ""); r.status != http.StatusOK ||
			!strings.Contains(string(r.body), o.key.Owner) {
			t.Errorf("audit: %s", r)
		}
	}
}
