package api_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// providerBody is a provider as staff reads it.
type providerBody struct {
	Name string
	Held bool
	Hold *struct{ By, Role, Reason, Since string }
	Rate *int `json:"rate_per_second"`

	ReleasedAt *string `json:"released_at"`
}

func (h *fixture) providerState(who owner) providerBody {
	h.t.Helper()
	r := h.as(who, "GET", "/v1/staff/providers", "")
	var page struct {
		Items      []providerBody
		NextCursor *string `json:"next_cursor"`
	}
	r.json(h.t, &page)
	if r.status != http.StatusOK || len(page.Items) != 2 || page.NextCursor != nil || page.Items[0].Name != "balance" ||
		page.Items[1].Name != "sandbox" {
		h.t.Fatalf("%s", r)
	}
	return page.Items[1]
}

// otherMerchant is a provider whose signed notifications are of another merchant account.
type otherMerchant struct{ *provider.Sandbox }

func (otherMerchant) VerifyNotification(header http.Header, _ []byte) (eventID, orderNo string, err error) {
	if header.Get("Webhook-Signature") == "" {
		return "", "", errors.New("not signed")
	}
	return "", "", fmt.Errorf("event 1 is about merchant 2: %w", payout.ErrWrongProvider)
}

// TestNotificationOfAnotherMerchant: a signed notification of another account holds the provider once; a forged one
// does not. Both are refused alike, and the process works on.
func TestNotificationOfAnotherMerchant(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) {
		sandbox, ok := c.Providers.Payouts().(*provider.Sandbox)
		if !ok {
			panic("the provider is no sandbox")
		}
		var err error
		if c.Providers, err = payout.NewRegistry(sandbox.Name(), sandbox.Name(), otherMerchant{sandbox}); err != nil {
			panic(err)
		}
	}})
	for _, signature := range []string{"", "v1,x", "v1,x"} {
		r := h.do(call{method: "POST", path: "/v1/provider-notifications/sandbox", body: "{}",
			header: map[string]string{"Webhook-Signature": signature}})
		if r.status != http.StatusUnauthorized {
			t.Errorf("%q: %s", signature, r)
		}
		if p := h.providerState(h.auditor); p.Held != (signature != "") {
			t.Errorf("%q: %+v", signature, p)
		}
	}
	p := h.providerState(h.auditor)
	if p.Hold == nil || p.Hold.By != "notification" || p.Hold.Role != "system" || !strings.Contains(p.Hold.Reason, "merchant 2") {
		t.Errorf("%+v", p.Hold)
	}
	holds, err := h.store.Holds(t.Context(), staff.HoldFilter{Kind: payout.HoldOtherAccount, Limit: 5})
	if h.check(err); len(holds) != 1 {
		t.Errorf("%+v", holds)
	}
}

// TestProviderHold: who may hold a provider, what is returned about it, and that nothing is
// sent after the answer.
func TestProviderHold(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.Rates = map[string]int64{"sandbox": 100} }})
	if p := h.providerState(h.auditor); p.Held || p.Hold != nil || p.ReleasedAt != nil || p.Rate == nil || *p.Rate != 100 {
		t.Errorf("at first: %+v", p)
	}
	const body = `{"reason":"对账不平"}`
	for _, who := range []owner{h.auditor, h.app} {
		for _, action := range []string{"hold", "release"} {
			if r := h.write(who, "providers/sandbox/"+action, "k", body); r.code() != "forbidden" {
				t.Errorf("%s by %s: %s", action, who.key.Role, r)
			}
		}
	}
	for path, want := range map[string]string{"providers/wechat/hold": "not_found", "providers/SANDBOX/hold": "not_found",
		"providers/sandbox/stop": "not_found"} {
		if r := h.write(h.ops, path, "k", body); r.code() != want {
			t.Errorf("%s: %s", path, r)
		}
	}
	for body, want := range map[string]string{`{}`: "invalid_request", `{"reason":" "}`: "invalid_request",
		`{"reason":"x","for":"1h"}`: "invalid_request", `{"reason":`: "malformed_json"} {
		if r := h.write(h.ops, "providers/sandbox/hold", "k", body); r.code() != want {
			t.Errorf("%s: %s", body, r)
		}
	}
	if r := h.as(h.ops, "POST", "/v1/staff/providers/sandbox/hold", body); r.code() != "idempotency_key_required" {
		t.Errorf("without key: %s", r)
	}
	if p := h.providerState(h.ops); p.Held {
		t.Fatal("held by a refused request")
	}

	first := h.write(h.ops, "providers/sandbox/hold", "k1", body)
	var held providerBody
	first.json(t, &held)
	if first.status != http.StatusOK || !held.Held || held.Hold == nil || held.Hold.By != h.ops.key.Owner || held.Hold.Role != "ops" ||
		held.Hold.Reason != "对账不平" {
		t.Fatalf("%s", first)
	}
	if again := h.write(h.ops, "providers/sandbox/hold", "k1", body); again.header.Get("Idempotency-Replayed") != "true" ||
		!bytes.Equal(again.body, first.body) {
		t.Errorf("repeated: %s", again)
	}
	if r := h.write(h.ops, "providers/sandbox/hold", "k1", `{"reason":"other"}`); r.code() != "idempotency_key_reused" {
		t.Errorf("other body: %s", r)
	}
	var second providerBody
	h.write(h.finance, "providers/sandbox/hold", "k1", `{"reason":"me too"}`).json(t, &second)
	if second.Hold == nil || *second.Hold != *held.Hold {
		t.Errorf("held again: %+v, want %+v", second.Hold, held.Hold)
	}

	// From the answer on no send is noted, of whatever kind.
	r := h.post(h.app, "while-held", with())
	if r.status != http.StatusAccepted {
		t.Fatalf("a create while held: %s", r)
	}
	var p packetBody
	r.json(t, &p)
	view, err := h.pool.View(t.Context(), p.ID)
	h.check(err)
	_, err = h.store.RecordPacket(t.Context(), view.Packet, []byte("sealed"), nil)
	h.check(err)
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	begin := func() payout.SendStart {
		b, err := h.store.BeginSend(t.Context(), charge, h.sandbox.Limits(), h.sandbox.EncodeRequest)
		h.check(err)
		return b
	}
	if b := begin(); b.Order != nil || b.Hold == nil || b.Hold.By != h.ops.key.Owner {
		t.Errorf("while held: %+v", b)
	}
	var released providerBody
	h.write(h.finance, "providers/sandbox/release", "k2", `{"reason":"solved"}`).json(t, &released)
	if released.Held || released.Hold != nil || released.ReleasedAt == nil {
		t.Errorf("released: %+v", released)
	}
	if b := begin(); b.Order == nil {
		t.Errorf("released: %+v", b)
	}
	if p := h.providerState(h.auditor); p.Held || p.ReleasedAt == nil || *p.ReleasedAt != *released.ReleasedAt {
		t.Errorf("in the end: %+v", p)
	}
}

