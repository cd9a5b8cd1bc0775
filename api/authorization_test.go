package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/internal/provider/wechat"
	"hongbao/internal/provider/wechat/simulator"
)

// wechatPays adds WeChat Pay's simulator to a fixture: it pays the recipients of new packets.
func wechatPays(t *testing.T) (*simulator.Server, func(*api.Config)) {
	t.Helper()
	m, err := simulator.NewMerchant()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	sim := simulator.New(ctx, m.Config())
	server := httptest.NewServer(sim)
	pay, err := wechat.New(wechat.Config{BaseURL: server.URL, MerchantID: m.ID, PayoutAppID: m.AppID, APIv3Key: m.APIv3Key,
		MerchantKey: simulator.PrivatePEM(m.Private), MerchantSerial: m.Serial, PublicKeyID: m.Public.ID, PublicKey: m.Public.PublicPEM(),
		Scene: "1000", ReportInfos: []wechat.ReportInfo{{Type: "活动名称", Content: "新年"}, {Type: "奖励说明", Content: "红包"}},
		NotifyBase: "https://pay.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pay.Close()
		cancel()
		sim.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return sim, func(c *api.Config) {
		sandbox, ok := c.Providers.Payouts().(*provider.Sandbox)
		if !ok {
			panic("the provider is no sandbox")
		}
		if c.Providers, err = payout.NewRegistry(sandbox.Name(), pay.Name(), sandbox, pay); err != nil {
			panic(err)
		}
	}
}

// TestAuthorization: an app asks a recipient for the agreement to be paid without confirming, and reads when it is
// active. Recipients are those of the app, and a provider without agreements is refused.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	sim, change := wechatPays(t)
	h := newFixture(t, parts{change: change})
	type agreement struct {
		Provider, Account, Status string
		Authorization             *string
		Confirm                   *struct {
			Parameters map[string]string
			ValidUntil time.Time `json:"valid_until"`
		}
	}
	ask := func(o owner, method, query, body string) (a agreement) {
		t.Helper()
		r := h.as(o, method, "/v1/recipients/"+url.PathEscape("用户/1")+"/authorizations"+query, body)
		if r.json(t, &a); r.status != http.StatusOK || a.Provider != "wechat" {
			t.Fatalf("%s", r)
		}
		return a
	}
	if a := ask(h.app, "GET", "?account=openid", ""); a.Status != "none" || a.Authorization != nil || a.Confirm != nil {
		t.Errorf("%+v", a)
	}
	first := ask(h.app, "POST", "", `{"account":"openid"}`)
	if first.Status != "pending" || first.Account != "openid" || first.Confirm == nil || !first.Confirm.ValidUntil.After(time.Now()) {
		t.Fatalf("%+v", first)
	}
	if again := ask(h.app, "POST", "", `{"account":"openid","provider":"wechat"}`); *again.Authorization != *first.Authorization {
		t.Errorf("asked again: %+v", again)
	}
	if !sim.Accept(first.Confirm.Parameters["package"]) {
		t.Fatal("the recipient cannot accept it")
	}
	if a := ask(h.app, "GET", "?account=openid&provider=wechat", ""); a.Status != "active" || *a.Authorization != *first.Authorization ||
		a.Confirm != nil {
		t.Errorf("%+v", a)
	}
	if a := ask(h.app, "GET", "", ""); a.Status != "none" {
		t.Errorf("another account: %+v", a)
	}
	if a := ask(h.app2, "GET", "?account=openid", ""); a.Status != "none" {
		t.Errorf("another app: %+v", a)
	}
	for body, field := range map[string]string{`{"provider":"sandbox"}`: "provider", `{"provider":"nobody"}`: "provider",
		`{"account":"o` + simulator.Declined + `"}`: "account", `{"acount":"o"}`: "acount"} {
		if r := h.as(h.app, "POST", "/v1/recipients/u/authorizations", body); r.code() != "invalid_request" ||
			!strings.Contains(string(r.body), `"field":"`+field+`"`) {
			t.Errorf("%s: %s", body, r)
		}
	}
}
