package api_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/wire"
)

// TestPayerBounds: the sender has to pay before the packet opens and in the first half of its life, which is at
// least ten minutes, and gives what the method needs.
func TestPayerBounds(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) {
		withPayers(c)
		c.FundingWait = 50 * time.Millisecond
	}})
	opens := quoted(time.Now().UTC().Add(10 * time.Minute).Format(time.RFC3339))
	for body, want := range map[string]string{
		with("expires_in_seconds", "3600", "funding", `{"expires_in_seconds":1801}`): "funding.expires_in_seconds out_of_range",
		with("opens_at", opens, "funding", `{"expires_in_seconds":601}`):             "funding.expires_in_seconds out_of_range",
		with("expires_in_seconds", "599"):                                            "expires_in_seconds out_of_range",
		with("funding", `{"method":"jsapi"}`):                                        "funding.payer.openid required",
		with("funding", `{"method":"jsapi","payer":{"unionid":"o1"}}`):               "funding.payer.openid required",
	} {
		if r := h.post(h.app, rand.Text(), body); r.status != http.StatusUnprocessableEntity || !slices.Equal(fieldsOf(t, r), []string{want}) {
			t.Errorf("%s: %s, want %s", body, r, want)
		}
	}
	for _, body := range []string{
		with("expires_in_seconds", "3600", "funding", `{"expires_in_seconds":1800}`),
		with("opens_at", opens, "funding", `{"expires_in_seconds":60}`),
		with("expires_in_seconds", "600", "funding", `{"method":"jsapi","payer":{"openid":"o1"}}`),
	} {
		if r := h.post(h.app, rand.Text(), body); r.status != http.StatusAccepted {
			t.Errorf("%s: %s", body, r)
		}
	}
}

// TestActionEndsTheWait: a create is answered as soon as the sender can pay, not when its wait is over. A slow machine
// may need several.
func TestActionEndsTheWait(t *testing.T) {
	t.Parallel()
	const longest = 4900 * time.Millisecond
	h := newFixture(t, parts{change: func(c *api.Config) { c.FundingWait = longest }})
	wait.Until(t, "a create is answered before its wait is over", func() bool {
		key := rand.Text()
		id := packet.NewID(h.app.app.Salt, key)
		funded := make(chan error, 1)
		go func() {
			if !wait.Reached(wait.Limit(), func() bool { _, err := h.pool.View(t.Context(), id); return err == nil }) {
				funded <- errors.New("the packet is not staged")
				return
			}
			funded <- h.stack.Fund(t.Context(), id)
		}()
		begin := time.Now()
		r := h.post(h.app, key, with("funding", `{"method":"sandbox_app"}`))
		took := time.Since(begin)
		no := payout.OrderNo(payout.ID(payout.KindCharge, id, 0), 1)
		wait.Until(t, "the sandbox has the order", func() bool {
			return h.do(call{method: "POST", base: h.provider, path: "/_pay/" + no}).status == http.StatusNoContent
		})
		h.check(<-funded)
		var p wire.Packet
		r.json(t, &p)
		return r.status == http.StatusAccepted && p.Funding.Status == "requires_action" && p.Funding.NextAction != nil && took < longest
	})
}

// TestCampaignNeedsNobody: a campaign has no sender who pays each day, so it is created only if its app pays.
func TestCampaignNeedsNobody(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: withPayers})
	r := h.postCampaign(h.app, "c", campaignBody())
	if r.status != http.StatusUnprocessableEntity || !slices.Equal(fieldsOf(t, r), []string{"packet.funding.source not_allowed"}) {
		t.Errorf("%s", r)
	}
	if r := h.postCampaign(h.app, "c", campaignBody("packet", with("funding", ofMerchant))); r.status != http.StatusCreated {
		t.Errorf("of the app: %s", r)
	}
}
