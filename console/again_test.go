package console

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hongbao/access"
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
			if err != nil || res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(page), "line &lt;one&gt;\nline two") || strings.Contains(string(page), "\r") {
				t.Errorf("%s from %q: %d\n%s", path, back, res.StatusCode, page)
			}
		}
	}
}
