package api_test

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/api"
	"hongbao/devstack/stacktest"
	"hongbao/packet"
	"hongbao/test/wait"
)

// limit starts the API again with limits, on the same stores.
func (h *house) limit(l api.Limits) {
	h.t.Helper()
	h.check(h.stop())
	h.cfg.Limits, h.cfg.Limiter, h.cfg.Metrics = l, h.pool, nil
	h.start()
}

// overLimit checks a refusal by a limit of an hour.
func (h *house) overLimit(what string, r result) {
	h.t.Helper()
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if r.status != http.StatusTooManyRequests || r.code() != "rate_limited" || err != nil || after < 1 || after > 3600 {
		h.t.Errorf("%s: want 429 rate_limited, got %s, Retry-After %q", what, r, r.header.Get("Retry-After"))
	}
}

// same checks that a grab gets the claim of an earlier one.
func (h *house) same(what string, first, r result) {
	h.t.Helper()
	var was, is claimBody
	first.json(h.t, &was)
	if r.status != http.StatusOK {
		h.t.Errorf("%s: want 200, got %s", what, r)
		return
	}
	if r.json(h.t, &is); !is.Replayed || is.Amount != was.Amount || is.ShareIndex != was.ShareIndex || is.Amount < 1 {
		h.t.Errorf("%s: %s, first %s", what, r, first)
	}
}

const limitedBy = `hongbao_rate_limited_total{limit="%s"}`

// TestLimitUser: a user over his limit is refused and takes nothing, unless he has a
// claim of the packet, wherever it is kept; nobody else is touched.
func TestLimitUser(t *testing.T) {
	t.Parallel()
	h := newHouse(t, parts{})
	one, two, three := h.open(h.app, with()), h.open(h.app, with()), h.open(h.app, with())
	missed := h.open(h.app, with())
	early := h.open(h.app, with("opens_at", strconv.Quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	guests := h.open(h.app, with("eligible_user_ids", `["b"]`))
	other := h.open(h.app2, with())
	h.grab(h.app, missed, "b")
	h.finish(missed, packet.CloseRecalled)
	h.limit(api.Limits{User: api.Limit{N: 2, Span: time.Hour}})
	first, second := h.grab(h.app, one, "a"), h.grab(h.app, two, "a")
	if first.status != 201 || second.status != 201 {
		t.Fatalf("%s, %s", first, second)
	}
	refused := 0
	for what, id := range map[string]string{"another packet": three, "one that is not open": early, "one for others": guests,
		"one that has ended": missed} {
		h.overLimit(what, h.grab(h.app, id, "a"))
		refused++
	}
	if claims := h.claims(h.app, three, ""); len(claims.Items) != 0 {
		t.Errorf("taken: %+v", claims)
	}
	h.same("the first claim", first, h.grab(h.app, one, "a"))
	h.same("the second claim", second, h.grab(h.app, two, "a"))
	h.finish(one, packet.CloseRecalled)
	h.same("the first claim from mysql", first, h.grab(h.app, one, "a"))
	for what, r := range map[string]result{"of another app": h.grab(h.app, other, "a"), "of nobody": h.grab(h.app, nobody, "a")} {
		if r.code() != "packet_not_found" {
			t.Errorf("packet %s: %s", what, r)
		}
	}
	for what, r := range map[string]result{"another user": h.grab(h.app, three, "b"), "the user of another app": h.grab(h.app2, other, "a")} {
		if r.status != 201 {
			t.Errorf("%s: %s", what, r)
		}
	}
	for kind, want := range map[string]int{"user": refused, "address": 0, "key": 0} {
		if n := h.metric(fmt.Sprintf(limitedBy, kind)); n != want {
			t.Errorf("%d refused by the limit of the %s, want %d", n, kind, want)
		}
	}
}

// TestLimitKey: all that a key asks counts, and who has won is answered all the same.
func TestLimitKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t, parts{})
	id := h.open(h.app, with())
	path := "/v1/packets/" + id
	h.limit(api.Limits{Key: api.Limit{N: 2, Span: time.Hour}})
	won := h.grab(h.app, id, "a")
	if r := h.as(h.app, "GET", path, ""); won.status != 201 || r.status != 200 {
		t.Fatalf("%s, %s", won, r)
	}
	h.overLimit("a read", h.as(h.app, "GET", path, ""))
	h.overLimit("a create", h.post(h.app, "k", with()))
	h.overLimit("a close", h.as(h.app, "POST", path+"/close", ""))
	h.overLimit("a grab", h.grab(h.app, id, "b"))
	h.same("the winner", won, h.grab(h.app, id, "a"))
	for what, c := range map[string]struct {
		who    owner
		path   string
		status int
	}{
		"another app":   {h.app2, path, 404},
		"staff":         {h.ops, "/v1/staff/packets/" + id, 200},
		"a wrong key":   {owner{token: "nonsense"}, path, 401},
		"another realm": {h.app, "/v1/staff/packets", 403},
		"no such route": {h.app, "/v1/nothing", 404},
	} {
		if r := h.as(c.who, "GET", c.path, ""); r.status != c.status {
			t.Errorf("%s: want %d, got %s", what, c.status, r)
		}
	}
	if n := h.metric(fmt.Sprintf(limitedBy, "key")); n != 4 {
		t.Errorf("%d refused", n)
	}
	if view, err := h.pool.View(t.Context(), id); err != nil || view.ClaimedCount != 1 || view.State != packet.PoolOpen {
		t.Errorf("%+v, %v", view, err)
	}
}

