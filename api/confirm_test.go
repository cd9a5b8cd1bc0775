package api_test

import (
	"net/http"
	"net/url"
	"testing"

	"hongbao/internal/payout"
)

// expireConfirmation sends the next order number of a payout and settles that its recipient did not confirm in time.
func (h *fixture) expireConfirmation(payoutID string) {
	h.t.Helper()
	start, err := h.store.BeginSend(h.t.Context(), payoutID, h.stack.Provider.Limits(), h.stack.Provider.EncodeRequest)
	if err != nil || start.Order == nil {
		h.t.Fatalf("%+v, %v", start, err)
	}
	h.settleExpired(h.stack.Provider.Send(h.t.Context(), *start.Order))
	if st := h.queryExpired(start.Order.OrderNo); st.Status != payout.StatusFailed { // a query confirms the refusal
		h.t.Fatalf("%+v", st)
	}
}

// queryExpired queries an order number whose recipient did not confirm in time.
func (h *fixture) queryExpired(orderNo string) payout.State {
	h.t.Helper()
	return h.settleExpired(h.stack.Provider.Query(h.t.Context(), payout.OpOf(payout.KindPayout), orderNo))
}

func (h *fixture) settleExpired(seen payout.Observation) payout.State {
	h.t.Helper()
	seen.Kind, seen.Code, seen.Action = payout.ObsDeclined, payout.FailureNotConfirmed, nil
	st, err := h.store.Settle(h.t.Context(), seen, seen.OrderNo)
	h.check(err)
	return st
}

// TestConfirmAgain: the app has a payout sent again whose recipient did not confirm in time, without staff. A
// repeat changes nothing. Every other failure, and a held payout, waits for finance.
func TestConfirmAgain(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	path := func(user string) string { return "/v1/packets/" + id + "/grabs/" + user }
	again := func(user string) (r result, c claimBody) {
		t.Helper()
		if r = h.as(h.app, "POST", path(user)+"/confirm", ""); r.status == http.StatusOK {
			r.json(t, &c)
		}
		return r, c
	}
	if r := h.grab(h.app, id, "early"); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	if r, c := again("early"); c.Payout.Status != "pending" { // MySQL does not have it yet
		t.Errorf("%s", r)
	}
	late := h.recordGrab(id, "late~confirm")
	h.expireConfirmation(late)
	var c claimBody
	h.as(h.app, "GET", path("late~confirm"), "").json(t, &c)
	if c.Payout.Status != "failed" || c.Recipient == nil || *c.Recipient != "confirm" {
		t.Errorf("%+v", c)
	}
	for query, want := range map[string]int{"?status=failed": 0, "?failure_code=confirmation_expired": 1, "?status=failed&user_id=late~confirm": 1,
		"?status=failed&packet_id=" + id: 1} {
		if page := h.payouts(query); len(page.Items) != want {
			t.Errorf("%s: %d payouts", query, len(page.Items))
		}
	}
	for range 2 {
		if r, c := again("late~confirm"); c.Payout.Status != "pending" || c.Payout.ID != late || c.Recipient != nil {
			t.Errorf("%s", r)
		}
	}
	d, err := h.reports().Payment(t.Context(), late)
	h.check(err)
	if n := len(d.Attempts); n != 1 || d.Events[len(d.Events)-1].Event != payout.EventDecision {
		t.Errorf("%d attempts, events %+v", n, d.Events)
	}
	h.queryExpired(payout.OrderNo(late, 1)) // rule R5: before another number
	h.expireConfirmation(late)
	d, err = h.reports().Payment(t.Context(), late)
	if err != nil || len(d.Attempts) != 2 || d.Attempts[1].OrderNo != payout.OrderNo(late, 2) {
		t.Errorf("%+v, %v", d.Attempts, err)
	}
	h.placeHold("payment", late)
	if r, _ := again("late~confirm"); r.status != http.StatusConflict || r.code() != "held" {
		t.Errorf("held: %s", r)
	}
	id, _ = h.failed()
	for user, code := range map[string]string{"a": "not_retryable", url.PathEscape("用/户~frozen"): "not_retryable", "x": "claim_not_found"} {
		if r, _ := again(user); r.code() != code {
			t.Errorf("%s: %s", user, r)
		}
	}
}
