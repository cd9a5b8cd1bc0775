package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// TestGrabTable: each outcome of a grab, for a packet in each state.
func TestGrabTable(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	guests := h.open(h.app, with("share_count", "2", "eligible_user_ids", `["a","b","c"]`))
	recalled := h.open(h.app, with("eligible_user_ids", `["a","c"]`))
	closing := h.open(h.app, with())
	retired := h.open(h.app, with("eligible_user_ids", `["a","b"]`))
	soldOut := h.open(h.app, with("share_count", "1", "eligible_user_ids", `["a","b"]`))
	lost := h.open(h.app, with("eligible_user_ids", `["a","b"]`))
	for _, id := range []string{guests, recalled, closing, retired, soldOut, lost} {
		if r := h.grab(h.app, id, "a"); r.status != http.StatusCreated {
			t.Fatalf("%s", r)
		}
	}
	if r := h.as(h.app, "POST", "/v1/packets/"+recalled+"/close", ""); r.status != http.StatusAccepted {
		t.Fatalf("%s", r)
	}
	if _, err := h.pool.ClosePool(t.Context(), closing, packet.CloseRecalled); err != nil {
		t.Fatal(err)
	}
	h.finish(retired, packet.CloseRecalled)
	h.finish(soldOut, packet.CloseSoldOut)
	h.finish(lost, packet.CloseRecalled)
	if _, err := h.database(h.dsn).ExecContext(t.Context(), "UPDATE packets SET eligible = NULL WHERE id = ?", lost); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		id, user string
		owner    owner
		status   int
		code     string
	}{
		{anonymous, "a", h.app, 404, "packet_not_found"},
		{guests, "a", h.app2, 404, "packet_not_found"},
		{guests, "a", h.app, 200, ""},
		{guests, "A", h.app, 403, "not_eligible"},
		{guests, "b", h.app, 201, ""},
		{guests, "a", h.app, 200, ""},
		{guests, "b", h.app, 200, ""},
		{guests, "x", h.app, 403, "not_eligible"},
		{guests, "c", h.app, 409, "sold_out"},
		{recalled, "a", h.app, 200, ""},
		{recalled, "x", h.app, 403, "not_eligible"},
		{recalled, "c", h.app, 410, "expired"},
		{closing, "a", h.app, 200, ""},
		{closing, "b", h.app, 410, "expired"},
		{retired, "a", h.app2, 404, "packet_not_found"},
		{retired, "a", h.app, 200, ""},
		{retired, "x", h.app, 403, "not_eligible"},
		{retired, "b", h.app, 410, "expired"},
		{soldOut, "a", h.app, 200, ""},
		{soldOut, "x", h.app, 403, "not_eligible"},
		{soldOut, "b", h.app, 409, "sold_out"},
		{lost, "a", h.app, 200, ""},
		{lost, "x", h.app, 403, "not_eligible"},
		{lost, "b", h.app, 403, "not_eligible"}, // eligibility is unknown
	} {
		r := h.grab(c.owner, c.id, c.user)
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%d: want %d %s, got %s", i, c.status, c.code, r)
		}
		if r.status == 200 || r.status == 201 {
			var claim claimBody
			r.json(t, &claim)
			if claim.Replayed != (r.status == 200) || claim.UserID != c.user || claim.PacketID != c.id || claim.Amount < 1 {
				t.Errorf("%d: %s", i, r)
			}
		}
	}
}