// TestLimitAddress: grabs from one address count together, of whatever user and app.
func TestLimitAddress(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t) // everybody here has the same address
	h := newHouse(t, parts{redis: redis.Addr})
	id, other := h.open(h.app, with()), h.open(h.app2, with())
	h.limit(api.Limits{Address: api.Limit{N: 2, Span: time.Hour}})
	won := h.grab(h.app, id, "a")
	if r := h.grab(h.app2, other, "a"); won.status != 201 || r.status != 201 {
		t.Fatalf("%s, %s", won, r)
	}
	forwarded := h.do(call{method: "POST", path: "/v1/packets/" + id + "/grabs", key: h.app.token, body: `{"user_id":"b"}`,
		header: map[string]string{"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1", "X-Real-IP": "192.0.2.1"}})
	h.overLimit("a header says another address", forwarded)
	h.same("the winner", won, h.grab(h.app, id, "a"))
	if r := h.as(h.app, "GET", "/v1/packets/"+id, ""); r.status != 200 {
		t.Errorf("a read: %s", r)
	}
	if n := h.metric(fmt.Sprintf(limitedBy, "address")); n != 1 {
		t.Errorf("%d refused", n)
	}
}

// TestLimitPasses: whoever is over a limit is let through when its time has come.
func TestLimitPasses(t *testing.T) {
	t.Parallel()
	h := newHouse(t, parts{})
	one, two := h.open(h.app, with()), h.open(h.app, with())
	h.limit(api.Limits{User: api.Limit{N: 1, Span: time.Second}})
	if r := h.grab(h.app, one, "a"); r.status != 201 {
		t.Fatalf("%s", r)
	}
	wait.Until(h.t, "he is let through", func() bool {
		r := h.grab(h.app, two, "a")
		if r.status != 201 {
			h.overLimit("asked at once", r)
		}
		return r.status == 201
	})
}

