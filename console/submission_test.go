package console

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/wire"
)

// TestNothingTypedIsLost: while the API is unavailable, the error page keeps the input of every
// form.
func TestNothingTypedIsLost(t *testing.T) {
	desk, _ := newConsole(t, map[string]access.Role{"f": access.RoleFinance})
	v := newVisitor(t, desk)
	v.signIn("f")
	s, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	for _, path := range []string{"/payouts/p1/retry", "/payouts/p1/mark-paid", "/payouts/retry", "/refunds/r1/retry", "/approvals/a1/approve",
		"/approvals/a1/reject",
		"/providers/sandbox/hold", "/providers/sandbox/release", "/breaks/b1/resolve", "/reconciliations", "/holds/release",
		"/share-conflicts/decide", "/balances/p1/credit"} {
		for _, back := range []string{"", "/breaks?resolved=true", "/nothing", "//elsewhere.example", "/live", "%zz",
			"/payouts/p1?done=retry_open"} {
			form := url.Values{"csrf": {s.CSRF}, "key": {"k"}, "back": {back}, "do": {"retry"}, "id": {"p1"}, "reason": {"line <one>\r\nline two"},
				"evidence": {"slip 4711"}}
			res := v.do("POST", path, form)
			page, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(page), "line &lt;one&gt;\nline two") ||
				!strings.Contains(string(page), `name="key" value="k"`) || strings.Contains(string(page), "\r") {
				t.Errorf("%s from %q: %d\n%s", path, back, res.StatusCode, page)
			}
		}
	}
}

// TestKeyIsKept: a form gets a new Idempotency-Key only after the API has stored a response under
// the old one; an earlier submission may have been carried out.
func TestKeyIsKept(t *testing.T) {
	for _, one := range []struct {
		status      int
		code        wire.Code
		kept, doubt bool
	}{
		{400, wire.CodeMalformedJSON, true, false},
		{400, wire.CodeKeyRequired, false, false},
		{402, wire.CodeFundingDeclined, false, false},
		{403, wire.CodeForbidden, true, false},
		{404, wire.CodePayoutNotFound, true, false},
		{409, wire.CodeRequestInProgress, true, true},
		{409, wire.CodeNotRetryable, false, false},
		{409, wire.CodeDecisionPending, false, false},
		{409, wire.CodeNotOpenYet, false, false},
		{422, wire.CodeInvalidRequest, true, false},
		{422, wire.CodeKeyReused, false, false},
		{429, wire.CodeRateLimited, true, false},
		{500, wire.CodeInternal, true, true},
		{503, wire.CodeUnavailable, true, true},
		{502, "", true, true},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payouts/p1/ask", strings.NewReader("key=console-1&reason=why"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if err := r.ParseForm(); err != nil {
			t.Fatal(err)
		}
		a := (&visit{r: r}).failedSubmission(&client.Problem{Problem: wire.Problem{Status: one.status, Code: one.code}})
		key := page{Submission: a}.Write(page{Submission: a}.SubmissionFor("/payouts/p1/ask")).Key
		if (key == "console-1") != one.kept || key == "" || a.OutcomeUnknown != one.doubt || a.Offered() != one.doubt {
			t.Errorf("%d %s: the key is %q, %+v", one.status, one.code, key, a)
		}
	}
}

