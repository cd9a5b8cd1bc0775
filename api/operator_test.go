package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// recordGrab grabs a share and records its claim. It returns the payout's id.
func (h *fixture) recordGrab(packetID, user string) (payoutID string) {
	h.t.Helper()
	if r := h.grab(h.app, packetID, user); r.status != http.StatusCreated {
		h.t.Fatalf("%s", r)
	}
	claims, err := h.stack.Pool.Claims(h.t.Context(), packetID)
	h.check(err)
	for _, c := range claims {
		if c.UserID == user {
			st, err := h.store.RecordClaim(h.t.Context(), c)
			h.check(err)
			payoutID = st.PaymentID
		}
	}
	return payoutID
}

// undecided records the claim of a recipient who does not confirm, sends its payout, and stores a break
// about its order number. It returns the payout's id and the break's.
func (h *fixture) undecided(packetID, user string) (payoutID, breakID string) {
	h.t.Helper()
	payoutID = h.recordGrab(packetID, user)
	start, err := h.store.BeginSend(h.t.Context(), payoutID, h.stack.Provider.Limits(), h.stack.Provider.EncodeRequest)
	if err != nil || start.Order == nil {
		h.t.Fatalf("%+v, %v", start, err)
	}
	no := start.Order.OrderNo
	seen := h.stack.Provider.Send(h.t.Context(), *start.Order)
	raw, err := json.Marshal(seen.Action)
	h.check(err)
	seen.SealedAction, err = packet.Seal(h.cfg.SeedKey, packetID, raw)
	h.check(err)
	st, err := h.store.Settle(h.t.Context(), seen, no)
	if err != nil || st.Status != payout.StatusAwaitingRecipient {
		h.t.Fatalf("%+v, %v", st, err)
	}
	h.exec(h.dsn, fmt.Sprintf("UPDATE attempts SET ask_until = started_at WHERE order_no = '%s'", no)) // it may be forgotten
	h.exec(h.dsn, fmt.Sprintf(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen)
		VALUES ('forgotten', '%s', '%s', '%s', 'x', NOW(3), NOW(3))`, packetID, payoutID, no))
	for _, b := range h.breaks("?kind=forgotten&resolved=false").Items {
		if *b.OrderNo == no {
			breakID = b.ID
		}
	}
	return payoutID, breakID
}

// stated is the state of a break: who resolved it, and why; "": it is open.
func (h *fixture) stated(breakID string) string {
	h.t.Helper()
	for _, b := range h.breaks("?kind=forgotten").Items {
		if b.ID == breakID && b.Resolved != nil {
			return b.Resolved.By + ": " + b.Resolved.Reason
		}
	}
	return ""
}

// TestResolveBreakWithOutcome: two persons state what became of the money of a break's order number.
func TestResolveBreakWithOutcome(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	colleague := h.colleague()
	id := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	body := func(outcome string) string {
		return `{"reason":"because","outcome":"` + outcome + `","evidence":"letter 4711"}`
	}
	resolve := func(breakID, key, body string) result {
		return h.write(h.finance, "breaks/"+breakID+"/resolve", key, body)
	}

	bad, broken := h.undecided(id, "a~confirm")
	d := h.decided(resolve(broken, "not-moved", body("not_moved")), "waiting")
	if d.Decision.Kind != "not_moved" || d.Approval == nil || d.Refund != nil || d.Payout.Status != "awaiting_recipient" ||
		h.stated(broken) != "" {
		t.Fatalf("%+v", d)
	}
	if again := resolve(broken, "not-moved", body("not_moved")); again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again)
	}
	listed := string(h.as(h.auditor, "GET", "/v1/staff/approvals?payment_id="+bad, "").body)
	for _, part := range []string{`"kind":"not_moved"`, `"break_id":"` + broken + `"`, `"evidence":"letter 4711"`,
		`"last_answer":"needs_recipient"`} {
		if !strings.Contains(listed, part) {
			t.Errorf("no %s in %s", part, listed)
		}
	}
	h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "yes", because), "open")
	if st := h.drive(bad); st.Status != payout.StatusFailed || st.Failure.Code != payout.FailureNotMoved {
		t.Fatalf("%+v", st)
	}
	if got := h.stated(broken); got != h.finance.key.Owner+": not_moved: because" {
		t.Errorf("resolved: %s", got)
	}

	good, broken := h.undecided(id, "b~confirm")
	if r := resolve(broken, "words", body("moved")); r.status != 409 || r.code() != "not_retryable" ||
		!strings.Contains(string(r.body), "mark-paid") {
		t.Errorf("nothing shows it: %s", r)
	}
	if r := resolve(broken, "off", body("written_off")); r.status != 409 || r.code() != "not_retryable" ||
		!strings.Contains(string(r.body), "nothing in suspense") {
		t.Errorf("nothing to write off: %s", r)
	}
	h.exec(h.dsn, fmt.Sprintf(`INSERT INTO statement_lines (provider, ref, day, op, order_no, account, amount, moved_at, created_at,
		reconciliation_id) VALUES ('sandbox', 'r1', '2026-01-01', 'transfer', '%s', 'b~confirm', 250, NOW(6), NOW(3), 'x')`, payout.OrderNo(good, 1)))
	d = h.decided(resolve(broken, "moved", body("moved")), "waiting")
	a := h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "moved", because), "carried_out")
	if a.Payout.Status != "paid" || h.stated(broken) != h.finance.key.Owner+": moved: because" {
		t.Errorf("%+v, %s", a, h.stated(broken))
	}
	if p := h.proof(h.app, id); p.Paid != 250 || p.Owed != 250 {
		t.Errorf("%+v", p)
	}
	var detail struct {
		Timeline []struct{ Source, What string }
	}
	h.as(h.auditor, "GET", "/v1/staff/payouts/"+good, "").json(t, &detail)
	if last := detail.Timeline; !strings.Contains(fmt.Sprint(last), "operator moved: stated by two persons about "+payout.OrderNo(good, 1)) {
		t.Errorf("%+v", last)
	}
	if r := resolve(broken, "late", body("moved")); r.status != 409 || r.code() != "not_retryable" {
		t.Errorf("resolved already: %s", r)
	}
}

// TestResolveBreakRefused: the members of an outcome; without one, the answer is as before.
func TestResolveBreakRefused(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	_, broken := h.undecided(id, "a~confirm")
	for body, field := range map[string]string{
		`{"reason":"r","outcome":"moved"}`:                      "evidence",
		`{"reason":"r","outcome":"not_moved","evidence":" "}`:   "evidence",
		`{"reason":"r","evidence":"e"}`:                         "evidence",
		`{"reason":"r","outcome":"none","evidence":"e"}`:        "evidence",
		`{"reason":"r","outcome":"perhaps","evidence":"e"}`:     "outcome",
		`{"outcome":"moved","evidence":"e"}`:                    "reason",
		`{"reason":"r","outcome":"moved","evidence":"e","x":1}`: "x",
	} {
		if r := h.write(h.finance, "breaks/"+broken+"/resolve", "k", body); r.status != 422 ||
			!strings.Contains(string(r.body), `"field":"`+field+`"`) {
			t.Errorf("%s: %s", body, r)
		}
	}
	if r := h.write(h.finance, "breaks/b4711/resolve", "k", `{"reason":"r","outcome":"moved","evidence":"e"}`); r.status != 404 {
		t.Errorf("no such break: %s", r)
	}
	none := h.write(h.finance, "breaks/"+broken+"/resolve", "none", `{"reason":"r","outcome":"none"}`)
	if again := h.write(h.finance, "breaks/"+broken+"/resolve", "none", `{"reason":"r"}`); none.status != 200 ||
		string(again.body) != string(none.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s, then %s", none, again)
	}
}
