package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
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
		RefundSpacing: time.Minute, MinPayout: 10, MaxPayout: 20_000, NameFrom: 200_000,
		SendsPerSecond: map[payout.Op]int{payout.OpTransfer: 100},
		Methods:        []payout.Method{{Name: "jsapi", NeedsPayer: true, Payer: []string{"openid"}, MinAmount: 1, MaxAmount: 500}},
	})})
	r := h.as(h.app, "GET", "/v1/providers", "")
	second := `{"name":"second","charges":{"default":false,"methods":[{"name":"jsapi","needs_payer":true,"payer":["openid"],` +
		`"min_amount":1,"max_amount":500}],"per_second":null},"payouts":{"default":true,"min_amount":10,"max_amount":20000,` +
		`"name_from":200000,"authorizations":false,"per_second":100},"refunds":{"window_seconds":31536000,"per_charge":50,"spacing_seconds":60,"per_second":null},` +
		`"landing_window_seconds":60,"remembers_seconds":2592000}],"next_cursor":null}`
	first := `{"items":[{"name":"sandbox","charges":{"default":true,"methods":[{"name":"sandbox","needs_payer":false,"payer":[],` +
		`"min_amount":null,"max_amount":null},`
	if body := string(r.body); r.status != http.StatusOK || !strings.HasPrefix(body, first) || !strings.HasSuffix(body, ","+second) ||
		!strings.Contains(body, `"payouts":{"default":false,"min_amount":null,"max_amount":null,"name_from":null,"authorizations":false,"per_second":null}`) {
		t.Errorf("%s", r)
	}
}

// TestEffectiveShares: the payout provider's limits bound the shares of a new packet. The packet shows and uses
// the effective bounds; repeats are compared with what was asked for.
func TestEffectiveShares(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: withSecond(payout.Limits{RefundWindow: 365 * 24 * time.Hour, MinPayout: 90, MaxPayout: 200})})
	id, r := h.create(h.app, "k", with())
	const bounds = `"min_share":90,"max_share":200`
	if r.status != http.StatusCreated || !strings.Contains(string(r.body), bounds) {
		t.Fatalf("%s", r)
	}
	if again := h.post(h.app, "k", with("min_share", "1")); again.status != http.StatusCreated || string(again.body) != string(r.body) {
		t.Errorf("a repeat: %s", again)
	}
	if other := h.post(h.app, "k", with("min_share", "90")); other.code() != "idempotency_key_reused" {
		t.Errorf("what was not asked for: %s", other)
	}
	for i := range 10 {
		var c claimBody
		h.grab(h.app, id, fmt.Sprintf("u%d", i)).json(t, &c)
		if c.Amount < 90 || c.Amount > 200 {
			t.Errorf("a share of %d", c.Amount)
		}
	}
	rec, err := h.store.Packet(t.Context(), id)
	h.check(err)
	if rec.MinShare != 90 || rec.MaxShare != 200 || rec.PayoutProvider != "second" {
		t.Errorf("recorded %d to %d of %s", rec.MinShare, rec.MaxShare, rec.PayoutProvider)
	}
	for body, want := range map[string]string{
		with("total_amount", "899"):                      "below_minimum",
		with("total_amount", "2001"):                     "above_maximum",
		with("max_share", "89", "total_amount", "890"):   "below_minimum",
		with("min_share", "201", "total_amount", "2010"): "above_maximum",
	} {
		campaign := h.postCampaign(h.app, "refused", campaignBody("packet", body))
		for field, r := range map[string]result{"total_amount": h.post(h.app, "refused", body), "packet.total_amount": campaign} {
			if r.status != http.StatusUnprocessableEntity || !slices.Equal(fieldsOf(t, r), []string{field + " " + want}) {
				t.Errorf("%s: %s", body, r)
			}
		}
	}
	daily := campaignBody()
	if r := h.postCampaign(h.app, "c", daily); r.status != http.StatusCreated ||
		!strings.Contains(string(r.body), `"min_share":1,"max_share":null`) {
		t.Errorf("%s", r)
	}
	h.defaults(withSecond(payout.Limits{RefundWindow: 365 * 24 * time.Hour, MinPayout: 101}))
	if again := h.post(h.app, "k", with()); string(again.body) != string(r.body) {
		t.Errorf("a repeat under other limits: %s", again)
	}
	if again := h.postCampaign(h.app, "c", daily); again.status != http.StatusCreated || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a repeated campaign under other limits: %s", again)
	}
	if r := h.post(h.app, "k2", with()); !slices.Equal(fieldsOf(t, r), []string{"total_amount below_minimum"}) {
		t.Errorf("a new packet under other limits: %s", r)
	}
}

// defaults starts the API again with other providers.
func (h *fixture) defaults(change func(*api.Config)) {
	h.t.Helper()
	h.check(h.stop())
	h.cfg.Providers, h.cfg.Metrics = payout.OnlyProvider(h.sandbox), nil
	change(&h.cfg)
	h.start()
}

// TestStagedAgainUnderOtherDefaults: a packet whose pool was lost while it was funded keeps its providers and bounds.
func TestStagedAgainUnderOtherDefaults(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: redis.Addr, change: func(c *api.Config) {
		c.FundingWait = 50 * time.Millisecond
		withSecond(payout.Limits{RefundWindow: 365 * 24 * time.Hour, MinPayout: 90, MaxPayout: 200})(c)
	}})
	id := packet.NewID(h.app.app.Salt, "k")
	if r := h.post(h.app, "k", with()); r.status != http.StatusAccepted {
		t.Fatal(r)
	}
	before, err := h.pool.View(t.Context(), id)
	h.check(err)
	sealed, err := packet.SealSeed(h.cfg.SeedKey, id, packet.DeriveSeed(h.cfg.SeedKey, id))
	h.check(err)
	_, err = h.store.RecordPacket(t.Context(), before.Packet, sealed, nil)
	h.check(err)
	h.empty(redis.Addr)
	h.goOnWithNothing()
	h.defaults(func(*api.Config) {})
	if r := h.post(h.app, "k", with()); r.status != http.StatusAccepted {
		t.Fatal(r)
	}
	after, err := h.pool.View(t.Context(), id)
	h.check(err)
	if p := after.Packet; p.PayoutProvider != "second" || p.ChargeProvider != before.Packet.ChargeProvider || p.MinShare != 90 ||
		p.MaxShare != 200 {
		t.Errorf("staged again: %+v", p)
	}
}
