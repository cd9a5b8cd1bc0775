package api_test

import (
	"net/http"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/test/wait"
)

// TestBodyBeforeState: a body is judged before anybody looks for what the path names,
// whether that could be there or not: the order of checks is body, fields, idempotency, state.
func TestBodyBeforeState(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	admin := h.newOwner(access.RoleAdmin)
	wait.Until(h.t, "the new key is known", func() bool { return h.as(admin, "GET", "/v1/staff/keys", "").status == http.StatusOK })
	var doc struct {
		Paths map[string]map[string]any
	}
	h.get("/openapi.json").json(t, &doc)
	found := 0
	for path, methods := range doc.Paths {
		before, after, named := strings.Cut(path, "{")
		if methods["post"] == nil || !named || strings.HasPrefix(path, "/v1/provider-notifications/") { // signed as a whole, not JSON for us
			continue
		}
		found++
		_, after, _ = strings.Cut(after, "}")
		who := h.app
		switch {
		case strings.HasPrefix(path, "/v1/staff/keys"), strings.HasPrefix(path, "/v1/staff/ticket-keys"):
			who = admin
		case strings.HasPrefix(path, "/v1/staff"):
			who = h.finance
		}
		for _, id := range []string{anonymous, "x", "%zz", "b1", strings.Repeat("y", 300)} {
			for body, code := range map[string]string{`{`: "malformed_json", `{"no_member":1}`: "invalid_request"} {
				r := h.do(call{method: "POST", path: before + id + after, key: who.token, body: body,
					header: map[string]string{"Idempotency-Key": "k"}})
				if r.code() != code {
					t.Errorf("%s of %.30s with %s: want %s, got %s", path, id, body, code, r)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d routes have a body and a name in their path", found)
	}
	for path, code := range map[string]string{
		"x/grabs?limit=0": "invalid_request", "x/grabs?cursor=x": "invalid_request", "x/grabs/%00": "invalid_request",
		anonymous + "/grabs/%00": "invalid_request", "x/grabs?limit=1": "packet_not_found", "x/grabs/u": "packet_not_found",
	} {
		if r := h.as(h.app, "GET", "/v1/packets/"+path, ""); r.code() != code {
			t.Errorf("%s: want %s, got %s", path, code, r)
		}
	}
}
