package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
)

// anonymous is a packet id in the right form that no packet has.
const anonymous = "00000000000000000000"

// TestOrderOfChecks: auth, role, route, body, fields, idempotency, state. Each
// line repairs what the line before was refused for.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	bad := strings.Repeat("x", 65<<10)
	text := map[string]string{"Content-Type": "text/plain"}
	good := `{"sender_id":"u1","total_amount":10,"share_count":1}`
	for i, c := range []struct {
		call
		status int
		code   string
	}{
		{call{method: "POST", path: "/v1/nothing", body: bad}, 401, "unauthenticated"},
		{call{method: "POST", path: "/v1/nothing", body: bad, key: h.finance.token}, 403, "forbidden"},
		{call{method: "POST", path: "/v1/nothing", body: bad, key: h.app.token}, 404, "not_found"},
		{call{method: "PUT", path: "/v1/packets", body: bad, key: h.app.token}, 405, "method_not_allowed"},
		{call{method: "POST", path: "/v1/packets/" + anonymous + "/grabs", body: bad, key: h.app.token, header: text}, 415,
			"unsupported_media_type"},
		{call{method: "POST", path: "/v1/packets/" + anonymous + "/grabs", body: bad, key: h.app.token}, 413, "body_too_large"},
		{call{method: "POST", path: "/v1/packets/" + anonymous + "/grabs", body: `{"user_id":`, key: h.app.token}, 400, "malformed_json"},
		{call{method: "POST", path: "/v1/packets/" + anonymous + "/grabs", body: `{"user_id":1}`, key: h.app.token}, 422, "invalid_request"},
		{call{method: "POST", path: "/v1/packets/" + anonymous + "/grabs", body: `{"user_id":"u"}`, key: h.app.token}, 404, "packet_not_found"},
		{call{method: "POST", path: "/v1/packets", body: strings.Repeat("x", 4<<20+1)}, 401, "unauthenticated"},
		{call{method: "POST", path: "/v1/packets", body: strings.Repeat("x", 4<<20+1), key: h.app.token}, 413, "body_too_large"},
		{call{method: "POST", path: "/v1/packets", body: `{"sender_id":"u1"}`, key: h.app.token}, 422, "invalid_request"},
		{call{method: "POST", path: "/v1/packets", body: good, key: h.app.token}, 400, "idempotency_key_required"},
		{call{method: "POST", path: "/v1/packets", body: good, key: h.app.token, header: map[string]string{"Idempotency-Key": "k k"}}, 400,
			"idempotency_key_required"},
		{call{method: "POST", path: "/v1/packets", body: good, key: h.app.token, header: map[string]string{"Idempotency-Key": "schlüssel"}}, 400,
			"idempotency_key_required"},
		{call{method: "POST", path: "/v1/packets", body: good, key: h.app.token,
			header: map[string]string{"Idempotency-Key": strings.Repeat("k", 129)}}, 400, "idempotency_key_required"},

		{call{method: "POST", path: "/v1/staff/nothing"}, 401, "unauthenticated"},
		{call{method: "POST", path: "/v1/staff/nothing", key: h.app.token}, 403, "forbidden"},
		{call{method: "POST", path: "/v1/staff/nothing", key: h.ops.token}, 404, "not_found"},
		{call{method: "DELETE", path: "/v1/staff/payouts", key: h.ops.token}, 405, "method_not_allowed"},
		{call{method: "POST", path: "/v1/staff/payouts/x/retry", key: h.ops.token, body: bad}, 403, "forbidden"},
		{call{method: "POST", path: "/v1/staff/payouts/x/retry", key: h.auditor.token, body: bad}, 403, "forbidden"},
		{call{method: "POST", path: "/v1/staff/payouts/x/retry", key: h.finance.token, body: bad}, 413, "body_too_large"},
		{call{method: "POST", path: "/v1/staff/payouts/x/retry", key: h.finance.token, body: `{"reason":""}`}, 422, "invalid_request"},
		{call{method: "POST", path: "/v1/staff/payouts/x/retry", key: h.finance.token, body: `{"reason":"r"}`}, 400, "idempotency_key_required"},
		{call{method: "POST", path: "/v1/staff/payouts/x/retry", key: h.finance.token, body: `{"reason":"r"}`,
			header: map[string]string{"Idempotency-Key": "k"}}, 404, "payout_not_found"},
	} {
		r := h.do(c.call)
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%d: %s %s: want %d %s, got %.300s", i, c.method, c.path, c.status, c.code, r)
		}
	}
}