// TestLimitsOff: without limits nothing is counted, and Redis hears nothing of it.
func TestLimitsOff(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	h := newHouse(t, parts{redis: server.Addr})
	h.cfg.Limiter = h.pool
	h.limit(api.Limits{})
	counted := func() []string {
		t.Helper()
		c := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer c.Close()
		keys, err := c.Keys(t.Context(), "hb:{limit:*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	id := h.open(h.app, with("share_count", "100"))
	for i := range 50 {
		if r := h.grab(h.app, id, "u"+strconv.Itoa(i)); r.status != 201 {
			t.Fatalf("%s", r)
		}
	}
	if keys := counted(); len(keys) != 0 {
		t.Errorf("counted: %q", keys)
	}
	h.limit(api.Limits{User: api.Limit{N: 2, Span: time.Hour}, Address: api.Limit{N: 2, Span: time.Hour},
		Key: api.Limit{N: 2, Span: time.Hour}})
	if r := h.grab(h.app, id, "last"); r.status != 201 {
		t.Fatalf("%s", r)
	}
	if keys := counted(); len(keys) != 3 {
		t.Errorf("counted: %q", keys)
	}
}

// TestLimitWithoutRedis: what cannot be counted is let through, as far as it can be
// answered without Redis.
func TestLimitWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newHouse(t, parts{redis: redis.Addr})
	open, closed := h.open(h.app, with()), h.open(h.app, with("share_count", "2"))
	h.grab(h.app, closed, "a")
	h.finish(closed, packet.CloseRecalled)
	h.limit(api.Limits{User: api.Limit{N: 1, Span: time.Hour}, Key: api.Limit{N: 1, Span: time.Hour}})
	if r := h.as(h.app, "GET", "/v1/packets/"+closed, ""); r.status != 200 {
		t.Fatalf("%s", r)
	}
	h.overLimit("the second read", h.as(h.app, "GET", "/v1/packets/"+closed, ""))
	redis.Kill()
	if r := h.as(h.app, "GET", "/v1/packets/"+closed, ""); r.status != 200 {
		t.Errorf("%s", r)
	}
	for range 2 {
		if r := h.grab(h.app, open, "a"); r.code() != "unavailable" {
			t.Errorf("%s", r)
		}
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]api.Limit{
		"0": {}, "1/1s": {N: 1, Span: time.Second}, "20/1m": {N: 20, Span: time.Minute}, "1000000/24h": {N: 1_000_000, Span: 24 * time.Hour},
		"5/1m30s": {N: 5, Span: 90 * time.Second},
	} {
		if got, err := api.ParseLimit(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "/1s", "5/", "0/1s", "-1/1s", "+1/1s", "05/1s", "5/1", "5/s", "5/0s", "5/999ms", "5/25h", "5/-1s",
		"1000001/1s", "5 / 1s", "5/1s/1s", "1.5/1s", "none", "off"} {
		if got, err := api.ParseLimit(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestLimitConfig: a limit that nobody counts, or that cannot be one, does not start.
func TestLimitConfig(t *testing.T) {
	t.Parallel()
	h := sharedHouse(t)
	for what, change := range map[string]func(*api.Config){
		"nobody counts":  func(c *api.Config) { c.Limits.User = api.Limit{N: 1, Span: time.Second} },
		"no number":      func(c *api.Config) { c.Limiter, c.Limits.Key = h.pool, api.Limit{Span: time.Second} },
		"no span":        func(c *api.Config) { c.Limiter, c.Limits.Address = h.pool, api.Limit{N: 1} },
		"below zero":     func(c *api.Config) { c.Limiter, c.Limits.User = h.pool, api.Limit{N: -1, Span: time.Second} },
		"far too many":   func(c *api.Config) { c.Limiter, c.Limits.User = h.pool, api.Limit{N: math.MaxInt64, Span: time.Second} },
		"far too seldom": func(c *api.Config) { c.Limiter, c.Limits.User = h.pool, api.Limit{N: 1, Span: math.MaxInt64} },
	} {
		cfg := h.cfg
		cfg.Metrics = nil
		change(&cfg)
		if _, err := api.New(cfg); err == nil {
			t.Errorf("%s: it starts", what)
		}
	}
}

// TestLimitCountsRealAttempts: who finds nothing left, or asks again for what he has, has
// tried nothing.
func TestLimitCountsRealAttempts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, parts{})
	one, two := h.open(h.app, with()), h.open(h.app, with())
	empty := h.open(h.app, with("share_count", "1"))
	recalled := h.open(h.app, with())
	closed := h.open(h.app, with("share_count", "2"))
	early := h.open(h.app, with("opens_at", strconv.Quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	h.grab(h.app, empty, "b")
	h.as(h.app, "POST", "/v1/packets/"+recalled+"/close", "")
	h.grab(h.app, closed, "b")
	h.finish(closed, packet.CloseRecalled)
	h.limit(api.Limits{User: api.Limit{N: 3, Span: time.Hour}})
	won := h.grab(h.app, one, "a")
	for range 4 {
		h.same("a repeat", won, h.grab(h.app, one, "a"))
		for code, id := range map[string]string{"sold_out": empty, "expired": recalled} {
			if r := h.grab(h.app, id, "a"); r.code() != code {
				t.Errorf("want %s: %s", code, r)
			}
		}
		if r := h.grab(h.app, closed, "a"); r.code() != "expired" {
			t.Errorf("of a packet that is closed: %s", r)
		}
	}
	if r := h.grab(h.app, early, "a"); r.code() != "not_open_yet" {
		t.Errorf("too early: %s", r)
	}
	if r := h.grab(h.app, two, "a"); r.status != 201 {
		t.Errorf("the third attempt: %s", r)
	}
	h.overLimit("the fourth", h.grab(h.app, early, "a"))
}