// TestGrabExpired: by the clock of Redis, before anybody has closed the packet.
func TestGrabExpired(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	var id string
	var first result
	left := time.Second
	wait.Until(t, "a claim before it expires", func() bool {
		opens := time.Now().Add(left - 10*time.Second).UTC().Format(time.RFC3339Nano)
		id = h.open(h.app, with("opens_at", quoted(opens), "expires_in_seconds", "10", "share_count", "1000"))
		first = h.grab(h.app, id, "a")
		left = min(2*left, 10*time.Second)
		return first.status == http.StatusCreated
	})
	tries := 0
	wait.Until(h.t, "expired", func() bool {
		tries++
		r := h.grab(h.app, id, fmt.Sprint("u", tries))
		if r.status != http.StatusCreated && r.code() != "expired" {
			t.Fatalf("%s", r)
		}
		return r.code() == "expired"
	})
	if again := h.grab(h.app, id, "a"); again.status != 200 {
		t.Errorf("the first claim %s is gone: %s", first, again)
	}
}

// TestGrabEmptyProfile: an empty name or picture is none, wherever the claim is read.
func TestGrabEmptyProfile(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "2"))
	path := "/v1/packets/" + id + "/grabs"
	none := func(when string, r result, status int) {
		t.Helper()
		if r.status != status || !strings.Contains(string(r.body), `"nickname":null,"avatar_url":null,`) {
			t.Errorf("%s: %s", when, r)
		}
	}
	none("won", h.as(h.app, "POST", path, `{"user_id":"u","nickname":"","avatar_url":""}`), 201)
	none("asked again", h.as(h.app, "POST", path, `{"user_id":"u","avatar_url":"https://h/x"}`), 200)
	if r := h.as(h.app, "POST", path, `{"user_id":"v","x":1,"avatar_url":"","nickname":""}`); r.status != 422 ||
		!slices.Equal(fieldsOf(t, r), []string{"x unknown_field"}) {
		t.Errorf("the only fault is x: %s", r)
	}
	h.finish(id, packet.CloseRecalled)
	none("from mysql", h.as(h.app, "GET", path+"/u", ""), 200)
}

// TestClaimKept: a repeat gets the same claim, whatever it brings, for ever.
func TestClaimKept(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "2"))
	path := "/v1/packets/" + id + "/grabs"
	first := h.as(h.app, "POST", path, `{"user_id":"u","nickname":"小王 <b>","avatar_url":"https://h/x?a=1&b=2","recipient":"acct-1"}`)
	var a claimBody
	first.json(t, &a)
	if a.Nickname == nil || *a.Nickname != "小王 <b>" || *a.AvatarURL != "https://h/x?a=1&b=2" || a.Payout.Status != "pending" || a.BestLuck {
		t.Fatalf("%s", first)
	}
	check := func(when, status string) {
		t.Helper()
		for _, body := range []string{`{"user_id":"u"}`, `{"user_id":"u","nickname":"x","recipient":"acct-2"}`} {
			var b claimBody
			r := h.as(h.app, "POST", path, body)
			r.json(t, &b)
			if r.status != 200 || !b.Replayed || b.Amount != a.Amount || b.ShareIndex != a.ShareIndex || *b.Nickname != *a.Nickname ||
				!b.ClaimedAt.Equal(a.ClaimedAt) ||
				b.Payout.ID != a.Payout.ID || b.Payout.Status != status {
				t.Errorf("%s: %s", when, r)
			}
		}
		var b claimBody
		r := h.as(h.app, "GET", path+"/u", "")
		r.json(t, &b)
		if r.status != 200 || b.Replayed || b.Amount != a.Amount || b.Payout.Status != status {
			t.Errorf("%s: %s", when, r)
		}
	}
	check("won", "pending")
	h.record(id)
	check("paid", "paid")
	h.finish(id, packet.CloseRecalled)
	check("retired", "paid")
	detail, err := h.reports().Payment(t.Context(), a.Payout.ID)
	if err != nil || detail.Account != "acct-1" {
		t.Errorf("paid to %q, %v", detail.Account, err)
	}
}

// grabPatiently grabs at one process until Redis has had the time to decide.
func (h *fixture) grabPatiently(base, id, user string) result {
	h.t.Helper()
	body, err := json.Marshal(map[string]string{"user_id": user})
	if err != nil {
		h.t.Fatal(err)
	}
	for {
		r := h.do(call{method: "POST", base: base, path: "/v1/packets/" + id + "/grabs", key: h.app.token, body: string(body)})
		if r.status != http.StatusServiceUnavailable {
			return r
		}
	}
}

