package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
)

// withPayers makes a provider charge by default whose methods need the sender; jsapi also their openid.
func withPayers(c *api.Config) {
	sandbox, ok := c.Providers.Payouts().(*provider.Sandbox)
	if !ok {
		panic("the provider is no sandbox")
	}
	limits := payout.Limits{Adapter: payout.Adapter{Provider: "second", Account: "m2"}, RefundWindow: 365 * 24 * time.Hour,
		Methods: []payout.Method{{Name: "qr", NeedsPayer: true, MinAmount: 1, MaxAmount: 5000},
			{Name: "jsapi", NeedsPayer: true, Payer: []string{"openid"}}}}
	var err error
	if c.Providers, err = payout.NewRegistry("second", sandbox.Name(), sandbox, limited{sandbox, "second", limits}); err != nil {
		panic(err)
	}
}

// TestUnpaidBounds: a sender, and an app, can have only so many packets that wait for a payment. The refusal is
// not remembered, and earlier packets are answered as before.
func TestUnpaidBounds(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: server.Addr, change: withPayers})
	var creates sync.WaitGroup
	for i := range 20 {
		creates.Go(func() {
			if r := h.post(h.app, fmt.Sprintf("k%d", i), with()); r.status != http.StatusAccepted {
				t.Errorf("packet %d: %s", i, r)
			}
		})
	}
	creates.Wait()
	if r := h.post(h.app, "more", with()); r.status != http.StatusConflict || r.code() != "too_many_unpaid" {
		t.Errorf("%s", r)
	}
	if r := h.post(h.app, "k7", with()); r.status != http.StatusAccepted {
		t.Errorf("a repeat: %s", r)
	}
	if r := h.post(h.app, "other", with("sender_id", `"u2"`)); r.status != http.StatusAccepted {
		t.Errorf("another sender: %s", r)
	}
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	keys, err := c.Keys(t.Context(), "hb:*:staged").Result()
	h.check(err)
	staged, err := c.ZRange(t.Context(), keys[0], 0, 0).Result()
	h.check(err)
	app, _, _ := strings.Cut(staged[0], "\x00")
	var filler []redis.Z
	var members []any
	for i := range 10_000 {
		members = append(members, fmt.Sprintf("%s\x00\x00%015d\x00x", app, i))
		filler = append(filler, redis.Z{Member: members[i]})
	}
	h.check(c.ZAdd(t.Context(), keys[0], filler...).Err())
	if r := h.post(h.app, "full", with("sender_id", `"u3"`)); r.code() != "too_many_unpaid" {
		t.Errorf("an app with 10000: %s", r)
	}
	h.check(c.ZRem(t.Context(), keys[0], members[5000:]...).Err())
	guests := func(n int) string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf("guest%d", i)
		}
		list, err := json.Marshal(ids)
		h.check(err)
		return string(list)
	}
	if r := h.post(h.app, "longlist", with("sender_id", `"u3"`, "eligible_user_ids", guests(100))); r.code() != "too_many_unpaid" {
		t.Errorf("100 guests, an app with 5000: %s", r)
	}
	if r := h.post(h.app, "list", with("sender_id", `"u3"`, "eligible_user_ids", guests(99))); r.status != http.StatusAccepted {
		t.Errorf("99 guests, an app with 5000: %s", r)
	}
	if r := h.post(h.app2, "theirs", with()); r.status != http.StatusAccepted {
		t.Errorf("another app: %s", r)
	}
	h.check(c.ZRem(t.Context(), keys[0], members...).Err())
	if r := h.post(h.app, "full", with("sender_id", `"u3"`)); r.status != http.StatusAccepted {
		t.Errorf("again, with room: %s", r)
	}
}
