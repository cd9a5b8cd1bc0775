package api_test

import (
	"net/http"
	"strings"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
	"hongbao/wire"
)

const ofMerchant = `{"source":"merchant"}`

// TestMerchantFunding: an app pays for a packet from its balance, and the proof is balanced.
func TestMerchantFunding(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	h.opens("", h.app) // the app is known
	storetest.MoveBalance(t, h.store, h.app.app.ID, payout.PostCredit, 1500)
	body := with("total_amount", "900", "share_count", "3", "split", `"equal"`, "funding", ofMerchant)
	id, r := h.create(h.app, "k", body)
	var made wire.Packet
	r.json(t, &made)
	if r.status != http.StatusCreated || made.Funding.Source != wire.FundingMerchant || made.Funding.Provider != payout.BalanceProvider ||
		made.Funding.Status != wire.FundingPaid || made.Funding.Method != nil {
		t.Fatalf("%s", r)
	}
	balance := func(want string) {
		t.Helper()
		if r := h.as(h.app, "GET", "/v1/balance", ""); string(r.body) != want {
			t.Errorf("%s, want %s", r, want)
		}
	}
	balance(`{"available":600,"reserved":900,"currency":"CNY"}`)
	if again := h.post(h.app, "k", body); again.status != http.StatusCreated || string(again.body) != string(r.body) {
		t.Errorf("a repeat: %s", again)
	}
	bySender := with("total_amount", "900", "share_count", "3", "split", `"equal"`)
	if other := h.post(h.app, "k", bySender); other.code() != "idempotency_key_reused" {
		t.Errorf("another funding under the key: %s", other)
	}
	h.grab(h.app, id, "a")
	h.record(id)
	h.finish(id, packet.CloseRecalled)
	balance(`{"available":1200,"reserved":0,"currency":"CNY"}`)
	p := h.proof(h.app, id)
	if !p.Balanced || p.Total != 900 || p.Paid != 300 || p.Refunded != 600 || len(p.Differences) != 0 {
		t.Errorf("%+v", p)
	}

	poor := with("total_amount", "1201", "funding", ofMerchant)
	id, r = h.create(h.app, "poor", poor)
	for _, r := range []result{r, h.post(h.app, "poor", poor)} {
		var problem wire.Problem
		r.json(t, &problem)
		if r.status != http.StatusPaymentRequired || problem.Code != wire.CodeInsufficientBalance || problem.PacketID != id ||
			problem.Failure == nil || problem.Failure.Code != payout.FailureInsufficientBalance {
			t.Errorf("%s", r)
		}
	}
	balance(`{"available":1200,"reserved":0,"currency":"CNY"}`)
	var read wire.Packet
	h.as(h.app, "GET", "/v1/packets/"+id, "").json(t, &read)
	if read.Status != wire.PacketRejected || read.Funding.Source != wire.FundingMerchant || read.Funding.Status != wire.FundingDeclined {
		t.Errorf("%+v", read)
	}
}

// TestNegativeBalance: a balance that is negative after a recovery funds no packet, also without a hold.
func TestNegativeBalance(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	h.opens("", h.app) // the app is known
	storetest.MoveBalance(t, h.store, h.app.app.ID, payout.PostCredit, 100)
	_, err := h.database(h.dsn).ExecContext(t.Context(), "UPDATE app_balances SET recovered = TRUE, available = -1 WHERE app_id = ?",
		h.app.app.ID)
	h.check(err)
	body := with("total_amount", "1", "share_count", "1", "funding", ofMerchant)
	_, r := h.create(h.app, "k", body)
	for _, r := range []result{r, h.post(h.app, "k", body)} {
		if r.status != http.StatusPaymentRequired || r.code() != "insufficient_balance" {
			t.Errorf("%s", r)
		}
	}
	if r := h.as(h.app, "GET", "/v1/balance", ""); string(r.body) != `{"available":-1,"reserved":0,"currency":"CNY"}` {
		t.Errorf("%s", r)
	}
}

// TestMerchantFundingMembers: what a balance does not take.
func TestMerchantFundingMembers(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	for funding, field := range map[string]string{
		`{"source":"bank"}`: "funding.source", `{"source":"merchant","method":"x"}`: "funding.method",
		`{"source":"merchant","payer":{"a":"b"}}`: "funding.method", `{"source":"merchant","expires_in_seconds":60}`: "funding.method",
		`{"source":"merchant","x":1}`: "funding.x",
	} {
		r := h.post(h.app, field+funding[:12], with("funding", funding))
		if r.status != http.StatusUnprocessableEntity || !strings.Contains(string(r.body), `"`+field+`"`) {
			t.Errorf("%s: %s", funding, r)
		}
	}
}