// TestCrowd: 60 users, 3 tries each at once, 20 shares.
func TestCrowd(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with("share_count", "20", "total_amount", "2000"))
	var mu sync.Mutex
	var all sync.WaitGroup
	amounts := map[string]int64{}
	var sum int64
	fresh := 0
	for u := range 60 {
		for range 3 {
			all.Go(func() {
				r := h.grabPatiently(h.public, id, fmt.Sprint("user", u))
				mu.Lock()
				defer mu.Unlock()
				switch r.status {
				case http.StatusCreated, http.StatusOK:
					var c claimBody
					r.json(t, &c)
					if was, ok := amounts[c.UserID]; ok && was != c.Amount {
						t.Errorf("%s has %d and %d", c.UserID, was, c.Amount)
					}
					if _, ok := amounts[c.UserID]; !ok {
						sum += c.Amount
					}
					amounts[c.UserID] = c.Amount
					if r.status == http.StatusCreated {
						fresh++
					}
				case http.StatusConflict:
				default:
					t.Errorf("%s", r)
				}
			})
		}
	}
	all.Wait()
	// A win that Redis acknowledged too late is returned by the next try.
	if fresh > 20 || len(amounts) != 20 || sum != 2000 {
		t.Errorf("%d new wins acknowledged, %d winners, %d fen", fresh, len(amounts), sum)
	}
	if p := h.packet(h.app, id); p.Status != "sold_out" || p.ClaimedAmount != 2000 || p.RemainingCount != 0 {
		t.Errorf("%+v", p)
	}
	if p := h.proof(h.app, id); !p.Balanced || p.InFlight != 2000 || p.Remaining != 2000 {
		t.Errorf("before the relay: %+v", p)
	}
	h.record(id)
	if p := h.proof(h.app, id); !p.Balanced || p.InFlight != 0 || p.Paid != 2000 {
		t.Errorf("after: %+v", p)
	}
	metrics := h.get("/metrics")
	if !strings.Contains(string(metrics.body), fmt.Sprintf("hongbao_grab_total{result=\"won\"} %d\n", fresh)) ||
		!strings.Contains(string(metrics.body), `route="/v1/packets/{id}/grabs"`) {
		t.Errorf("metrics: %s", metrics.body)
	}
}

