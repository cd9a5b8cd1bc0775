package api_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"hongbao/internal/payout"
)

// TestWithdrawCancel: the provider answers "in progress", so the cancel that two persons made stays open.
// A third person withdraws it, under a hold too. The next retry needs two persons at any amount.
func TestWithdrawCancel(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id, bad := h.failed()
	colleague, third := h.colleague(), h.colleague()
	path := "payouts/" + bad + "/withdraw"
	refused := func(key string) {
		t.Helper()
		if r := h.write(third, path, key, because); r.status != 409 || r.code() != "not_retryable" ||
			!strings.Contains(string(r.body), "No cancel is open.") ||
			!strings.Contains(string(r.body), "/v1/staff/approvals/{id}/withdraw") {
			t.Errorf("%s: %s", key, r)
		}
	}
	refused("nothing")
	waiting := h.decided(h.write(colleague, "payouts/"+bad+"/cancel", "first", because), "waiting")
	refused("waiting")
	h.decided(h.write(h.finance, "approvals/"+waiting.Approval.ID+"/reject", "no", because), "rejected")
	h.openCancel(colleague, bad)
	no := payout.OrderNo(bad, 1)
	_, err := h.store.Settle(t.Context(), payout.Observation{ID: rand.Text(), Adapter: payout.Adapter{Provider: "sandbox", Account: "sandbox"},
		Source: payout.SourceQuery, Kind: payout.ObsPending, OrderNo: no}, no)
	h.check(err)
	if r := h.write(h.ops, "holds", "hold", `{"scope":"payment","name":"`+bad+`","reason":"r"}`); r.status != 200 {
		t.Fatalf("%s", r)
	}
	first := h.write(third, path, "w", `{"reason":"in progress for days"}`)
	a := h.decided(first, "withdrawn")
	if a.Decision.Kind != "cancel" || a.Decision.By != colleague.key.Owner || a.Payout == nil || a.Payout.Status != "failed" ||
		a.Approval != nil {
		t.Errorf("%+v", a)
	}
	if again := h.write(third, path, "w", `{"reason":"in progress for days"}`); string(again.body) != string(first.body) ||
		again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again)
	}
	refused("again")
	if r := h.write(third, "payouts/"+payout.ID(payout.KindPayout, id, 3)+"/withdraw", "k", because); r.status != 404 ||
		r.code() != "payout_not_found" {
		t.Errorf("a share without a claim: %s", r)
	}
	if p := h.proof(h.app, id); p.Owed != 250 || p.Refunding != 0 {
		t.Errorf("%+v", p)
	}
}

// TestRetryAfterAWithdrawnCancel: the retry waits for a second person, whose consent covers it; the next
// one does not wait.
func TestRetryAfterAWithdrawnCancel(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	_, bad := h.failed()
	colleague := h.colleague()
	h.openCancel(colleague, bad)
	h.decided(h.write(h.finance, "payouts/"+bad+"/withdraw", "w", because), "withdrawn")
	if st := h.drive(bad); st.Status != payout.StatusFailed || st.Step.Do != payout.ActionEnd {
		t.Errorf("its run goes on: %+v", st)
	}
	var shown struct {
		Retry struct {
			SecondPerson bool `json:"second_person"`
		}
	}
	h.as(h.auditor, "GET", "/v1/staff/payouts/"+bad, "").json(t, &shown)
	d := h.decided(h.write(h.finance, "payouts/"+bad+"/retry", "r", because), "waiting")
	if !shown.Retry.SecondPerson || d.Approval == nil || d.Payout.Status != "failed" {
		t.Fatalf("%+v, shown %+v", d, shown)
	}
	h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "yes", because), "carried_out")
	if st := h.drive(bad); st.Status != payout.StatusFailed {
		t.Fatalf("%+v", st)
	}
	h.decided(h.write(h.finance, "payouts/"+bad+"/retry", "alone", because), "carried_out")
}