// TestSentWhileSignedOut: a form submitted after the session has ended reaches no API. Its owner
// gets it back after signing in; another person does not.
func TestSentWhileSignedOut(t *testing.T) {
	roles := map[string]access.Role{"f": access.RoleFinance, "g": access.RoleFinance}
	api := &writeCounter{keys: newKeys(roles)}
	desk, err := New(Config{StaffAPI: api, SessionKeys: [][32]byte{{1}}})
	if err != nil {
		t.Fatal(err)
	}
	hidden := regexp.MustCompile(`<input type="hidden" name="(next|sent_to|sent)" value="([^"]*)">`)
	read := func(res *http.Response) string {
		t.Helper()
		page, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(page)
	}
	for path, place := range map[string]string{"/payouts/p1/retry": "/payouts/p1", "/payouts/p1/mark-paid": "/payouts/p1",
		"/payouts/retry": "/payouts?cursor=c1&status=failed", "/refunds/r1/retry": "/refunds/r1",
		"/approvals/a1/approve": "/breaks?resolved=true", "/providers/sandbox/hold": "/", "/breaks/b1/resolve": "/breaks?resolved=true",
		"/reconciliations": "/reconciliations", "/packets/k1/recall": "/packets/k1", "/charges/c1/ask": "/charges/c1"} {
		in, stale := http.StatusServiceUnavailable, http.StatusServiceUnavailable // only the first page needs no API
		if place == "/" {
			in, stale = http.StatusOK, http.StatusForbidden
		}
		form := url.Values{"csrf": {"old token"}, "key": {"k"}, "who": {"owner of f"}, "back": {"/breaks?resolved=true"}, "do": {"retry"},
			"id": {"p1"}, "filter": {"status=failed"}, "cursor": {"c1"},
			"reason": {"line <one>\r\nline two"}, "evidence": {"slip 4711"}}
		v := newVisitor(t, desk)
		res := v.do("POST", path, form)
		login := read(res)
		if res.StatusCode != http.StatusUnauthorized || strings.Contains(login, "old+token") {
			t.Errorf("%s: %d\n%s", path, res.StatusCode, login)
		}
		carried := func(page, key string) url.Values {
			out := url.Values{"key": {key}}
			for _, m := range hidden.FindAllStringSubmatch(page, -1) {
				out.Set(m[1], html.UnescapeString(m[2]))
			}
			return out
		}
		again := v.do("POST", "/login", carried(login, "wrong"))
		if login = read(again); again.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s, the wrong key: %d", path, again.StatusCode)
		}
		other := newVisitor(t, desk)
		if res := other.do("POST", "/login", carried(login, "g")); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != place ||
			strings.Contains(read(res), "line two") {
			t.Errorf("%s, shown to another person: %d %s", path, res.StatusCode, res.Header.Get("Location"))
		}
		res = v.do("POST", "/login", carried(login, "f"))
		page := read(res)
		if res.StatusCode != in || !strings.Contains(page, "line &lt;one&gt;\nline two") || !strings.Contains(page, `name="key" value="k"`) ||
			!strings.Contains(page, `action="`+path+`"`) {
			t.Errorf("%s, signed in: %d\n%s", path, res.StatusCode, page)
		}
		// Signed in again elsewhere: the earlier form is shown under the new session.
		res = v.do("POST", path, form)
		if page := read(res); !strings.Contains(page, "line &lt;one&gt;\nline two") || res.StatusCode != stale {
			t.Errorf("%s, a form of the sign-in before: %d\n%s", path, res.StatusCode, page)
		}
		form.Set("who", "owner of g")
		if res := v.do("POST", path, form); res.StatusCode != http.StatusForbidden || strings.Contains(read(res), "line two") {
			t.Errorf("%s, a form of another person: %d", path, res.StatusCode)
		}
	}
	if n := api.writes.Load(); n > 0 {
		t.Errorf("%d writes have reached the API", n)
	}
	v := newVisitor(t, desk)
	for _, form := range []url.Values{{"who": {"owner of f"}, "reason": {strings.Repeat("x", maxSavedForm)}}, {"reason": {"r"}}} {
		if res := v.do("POST", "/payouts/p1/ask", form); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/login" {
			t.Errorf("too large, or of nobody: %d", res.StatusCode)
		}
	}
	for _, to := range []string{"//elsewhere.example", "/logout", "https://elsewhere.example/payouts/p1/ask", "/payouts/p1", ""} {
		res := v.do("POST", "/login", url.Values{"key": {"f"}, "sent_to": {to}, "sent": {"who=owner+of+f&reason=r&back=//elsewhere.example"}})
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" {
			t.Errorf("%q: %d %s", to, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

// writeCounter is an unavailable staff API that counts writes.
type writeCounter struct {
	keys
	writes atomic.Int32
}

func (c *writeCounter) ActAs(string) http.RoundTripper { return c }

func (c *writeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.writes.Add(1)
	}
	return unavailableAPI{}.RoundTrip(r)
}

// TestAskedWhileSignedOut: a polling page is redirected to the login page and back.
func TestAskedWhileSignedOut(t *testing.T) {
	desk, _ := newConsole(t, map[string]access.Role{"f": access.RoleFinance})
	v := newVisitor(t, desk)
	v.header.Set("HX-Request", "true")
	for at, want := range map[string]string{"": "/login", "http://desk.example/": "/login",
		"http://desk.example/payouts/p1?done=retry_open": "/login?next=%2Fpayouts%2Fp1",
		"http://desk.example/payouts/p1/ask":             "/login?next=%2Fpayouts%2Fp1",
		"http://desk.example/payouts?status=failed":      "/login?next=%2Fpayouts%3Fstatus%3Dfailed",
		"http://desk.example/payouts/progress":           "/login?next=%2Fpayouts%3Fstatus%3Dfailed",
		"http://desk.example/refunds/progress":           "/login?next=%2Frefunds%3Fstatus%3Dfailed",
		"http://desk.example/refunds/retry":              "/login?next=%2Frefunds%3F", "https://elsewhere.example//evil.example": "/login",
		"%zz": "/login"} {
		v.header.Set("HX-Current-URL", at)
		res := v.do("GET", "/payouts/p1", nil)
		if got := res.Header.Get("HX-Redirect"); res.StatusCode != http.StatusUnauthorized || got != want {
			t.Errorf("at %q: %d, led to %q, want %q", at, res.StatusCode, got, want)
		}
	}
}
