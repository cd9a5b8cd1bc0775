package console

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/wire"
)

// TestBreakOutcome: the form of a break about an order number submits what became of its money as a
// decision. A refusal keeps the input; a break without an order number has no such form. Only money that
// moved twice can be written off.
func TestBreakOutcome(t *testing.T) {
	order, sent, refuse := "p3q5k9v0c1m7e2u8h4r6t000301", "", false
	desk, err := New(Config{SessionKeys: [][32]byte{{1}}, StaffAPI: funcAPI{newKeys(map[string]access.Role{"f": access.RoleFinance}),
		func(r *http.Request) any {
			switch {
			case r.Method == http.MethodPost && refuse:
				return &client.Problem{Problem: wire.Problem{Status: http.StatusConflict, Code: wire.CodeNotRetryable}}
			case r.Method == http.MethodPost:
				body, _ := io.ReadAll(r.Body)
				sent = r.URL.Path + " " + string(body)
				return wire.DecidedBreak{Decision: wire.Decision{Kind: "not_moved", Status: "waiting"}}
			case r.URL.Path == "/v1/staff/breaks":
				return wire.List[wire.Break]{Items: []wire.Break{{ID: "b1", Kind: "forgotten", OrderNo: &order}, {ID: "b2", Kind: "pool_lost"},
					{ID: "b3", Kind: "second_success", OrderNo: &order}}}
			}
			return nil
		}}})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, desk)
	v.signIn("f")
	text := func(res *http.Response) string {
		t.Helper()
		page, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(page)
	}
	shown := text(v.do("GET", "/breaks", nil))
	if strings.Count(shown, `name="outcome"`) != 2 || strings.Count(shown, `<option value="written_off">`) != 1 ||
		!strings.Contains(shown, `<option value="not_moved">`) {
		t.Errorf("%s", shown)
	}
	s, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	form := url.Values{"csrf": {s.CSRF}, "key": {"k"}, "who": {"owner of f"}, "reason": {"ticket 4711"}, "back": {"/breaks?resolved=false"},
		"outcome": {"not_moved"}, "evidence": {"letter of the provider"}}
	res := v.do("POST", "/breaks/b1/resolve", form)
	if at := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || !strings.HasSuffix(at, "done=not_moved_waiting") {
		t.Errorf("%d %s", res.StatusCode, at)
	}
	for _, part := range []string{"/v1/staff/breaks/b1/resolve", `"outcome":"not_moved"`, `"evidence":"letter of the provider"`, "ticket 4711"} {
		if !strings.Contains(sent, part) {
			t.Errorf("sent %s, without %s", sent, part)
		}
	}
	refuse = true
	res = v.do("POST", "/breaks/b1/resolve", form)
	page := text(res)
	for _, part := range []string{`<option value="not_moved" selected>`, "letter of the provider", "ticket 4711"} {
		if !strings.Contains(page, part) {
			t.Errorf("%d, without %s: %s", res.StatusCode, part, page)
		}
	}
}