// TestListeners: who sees what where.
func TestListeners(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for i, c := range []struct {
		base, path, key string
		status          int
		code            string
	}{
		{h.public, "/v1/staff/payouts", h.app.token, 403, "forbidden"},
		{h.public, "/v1/staff/payouts", h.finance.token, 404, "not_found"},
		{h.public, "/v1/staff", h.app.token, 403, "forbidden"},
		{h.public, "/v1/staffing", h.finance.token, 403, "forbidden"},
		{h.staff, "/v1/packets/" + anonymous, h.finance.token, 403, "forbidden"},
		{h.staff, "/v1/packets/" + anonymous, h.app.token, 404, "not_found"},
		{h.public, "/v1/packets/" + anonymous, h.auditor.token, 403, "forbidden"},
		{h.public, "/v1/packets/" + anonymous, h.app.token, 404, "packet_not_found"},
		{h.public, "/metrics", "", 401, "unauthenticated"},
		{h.public, "/metrics", h.ops.token, 404, "not_found"},
		{h.staff, "/openapi.json", "", 401, "unauthenticated"},
		{h.public, "/", "", 401, "unauthenticated"},
		{h.public, "/", h.app.token, 404, "not_found"},
		{h.public, "//", h.app.token, 404, "not_found"},
		{h.public, "/V1/packets", h.app.token, 404, "not_found"},
		{h.public, "/v1/Packets", h.app.token, 404, "not_found"},
		{h.public, "/v1/packets/" + anonymous + "/", h.app.token, 404, "not_found"},
		{h.public, "/v1//packets/" + anonymous, h.app.token, 404, "not_found"},
		{h.public, "/v1/../v1/packets/" + anonymous, h.app.token, 404, "not_found"},
		{h.public, "/v1/%70ackets/" + anonymous, h.app.token, 404, "not_found"},
		{h.public, "/livez/", "", 401, "unauthenticated"},
		{h.public, "/docs/../v1/packets", "", 404, "not_found"},
	} {
		r := h.do(call{method: "GET", base: c.base, path: c.path, key: c.key})
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%d: %s: want %d %s, got %s", i, c.path, c.status, c.code, r)
		}
	}
	for _, method := range []string{"POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"} {
		if r := h.do(call{method: method, path: "/livez"}); r.status != 405 || r.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s /livez: Allow %q, %s", method, r.header.Get("Allow"), r)
		}
		if r := h.do(call{method: method, path: "/v1/packets/" + anonymous + "/proof"}); r.status != 401 {
			t.Errorf("%s without key: %s", method, r)
		}
	}
	if r := h.do(call{method: "PROPFIND", path: "/v1/packets/" + anonymous + "/grabs", key: h.app.token}); r.status != 405 ||
		r.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow %q, %s", r.header.Get("Allow"), r)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	other := h.app.token[:len(h.app.token)-1] + "A"
	if other == h.app.token {
		other = h.app.token[:len(h.app.token)-1] + "B"
	}
	unknown, _ := access.NewToken(access.RoleApp)
	for name, c := range map[string]struct{ header, detail string }{
		"none":         {"", "has no API key"},
		"empty":        {" ", "has no API key"},
		"basic":        {"Basic " + h.app.token, "has no API key"},
		"bare":         {h.app.token, "has no API key"},
		"typing error": {"Bearer " + other, "malformed"},
		"cut":          {"Bearer " + h.app.token[:40], "malformed"},
		"trailing":     {"Bearer " + h.app.token + " x", "malformed"},
		"long":         {"Bearer " + strings.Repeat("x", 4000), "malformed"},
		"unknown":      {"Bearer " + unknown, "unknown, revoked"},
	} {
		header := map[string]string{}
		if c.header != "" {
			header["Authorization"] = c.header
		}
		r := h.do(call{method: "GET", path: "/v1/packets/" + anonymous, header: header})
		if r.status != http.StatusUnauthorized || r.code() != "unauthenticated" || !strings.Contains(r.detail(), c.detail) ||
			r.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %s", name, r)
		}
	}
	if r := h.do(call{method: "GET", path: "/v1/packets/" + anonymous,
		header: map[string]string{"Authorization": "bEARER  " + h.app.token}}); r.status != http.StatusNotFound {
		t.Errorf("the scheme's case: %s", r)
	}
	twice := "GET /v1/packets/" + anonymous + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + h.app.token + "\r\nAuthorization: Bearer " +
		h.app.token + "\r\n\r\n"
	if r := h.wire(h.public, twice); r.status != http.StatusUnauthorized {
		t.Errorf("two keys: %s", r)
	}
	// A new key opens within a second or so, without a restart.
	fresh := h.newOwner(access.RoleApp)
	wait.Until(h.t, "new key", func() bool { return h.as(fresh, "GET", "/v1/packets/"+anonymous, "").status == http.StatusNotFound })
}

