package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
)

// limited is the sandbox under another name and with other limits.
type limited struct {
	*provider.Sandbox
	name   string
	limits payout.Limits
}

func (l limited) Name() string { return l.name }

func (l limited) Limits() payout.Limits { return l.limits }

// withSecond adds a provider to the sandbox of a fixture: it pays the recipients of new packets.
func withSecond(limits payout.Limits) func(*api.Config) {
	return func(c *api.Config) {
		sandbox, ok := c.Providers.Payouts().(*provider.Sandbox)
		if !ok {
			panic("the provider is no sandbox")
		}
		limits.Adapter = payout.Adapter{Provider: "second", Account: "m2"}
		var err error
		if c.Providers, err = payout.NewRegistry(sandbox.Name(), "second", sandbox, limited{sandbox, "second", limits}); err != nil {
			panic(err)
		}
	}
}

// TestProviderLimits: an app reads what each provider can do.
func TestProviderLimits(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: withSecond(payout.Limits{
		LandingWindow: time.Minute, Remembers: 30 * 24 * time.Hour, RefundWindow: 365 * 24 * time.Hour, RefundsPerCharge: 50,
		RefundSpacing: time.Minute, MinPayout: 10, MaxPayout: 20_000, SendsPerSecond: map[payout.Op]int{payout.OpTransfer: 100},
		Methods: []payout.Method{{Name: "jsapi", NeedsPayer: true, Payer: []string{"openid"}, MinAmount: 1, MaxAmount: 500}},
	})})
	r := h.as(h.app, "GET", "/v1/providers", "")
	second := `{"name":"second","charges":{"default":false,"methods":[{"name":"jsapi","needs_payer":true,"payer":["openid"],` +
		`"min_amount":1,"max_amount":500}],"per_second":null},"payouts":{"default":true,"min_amount":10,"max_amount":20000,` +
		`"per_second":100},"refunds":{"window_seconds":31536000,"per_charge":50,"spacing_seconds":60,"per_second":null},` +
		`"landing_window_seconds":60,"remembers_seconds":2592000}],"next_cursor":null}`
	first := `{"items":[{"name":"sandbox","charges":{"default":true,"methods":[{"name":"sandbox","needs_payer":false,"payer":[],` +
		`"min_amount":null,"max_amount":null},`
	if body := string(r.body); r.status != http.StatusOK || !strings.HasPrefix(body, first) || !strings.HasSuffix(body, ","+second) ||
		!strings.Contains(body, `"payouts":{"default":false,"min_amount":null,"max_amount":null,"per_second":null}`) {
		t.Errorf("%s", r)
	}
}