// TestR13_BalancesHeld: after a recovery two persons of finance release the balances of apps, and nobody else.
func TestR13_BalancesHeld(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	w := staff.Write{Owner: "op", Role: "operator", Reason: "r"}
	found, err := h.store.DeclareRestored(t.Context(), w, 0, time.Now())
	h.check(err)
	_, err = h.store.EndRecovery(t.Context(), w, found, 0, []string{payout.BalanceProvider}, nil, nil)
	h.check(err)
	var list wire.List[wire.PaymentProvider]
	h.as(h.ops, "GET", "/v1/staff/providers", "").json(t, &list)
	held := list.Items[0].Hold
	if held == nil || !held.SecondPerson || held.Role != "system" || list.Items[1].Hold != nil {
		t.Fatalf("%+v", list.Items)
	}
	release := "holds/" + held.ID + "/release"
	for _, one := range []struct {
		who    owner
		path   string
		status int
		code   string
	}{
		{h.ops, "providers/balance/release", http.StatusConflict, "held"}, {h.ops, release, http.StatusForbidden, "forbidden"},
		{h.finance, release, http.StatusAccepted, ""}, {h.finance, release, http.StatusAccepted, ""},
		{h.colleague(), "providers/balance/release", http.StatusConflict, "held"}, {h.ops, release, http.StatusForbidden, "forbidden"},
	} {
		if r := h.write(one.who, one.path, rand.Text(), because); r.status != one.status || one.code != "" && r.code() != one.code {
			t.Errorf("%s by %s: %s", one.path, one.who.key.Role, r)
		}
	}
	const debit = `{"amount":1,"reason":"r","evidence":"e"}`
	r := h.write(h.finance, "balances/"+h.app.app.ID+"/debit", "held", debit)
	if r.code() != "held" || r.status != http.StatusConflict || !strings.Contains(string(r.body), "Hold "+held.ID+" on the provider balance") {
		t.Errorf("a debit: %s", r)
	}
	var item wire.HeldItem
	r = h.write(h.colleague(), release, "k", because)
	if r.json(t, &item); r.status != http.StatusOK || item.Hold.ReleasedAt == nil || item.SecondPerson {
		t.Errorf("the second person: %s", r)
	}
	if r := h.write(h.finance, "balances/"+h.app.app.ID+"/debit", "released", debit); r.code() != "insufficient_balance" {
		t.Errorf("a debit: %s", r)
	}
}

// TestProviderListParameters: there is nothing to filter by.
func TestProviderListParameters(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	if r := h.as(h.ops, "GET", "/v1/staff/providers?name=sandbox", ""); r.code() != "invalid_request" {
		t.Errorf("%s", r)
	}
	if p := h.providerState(h.finance); p.Rate != nil {
		t.Errorf("no rate is set, got %d", *p.Rate)
	}
}