// TestRoles: a key of the wrong role is answered which role it has and which are needed.
func TestRoles(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for _, c := range []struct{ base, method, path, key, needed, has string }{
		{h.public, "GET", "/v1/packets/" + anonymous, h.ops.token, "app;", "ops."},
		{h.staff, "GET", "/v1/staff/payouts", h.app.token, "finance or ops or auditor or admin;", "app."},
		{h.staff, "POST", "/v1/staff/payouts/x/retry", h.auditor.token, "finance;", "auditor."},
		{h.staff, "POST", "/v1/staff/holds", h.auditor.token, "ops or finance;", "auditor."},
	} {
		r := h.do(call{method: c.method, base: c.base, path: c.path, key: c.key})
		want := "The request needs a key of role " + c.needed + " the role of this key is " + c.has
		if r.status != http.StatusForbidden || r.code() != "forbidden" || r.detail() != want {
			t.Errorf("%s %s: want %q, got %s", c.method, c.path, want, r)
		}
	}
}

// TestKeysInAStaleRedis: the copy of the keys is made again in a Redis that has lost it, or
// has an older one, in which a revoked key is still good.
func TestKeysInAStaleRedis(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	server, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{redis: redis.Addr, dsn: dsn})
	id := h.open(h.app, `{"sender_id":"u1","total_amount":10,"share_count":2}`)
	var now []byte
	wait.Until(h.t, "the keys are in redis", func() bool {
		var err error
		now, err = h.pool.LoadApps(t.Context())
		return err == nil && bytes.Contains(now, []byte(h.app2.key.ID))
	})
	if bytes.Contains(now, []byte(h.finance.key.ID)) {
		t.Error("a key of staff is in redis")
	}
	h.check(h.store.EnsureApp(t.Context(), access.App{ID: "later", Name: "later", Salt: []byte("salt")}))
	wait.Until(h.t, "the new app is in redis", func() bool {
		blob, err := h.pool.LoadApps(t.Context())
		return err == nil && bytes.Contains(blob, []byte("later"))
	})
	for _, older := range [][]byte{[]byte("{}"), []byte(`{"apps":[],"keys":[]}`), now} {
		h.check(h.pool.SaveApps(t.Context(), older))
		wait.Until(h.t, "the keys are in redis again", func() bool {
			blob, err := h.pool.LoadApps(t.Context())
			return err == nil && bytes.Contains(blob, []byte("later"))
		})
	}
	h.check(h.stop())
	server.Kill()
	h.start()
	if r := h.grab(h.app, id, "u2"); r.status != http.StatusCreated {
		t.Errorf("grab: %s", r)
	}
}

