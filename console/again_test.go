package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"hongbao/access"
	"hongbao/client"
)

// TestNothingTypedIsLost: while the platform cannot answer, what somebody has put in
// stands on the page that says so, whichever form it was.
func TestNothingTypedIsLost(t *testing.T) {
	desk, _ := newDesk(t, map[string]access.Role{"f": access.RoleFinance})
	v := newVisitor(t, desk)
	v.signIn("f")
	s, _ := desk.seal.open(v.cookies[sessionCookie])
	for _, path := range []string{"/payouts/p1/retry", "/payouts/p1/mark-paid", "/payouts/retry", "/refunds/r1/retry", "/approvals/a1/approve", "/approvals/a1/reject",
		"/providers/sandbox/hold", "/providers/sandbox/release", "/breaks/b1/resolve", "/reconciliations"} {
		for _, back := range []string{"", "/breaks?resolved=true", "/nothing", "//elsewhere.example", "/live", "%zz", "/payouts/p1?done=retry_open"} {
			form := url.Values{"csrf": {s.CSRF}, "key": {"k"}, "back": {back}, "do": {"retry"}, "id": {"p1"}, "reason": {"line <one>\r\nline two"}, "evidence": {"slip 4711"}}
			res := v.do("POST", path, form)
			page, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(page), "line &lt;one&gt;\nline two") || !strings.Contains(string(page), `name="key" value="k"`) || strings.Contains(string(page), "\r") {
				t.Errorf("%s from %q: %d\n%s", path, back, res.StatusCode, page)
			}
		}
	}
}

// TestKeyIsKept: a form gets another key once the API has an answer under the one it
// came with, and no sooner: an earlier try under it may have been carried out.
func TestKeyIsKept(t *testing.T) {
	for _, one := range []struct {
		status      int
		code        client.Code
		kept, doubt bool
	}{
		{400, client.CodeMalformedJSON, true, false},
		{400, client.CodeKeyRequired, false, false},
		{402, client.CodeFundingDeclined, false, false},
		{403, client.CodeForbidden, true, false},
		{404, client.CodePayoutNotFound, true, false},
		{409, client.CodeRequestInProgress, true, true},
		{409, client.CodeNotRetryable, false, false},
		{409, client.CodeDecisionPending, false, false},
		{409, client.CodeNotOpenYet, false, false},
		{422, client.CodeInvalidRequest, true, false},
		{422, client.CodeKeyReused, false, false},
		{429, client.CodeRateLimited, true, false},
		{500, client.CodeInternal, true, true},
		{503, client.CodeUnavailable, true, true},
		{502, "", true, true},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payouts/p1/ask", strings.NewReader("key=console-1&reason=why"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if err := r.ParseForm(); err != nil {
			t.Fatal(err)
		}
		a := (&visit{r: r}).attempted(&client.Problem{Status: one.status, Code: one.code})
		key := page{Sent: a}.Write(page{Sent: a}.Typed("/payouts/p1/ask")).Key
		if (key == "console-1") != one.kept || key == "" || a.Doubt != one.doubt || a.Offered() != one.doubt {
			t.Errorf("%d %s: the key is %q, %+v", one.status, one.code, key, a)
		}
	}
}