// TestMySQLAway: grabs go on, creates are staged, reads that need MySQL say so.
func TestMySQLAway(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	server, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{redis: redis.Addr, dsn: dsn})
	id := h.open(h.app, with("share_count", "3"))
	gone := h.open(h.app, with("share_count", "2"))
	h.grab(h.app, gone, "a")
	h.finish(gone, packet.CloseRecalled)
	server.Kill()
	for i, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/v1/packets/" + id + "/grabs", `{"user_id":"a"}`, 201, ""},
		{"POST", "/v1/packets/" + id + "/grabs", `{"user_id":"a"}`, 200, ""},
		{"GET", "/v1/packets/" + id, "", 200, ""},
		{"GET", "/v1/packets/" + id + "/grabs", "", 200, ""},
		{"GET", "/v1/packets/" + id + "/grabs/a", "", 200, ""},
		{"GET", "/v1/packets/" + id + "/grabs/b", "", 404, "claim_not_found"},
		{"GET", "/v1/packets/" + id + "/proof", "", 503, "unavailable"},
		{"POST", "/v1/packets/" + id + "/close", "", 202, ""},
		{"GET", "/v1/packets/" + id, "", 200, ""},
		{"POST", "/v1/packets/" + gone + "/grabs", `{"user_id":"a"}`, 503, "unavailable"},
		{"POST", "/v1/packets/" + gone + "/grabs", `{"user_id":"b"}`, 503, "unavailable"},
		{"GET", "/v1/packets/" + gone, "", 503, "unavailable"},
		{"GET", "/v1/packets/" + gone + "/grabs", "", 503, "unavailable"},
		{"GET", "/v1/packets/" + gone + "/grabs/a", "", 503, "unavailable"},
		{"GET", "/v1/packets/" + anonymous, "", 503, "unavailable"},
		{"POST", "/v1/packets/" + anonymous + "/grabs", `{"user_id":"a"}`, 503, "unavailable"},
	} {
		if r := h.as(h.app, c.method, c.path, c.body); r.status != c.status || r.code() != c.code {
			t.Errorf("%d: %s %s: want %d %s, got %s", i, c.method, c.path, c.status, c.code, r)
		}
	}
	for _, path := range []string{"/v1/staff/payouts", "/v1/staff/payouts/p" + anonymous + "0000"} {
		if r := h.as(h.ops, "GET", path, ""); r.status != 503 {
			t.Errorf("%s: %s", path, r)
		}
	}
	if r := h.post(h.app, "k", with()); r.status != http.StatusAccepted {
		t.Errorf("create: %s", r)
	}
	if r := h.get("/readyz"); r.status != 200 || !strings.Contains(string(r.body), `"status":"degraded"`) {
		t.Errorf("%s", r)
	}
	server.Restart(t)
	wait.Until(h.t, "mysql is back", func() bool { return h.grab(h.app, gone, "a").status == 200 })
}

// TestRedisAway: nothing is taken, nothing is lost.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: redis.Addr})
	id := h.open(h.app, with("share_count", "3"))
	closed := h.open(h.app, with("share_count", "2"))
	h.grab(h.app, closed, "a")
	h.finish(closed, packet.CloseRecalled)
	won := h.grab(h.app, id, "a")
	redis.Kill()
	for i, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/packets/" + id + "/grabs", `{"user_id":"a"}`, 503},
		{"POST", "/v1/packets/" + id + "/grabs", `{"user_id":"b"}`, 503},
		{"GET", "/v1/packets/" + id, "", 503},
		{"GET", "/v1/packets/" + id + "/grabs", "", 503},
		{"GET", "/v1/packets/" + id + "/grabs/a", "", 503},
		{"GET", "/v1/packets/" + id + "/proof", "", 503},
		{"POST", "/v1/packets/" + id + "/close", "", 503},
		{"GET", "/v1/packets/" + anonymous, "", 503},
		{"GET", "/v1/packets/" + closed, "", 200},
		{"GET", "/v1/packets/" + closed + "/grabs", "", 200},
		{"GET", "/v1/packets/" + closed + "/grabs/a", "", 200},
	} {
		if r := h.as(h.app, c.method, c.path, c.body); r.status != c.status || r.status == 503 && r.code() != "unavailable" {
			t.Errorf("%d: %s %s: want %d, got %s", i, c.method, c.path, c.status, r)
		}
	}
	if r := h.post(h.app, "k", with()); r.code() != "unavailable" {
		t.Errorf("create: %s", r)
	}
	if r := h.get("/readyz"); r.status != 503 || !strings.Contains(string(r.body), `"reason":"redis"`) {
		t.Errorf("%s", r)
	}
	if r := h.get("/livez"); r.status != 200 {
		t.Errorf("%s", r)
	}
	redis.Restart(t)
	wait.Until(h.t, "redis is back", func() bool { return h.get("/readyz").status == 200 })
	var a, b claimBody
	won.json(t, &a)
	var again result
	wait.Until(h.t, "go-redis dials again, at the latest after a second", func() bool {
		again = h.grab(h.app, id, "a")
		return again.status != http.StatusServiceUnavailable
	})
	again.json(t, &b)
	if !b.Replayed || a.Amount != b.Amount || a.ShareIndex != b.ShareIndex {
		t.Errorf("before %+v, after %s", a, again)
	}
}