// TestRedisWriterIsNoStaff: an API process that starts while MySQL is away takes from
// Redis neither a key of staff nor anything that this installation has not put there, or not
// last. What it takes never authenticates staff.
func TestRedisWriterIsNoStaff(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	mysql, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{redis: redis.Addr, dsn: dsn})
	id := h.open(h.app, `{"sender_id":"u1","total_amount":10,"share_count":2}`)
	thief, thiefID := access.NewToken(access.RoleFinance)
	stolen, stolenID := access.NewToken(access.RoleApp)
	keys, err := json.Marshal([]access.Key{
		{ID: thiefID, Role: access.RoleFinance, Owner: "thief", SecretHash: access.HashToken(thief)},
		{ID: stolenID, Role: access.RoleApp, AppID: h.app.app.ID, Owner: "thief", SecretHash: access.HashToken(stolen)}})
	h.check(err)
	apps, err := json.Marshal([]access.App{h.app.app})
	h.check(err)
	list := fmt.Appendf(nil, `{"apps":%s,"keys":%s}`, apps, keys)
	h.check(h.stop())
	good, err := h.pool.LoadApps(t.Context())
	h.check(err)
	var signed struct {
		Number int64
		List   json.RawMessage
		MAC    []byte
	}
	h.check(json.Unmarshal(good, &signed))
	blob := func(number int64, list json.RawMessage, mac []byte) []byte {
		out, err := json.Marshal(map[string]any{"number": number, "list": list, "mac": mac})
		h.check(err)
		return out
	}
	unkeyed := sha256.Sum256(list)
	mysql.Kill()
	for what, forged := range map[string][]byte{
		"plain": list, "without a sum": blob(signed.Number+1, list, nil),
		"with a sum of another list":   blob(signed.Number, list, signed.MAC),
		"with a sum that needs no key": blob(signed.Number, list, unkeyed[:]),
		"with another number":          blob(signed.Number+1, signed.List, signed.MAC),
		"empty":                        {}, "null": []byte("null"),
	} {
		h.check(h.pool.SaveApps(t.Context(), forged))
		server, err := api.New(h.cfg)
		h.check(err)
		h.check(server.Listen())
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx) }()
		public, staff := "http://"+server.PublicAddr().String(), "http://"+server.StaffAddr().String()
		for _, c := range []call{
			{method: "GET", base: staff, path: "/v1/staff/payouts", key: thief},
			{method: "GET", base: staff, path: "/v1/staff/payouts", key: h.finance.token},
			{method: "GET", base: public, path: "/v1/packets/" + id, key: stolen},
		} {
			if r := h.do(c); r.status != http.StatusServiceUnavailable {
				t.Errorf("%s: %s", what, r)
			}
		}
		cancel()
		h.check(<-served)
	}
	h.check(h.pool.SaveApps(t.Context(), good))
	h.start()
	if r := h.grab(h.app, id, "u2"); r.status != http.StatusCreated {
		t.Errorf("grab: %s", r)
	}
	for _, token := range []string{h.finance.token, thief} {
		if r := h.do(call{method: "GET", path: "/v1/staff/payouts", key: token}); r.status != http.StatusServiceUnavailable {
			t.Errorf("staff without MySQL: %s", r)
		}
	}
}

// TestKeysWithoutMySQL: an API process starts and takes writes while MySQL is away.
func TestKeysWithoutMySQL(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	server, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{redis: redis.Addr, dsn: dsn})
	id := h.open(h.app, `{"sender_id":"u1","total_amount":10,"share_count":2}`)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	h.start()
	if r := h.grab(h.app, id, "u2"); r.status != http.StatusCreated {
		t.Errorf("grab: %s", r)
	}
	if r := h.grab(h.app2, id, "u3"); r.code() != "packet_not_found" {
		t.Errorf("another app: %s", r)
	}
	unknown, _ := access.NewToken(access.RoleApp)
	if r := h.do(call{method: "GET", path: "/v1/packets/" + id, key: unknown}); r.status != http.StatusUnauthorized {
		t.Errorf("unknown key: %s", r)
	}
}

// TestPublicTokens: a token that everybody knows opens nothing, although its key is there.
func TestPublicTokens(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	cfg := h.cfg
	cfg.PublicTokens = [][]byte{access.HashToken(h.finance.token), access.HashToken(h.app2.token)}
	server, err := api.New(cfg)
	h.check(err)
	h.check(server.Listen())
	stop := h.serve(server)
	t.Cleanup(func() { h.check(stop()) })
	public, staff := server.PublicAddr().String(), server.StaffAddr().String()
	wait.Until(t, "the keys are read", func() bool {
		return h.do(call{method: "GET", base: "http://" + staff, path: "/v1/staff/payouts", key: h.ops.token}).status == 200
	})
	for i, c := range []struct {
		base, path, key string
		status          int
	}{
		{staff, "/v1/staff/payouts", h.finance.token, 401}, {public, "/v1/packets", h.app2.token, 401}, {public, "/v1/packets", h.app.token, 200},
	} {
		if r := h.do(call{method: "GET", base: "http://" + c.base, path: c.path, key: c.key}); r.status != c.status {
			t.Errorf("%d: want %d, got %s", i, c.status, r)
		}
	}
	if _, ok, err := server.SignIn(t.Context(), h.finance.token); ok || err != nil {
		t.Errorf("signed in with it: %v", err)
	}
	if r := h.do(call{method: "GET", path: "/v1/staff/payouts", key: h.finance.token}); r.status != 200 {
		t.Errorf("in a try-out: %s", r)
	}
}
