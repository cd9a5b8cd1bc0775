package sandbox

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestBadInput(t *testing.T) {
	st := newStand(t)
	ok := `"order_no":"b1","account":"u","amount":1,"currency":"CNY"`
	long := strings.Repeat("x", 65)
	for _, c := range []struct {
		name, body string
		status     int
		code       string
		field      string
	}{
		{"empty", ``, 415, "unsupported_media_type", ""},
		{"not json", `{`, 400, "malformed_json", ""},
		{"trailing", `{` + ok + `} x`, 400, "malformed_json", ""},
		{"not utf-8", "{\"account\":\"\xff\"}", 400, "malformed_json", ""},
		{"array", `[]`, 422, "invalid_request", ""},
		{"null", `null`, 422, "invalid_request", "order_no"},
		{"unknown", `{` + ok + `,"x":1}`, 422, "invalid_request", "x"},
		{"duplicate", `{` + ok + `,"amount":1}`, 422, "invalid_request", "amount"},
		{"float", `{"order_no":"b1","account":"u","amount":1.0,"currency":"CNY"}`, 422, "invalid_request", "amount"},
		{"exponent", `{"order_no":"b1","account":"u","amount":1e2,"currency":"CNY"}`, 422, "invalid_request", "amount"},
		{"text", `{"order_no":"b1","account":"u","amount":"1","currency":"CNY"}`, 422, "invalid_request", "amount"},
		{"zero", `{"order_no":"b1","account":"u","amount":0,"currency":"CNY"}`, 422, "invalid_request", "amount"},
		{"negative", `{"order_no":"b1","account":"u","amount":-5,"currency":"CNY"}`, 422, "invalid_request", "amount"},
		{"2^53", `{"order_no":"b1","account":"u","amount":9007199254740992,"currency":"CNY"}`, 422, "invalid_request", "amount"},
		{"huge", `{"order_no":"b1","account":"u","amount":99999999999999999999,"currency":"CNY"}`, 422, "invalid_request", "amount"},
		{"currency", `{"order_no":"b1","account":"u","amount":1,"currency":"USD"}`, 422, "invalid_request", "currency"},
		{"order number", `{"order_no":"b-1","account":"u","amount":1,"currency":"CNY"}`, 422, "invalid_request", "order_no"},
		{"long number", `{"order_no":"` + long[:33] + `","account":"u","amount":1,"currency":"CNY"}`, 422, "invalid_request", "order_no"},
		{"long account", `{"order_no":"b1","account":"` + long + `","amount":1,"currency":"CNY"}`, 422, "invalid_request", "account"},
		{"no account", `{"order_no":"b1","account":"","amount":1,"currency":"CNY"}`, 422, "invalid_request", "account"},
		{"charge of a transfer", `{` + ok + `,"charge_order_no":"c1"}`, 422, "invalid_request", "charge_order_no"},
		{"oversize", `{` + ok + `,"remark":"` + strings.Repeat("x", 4096) + `"}`, 413, "body_too_large", ""},
	} {
		r := st.do("POST", "/v1/transfers", c.body)
		var p problem
		if r.err != nil || json.Unmarshal(r.body, &p) != nil || r.status != c.status || p.Code != c.code || p.Status != c.status ||
			r.header.Get("Content-Type") != "application/problem+json" || p.RequestID != r.header.Get("X-Request-Id") {
			t.Errorf("%s: %s", c.name, r)
			continue
		}
		if c.field != "" && (len(p.Errors) == 0 || p.Errors[0].Field != c.field) {
			t.Errorf("%s: errors %+v, want field %q", c.name, p.Errors, c.field)
		}
	}
	if r := st.do("POST", "/v1/transfers", `{`+ok+`}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }); r.status != 415 {
		t.Errorf("text/plain: %s", r)
	}
	if len(st.movements()) != 0 || st.query("b1").code() != "order_not_found" {
		t.Error("a refused request left something")
	}
	max := `{"order_no":"` + long[:32] + `","account":"` + long[:64] + `","amount":9007199254740991,"currency":"CNY"}`
	st.do("POST", "/v1/transfers", max).order(t)
}

func TestRoutesAndKeys(t *testing.T) {
	st := newStand(t)
	wrongKey := func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") }
	for _, c := range []struct {
		method, path string
		change       func(*http.Request)
		status       int
	}{
		{"GET", "/livez", withoutKey, 200},
		{"GET", "/readyz", withoutKey, 200},
		{"GET", "/_movements", withoutKey, 200},
		{"GET", "/_faults", withoutKey, 200},
		{"GET", "/_movements?limit=0", withoutKey, 422},
		{"GET", "/_movements?after=-1", withoutKey, 422},
		{"GET", "/_movements?x=1", withoutKey, 422},
		{"GET", "/v1/orders/x", withoutKey, 401},
		{"GET", "/v1/orders/x", wrongKey, 401},
		{"POST", "/v1/transfers", withoutKey, 401},
		{"GET", "/v1/statement?date=2026-01-01", withoutKey, 401},
		{"GET", "/v1/totals?prefix=p", withoutKey, 401},
		{"GET", "/v1/returns?prefix=p", withoutKey, 401},
		{"GET", "/v1/nothing", withoutKey, 401},
		{"GET", "/v1/nothing", nil, 404},
		{"GET", "/v1/orders/x", nil, 404},
		{"GET", "/v1/orders/x%2Fy", nil, 404},
		{"GET", "/v1/transfers", nil, 405},
		{"DELETE", "/v1/orders/x", nil, 405},
		{"POST", "/_faults", nil, 405},
		{"GET", "/v1/statement", nil, 422},
		{"GET", "/v1/statement?date=2026-13-01", nil, 422},
		{"GET", "/v1/totals", nil, 422},
		{"GET", "/v1/totals?prefix=p-1", nil, 422},
		{"GET", "/v1/returns", nil, 422},
		{"GET", "/v1/returns?prefix=p-1", nil, 422},
		{"GET", "/v1/returns?prefix=p&after=-", nil, 422},
		{"GET", "/v1/returns?prefix=p&limit=0", nil, 422},
		{"GET", "/v1/returns?prefix=p&x=1", nil, 422},
		{"GET", "/", nil, 404},
	} {
		var change []func(*http.Request)
		if c.change != nil {
			change = append(change, c.change)
		}
		r := st.do(c.method, c.path, "", change...)
		if r.err != nil || r.status != c.status || r.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %s", c.method, c.path, r)
		}
		if c.status == 401 && r.header.Get("WWW-Authenticate") != "Bearer" || c.status == 405 && r.header.Get("Allow") == "" {
			t.Errorf("%s %s: headers %v", c.method, c.path, r.header)
		}
	}
}

// TestControlIsLocal: the endpoints without key answer callers on this machine only.
func TestControlIsLocal(t *testing.T) {
	st := newStand(t)
	for peer, want := range map[string]int{"127.0.0.1:9": 200, "127.8.8.8:9": 200, "[::1]:9": 200, "10.0.0.1:9": 403,
		"[2001:db8::1]:9": 403, "[::ffff:10.0.0.1]:9": 403, "": 403} {
		for _, path := range []string{"/_movements", "/_faults"} {
			r := httptest.NewRequest("GET", path, nil)
			r.RemoteAddr = peer
			r.Header.Set("X-Forwarded-For", "127.0.0.1")
			w := httptest.NewRecorder()
			st.server.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s from %q: %d, want %d", path, peer, w.Code, want)
			}
		}
	}
}
