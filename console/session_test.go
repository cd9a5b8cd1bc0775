package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// TestHtmx: htmx.min.js is the version and hash named in htmx.md.
func TestHtmx(t *testing.T) {
	file, err := assetFiles.ReadFile("assets/htmx.min.js")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	const want = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("htmx.min.js has SHA-256 %s, want %s", got, want)
	}
	about, err := os.ReadFile("assets/htmx.md")
	if err != nil || !strings.Contains(string(about), want) || !strings.Contains(string(about), "2.0.11") ||
		!strings.Contains(string(file), `version:"2.0.11"`) {
		t.Errorf("assets/htmx.md has another version or hash: %v", err)
	}
}

// keys is a staff API with keys that answers no request.
type keys struct {
	roles map[string]access.Role // by key id, which is the token too
	books *signOuts
}

// signOuts are ended sessions, shared by the processes of a test.
type signOuts struct {
	ended map[string]time.Time
	away  bool
}

func (k keys) EndSignIn(_ context.Context, id []byte, _ string, until time.Time) error {
	if k.books.away {
		return errors.New("away")
	}
	k.books.ended[string(id)] = until
	return nil
}

func (k keys) SignInEnded(id []byte) bool {
	_, ok := k.books.ended[string(id)]
	return ok
}

func (k keys) SignIn(_ context.Context, token string) (string, bool, error) {
	role, ok := k.roles[token]
	return token, ok && role.Staff(), nil
}

func (k keys) KeyOwner(id string) (string, access.Role, bool) {
	role, ok := k.roles[id]
	return "owner of " + id, role, ok && role.Staff()
}

func (k keys) KeysLoaded() bool { return len(k.roles) > 0 }

func (keys) ActAs(string) http.RoundTripper { return unavailableAPI{} }

// unavailableAPI is an unavailable staff API.
type unavailableAPI struct{}

func (unavailableAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// visitor is an HTTP client that keeps cookies.
type visitor struct {
	t       *testing.T
	desk    *Console
	cookies map[string]string
	header  http.Header
	tls     bool
	address string
}

func newVisitor(t *testing.T, desk *Console) *visitor {
	return &visitor{t: t, desk: desk, cookies: map[string]string{}, header: http.Header{}, address: "192.0.2.1:1234"}
}

func newKeys(roles map[string]access.Role) keys {
	return keys{roles: roles, books: &signOuts{ended: map[string]time.Time{}}}
}

func newConsole(t *testing.T, roles map[string]access.Role) (*Console, *time.Time) {
	t.Helper()
	desk, err := New(Config{StaffAPI: newKeys(roles), SessionKeys: [][32]byte{{1}}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	desk.now = func() time.Time { return now }
	return desk, &now
}

func (v *visitor) do(method, path string, form url.Values) *http.Response {
	v.t.Helper()
	target := "http://desk.example" + path
	if v.tls {
		target = "https://desk.example" + path
	}
	r := httptest.NewRequestWithContext(v.t.Context(), method, target, strings.NewReader(form.Encode()))
	r.RemoteAddr = v.address
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range v.header {
		r.Header[name] = values
	}
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	v.desk.ServeHTTP(w, r)
	res := w.Result()
	for _, c := range res.Cookies() {
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	return res
}

func (v *visitor) signIn(token string) *http.Response {
	return v.do("POST", "/login", url.Values{"key": {token}, "next": {"/payouts"}})
}

// in reports whether the visitor has a session: only then is the unavailable API reported.
func (v *visitor) in() bool {
	return v.do("GET", "/payouts", nil).StatusCode == http.StatusServiceUnavailable
}

func TestSignIn(t *testing.T) {
	roles := map[string]access.Role{"f": access.RoleFinance, "app": access.RoleApp}
	desk, now := newConsole(t, roles)
	v := newVisitor(t, desk)
	if res := v.do("GET", "/payouts?status=failed", nil); res.StatusCode != http.StatusSeeOther ||
		res.Header.Get("Location") != "/login?next=%2Fpayouts%3Fstatus%3Dfailed" {
		t.Errorf("%d %s", res.StatusCode, res.Header.Get("Location"))
	}
	for _, token := range []string{"", "x", "app"} {
		if res := v.signIn(token); res.StatusCode != http.StatusUnauthorized || len(v.cookies) != 0 {
			t.Errorf("%q: %d, cookies %v", token, res.StatusCode, v.cookies)
		}
	}
	res := v.signIn(" f\n")
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/payouts" || !v.in() {
		t.Fatalf("%d %s", res.StatusCode, res.Header.Get("Location"))
	}
	if c := res.Cookies()[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" {
		t.Errorf("cookie %+v", c)
	}
	other, err := New(Config{StaffAPI: newKeys(roles), SessionKeys: [][32]byte{{1}}})
	if err != nil {
		t.Fatal(err)
	}
	other.now = desk.now
	if v.desk = other; !v.in() {
		t.Error("another process of the installation does not know the sign-in")
	}
	stranger, err := New(Config{StaffAPI: newKeys(roles), SessionKeys: [][32]byte{{2}}})
	if err != nil {
		t.Fatal(err)
	}
	stranger.now = desk.now
	if v.desk = stranger; v.in() {
		t.Error("another installation takes the cookie")
	}
	v.desk = desk
	good := v.cookies[sessionCookie]
	for i := range good {
		flipped := []byte(good)
		flipped[i] ^= 1
		if _, ok := desk.seal.decrypt(string(flipped)); ok {
			t.Fatalf("a cookie with another byte %d is taken", i)
		}
	}
	*now = now.Add(time.Minute)
	roles["f"] = ""
	if v.in() {
		t.Error("a revoked key is still signed in")
	}
	if _, kept := v.cookies[sessionCookie]; kept {
		t.Error("the cookie of a revoked key was kept")
	}
}

// TestKeysNotKnownYet: before keys are loaded, requests with a session get 503 and the session is
// kept.
func TestKeysNotKnownYet(t *testing.T) {
	roles := map[string]access.Role{"f": access.RoleFinance}
	desk, _ := newConsole(t, roles)
	v := newVisitor(t, desk)
	v.signIn("f")
	delete(roles, "f") // no key is left
	if res := v.do("GET", "/payouts", nil); res.StatusCode != http.StatusServiceUnavailable || v.cookies[sessionCookie] == "" {
		t.Errorf("%d, cookies %v", res.StatusCode, v.cookies)
	}
	roles["f"] = access.RoleFinance
	if !v.in() {
		t.Error("not signed in any more")
	}
}

func TestSignInSecureAndElsewhere(t *testing.T) {
	desk, _ := newConsole(t, map[string]access.Role{"f": access.RoleFinance})
	v := newVisitor(t, desk)
	v.tls = true
	if c := v.signIn("f").Cookies()[0]; !c.Secure {
		t.Errorf("cookie %+v", c)
	}
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil", "evil", "", "/\x00",
		"/payouts\x1b[2J",
		"/a\x7f", "/\u0085", "/\xff", "/\t/evil.example", "/\r\nSet-Cookie: a=b"} {
		res := v.do("POST", "/login", url.Values{"key": {"f"}, "next": {next}})
		if got := res.Header.Get("Location"); got != "/" {
			t.Errorf("%q leads to %q", next, got)
		}
		to := "/login?next=" + url.QueryEscape(next)
		want := "/"
		if !utf8.ValidString(next) {
			want = "" // 422: no page accepts such a value
		}
		if got := v.do("GET", to, nil).Header.Get("Location"); got != want {
			t.Errorf("%s leads to %q, want %q", to, got, want)
		}
		if got := v.do("POST", "/language", url.Values{"to": {"en"}, "back": {next}}).Header.Get("Location"); got != "/" {
			t.Errorf("another language, %q leads to %q", next, got)
		}
	}
	for proto, want := range map[string]bool{"https": true, "HTTPS": true, "https, http": true, "http": false, "http, https": false,
		"": false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Forwarded-Proto", proto)
		if got := cookie(r, "a", "b", 0).Secure; got != want {
			t.Errorf("behind a proxy with %q: %v", proto, got)
		}
	}
}

func TestTimeouts(t *testing.T) {
	desk, now := newConsole(t, map[string]access.Role{"f": access.RoleFinance})
	v := newVisitor(t, desk)
	v.signIn("f")
	*now = now.Add(DefaultIdle - time.Second)
	if !v.in() {
		t.Error("signed out before the idle time is over")
	}
	*now = now.Add(DefaultIdle - time.Second)
	if !v.in() {
		t.Error("activity did not restart the idle time")
	}
	v.header.Set("HX-Request", "true")
	for range 3 { // polling is not activity
		*now = now.Add(DefaultIdle / 2)
		v.in()
	}
	if v.header.Del("HX-Request"); v.in() {
		t.Error("still signed in after the idle time")
	}
	v.signIn("f")
	for began := *now; now.Sub(began) < DefaultAbsolute-DefaultIdle; *now = now.Add(DefaultIdle / 2) {
		if !v.in() {
			t.Fatalf("signed out after %v", now.Sub(began))
		}
	}
	for range 2 {
		v.in()
		*now = now.Add(DefaultIdle / 2)
	}
	if v.in() {
		t.Error("still signed in after the absolute time")
	}
}

// TestSignOut: signing out ends the session, not only the cookie of one browser.
func TestSignOut(t *testing.T) {
	desk, now := newConsole(t, map[string]access.Role{"f": access.RoleFinance})
	v := newVisitor(t, desk)
	v.signIn("f")
	if res := v.do("POST", "/logout", url.Values{"csrf": {"wrong"}}); res.StatusCode != http.StatusForbidden || !v.in() {
		t.Errorf("signed out by another user: %d", res.StatusCode)
	}
	s, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	copied := newVisitor(t, desk)
	copied.cookies[sessionCookie] = v.cookies[sessionCookie]
	*now = now.Add(time.Minute)
	if !copied.in() || copied.cookies[sessionCookie] == v.cookies[sessionCookie] {
		t.Fatal("the copy has no session, or its cookie was not renewed")
	}
	other := newVisitor(t, desk)
	other.signIn("f")
	if res := v.do("POST", "/logout", url.Values{"csrf": {s.CSRF}}); res.StatusCode != http.StatusSeeOther || v.in() {
		t.Errorf("not signed out: %d", res.StatusCode)
	}
	if copied.in() {
		t.Error("a copy of the cookie is still signed in")
	}
	if !other.in() {
		t.Error("another sign-in with the same key was ended too")
	}
	books := desk.api.(keys).books
	for _, until := range books.ended {
		if until.Before(time.Unix(s.Began, 0).Add(DefaultAbsolute)) {
			t.Errorf("remembered until %v: the cookie lives longer", until)
		}
	}
	if books.away = true; len(books.ended) != 1 {
		t.Errorf("ended: %v", books.ended)
	}
	o, _ := desk.seal.decrypt(other.cookies[sessionCookie])
	if res := other.do("POST", "/logout", url.Values{"csrf": {o.CSRF}}); res.StatusCode != http.StatusServiceUnavailable || other.in() {
		t.Errorf("a sign-out that could not be recorded is not reported: %d", res.StatusCode)
	}
}

// TestWritesShowTheirOrigin: every write needs the CSRF token of its session; a cross-site write
// is refused before that.
func TestWritesShowTheirOrigin(t *testing.T) {
	desk, _ := newConsole(t, map[string]access.Role{"f": access.RoleFinance, "g": access.RoleFinance})
	v, w := newVisitor(t, desk), newVisitor(t, desk)
	v.signIn("f")
	w.signIn("g")
	theirs, _ := desk.seal.decrypt(w.cookies[sessionCookie])
	mine, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	paths := []string{"/payouts/p1/retry", "/payouts/p1/cancel", "/payouts/p1/mark-paid", "/payouts/p1/ask", "/payouts/retry",
		"/refunds/r1/retry", "/refunds/r1/mark-paid", "/charges/c1/ask", "/charges/c1/hold",
		"/approvals/a1/approve", "/approvals/a1/reject", "/providers/sandbox/hold", "/providers/sandbox/release", "/breaks/b1/resolve",
		"/reconciliations", "/packets/p1/hold", "/payouts/p1/hold", "/refunds/r1/hold", "/holds/h1/release", "/holds/release",
		"/share-conflicts/decide", "/balances/p1/credit", "/balances/p1/debit"}
	for _, path := range paths {
		for _, token := range []string{"", "x", theirs.CSRF} {
			if res := v.do("POST", path, url.Values{"csrf": {token}, "reason": {"r"}}); res.StatusCode != http.StatusForbidden {
				t.Errorf("%s with the token %q: %d", path, token, res.StatusCode)
			}
		}
		if res := v.do("POST", path, url.Values{"csrf": {mine.CSRF}, "reason": {"r"}}); res.StatusCode == http.StatusForbidden {
			t.Errorf("%s with its token: %d", path, res.StatusCode)
		}
		v.header.Set("Sec-Fetch-Site", "cross-site")
		if res := v.do("POST", path, url.Values{"csrf": {mine.CSRF}, "reason": {"r"}}); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s from another site: %d", path, res.StatusCode)
		}
		v.header.Del("Sec-Fetch-Site")
	}
}

// TestBrokenFilterRetriesNothing: an unreadable filter must not select more payments than
// intended.
func TestBrokenFilterRetriesNothing(t *testing.T) {
	desk, _ := newConsole(t, map[string]access.Role{"f": access.RoleFinance})
	v := newVisitor(t, desk)
	v.signIn("f")
	s, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	for filter, want := range map[string]int{"status=failed&min=x": 422, "status=failed&max=1.234": 422, "status=failed&older=x": 422,
		"%zz": 422, "status=failed&min=1": 503} {
		form := url.Values{"csrf": {s.CSRF}, "key": {"k"}, "reason": {"r"}, "do": {"retry"}, "scope": {"all"}, "filter": {filter}}
		if res := v.do("POST", "/payouts/retry", form); res.StatusCode != want {
			t.Errorf("%s: %d, want %d", filter, res.StatusCode, want)
		}
	}
}

// TestFailedSignInsAreBounded: only failures are limited. A valid key is accepted after any
// number of failures, from its own address, which may be a shared proxy, and in all.
func TestFailedSignInsAreBounded(t *testing.T) {
	desk, now := newConsole(t, map[string]access.Role{"f": access.RoleFinance, "app": access.RoleApp})
	v := newVisitor(t, desk)
	fails := func(token string, want int) {
		t.Helper()
		res := v.signIn(token)
		if limited := res.Header.Get("Retry-After") != ""; res.StatusCode != want || limited != (want == http.StatusTooManyRequests) {
			t.Fatalf("%q from %s: %d, Retry-After %t; want %d", token, v.address, res.StatusCode, limited, want)
		}
	}
	succeeds := func() {
		t.Helper()
		if res := v.signIn("f"); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/payouts" || !v.in() {
			t.Fatalf("a right key from %s: %d", v.address, res.StatusCode)
		}
		v.cookies = map[string]string{}
	}
	for range failuresEach {
		fails("x", http.StatusUnauthorized)
	}
	for _, wrong := range []string{"x", "", "app"} {
		fails(wrong, http.StatusTooManyRequests)
	}
	succeeds()
	fails("x", http.StatusTooManyRequests) // a success does not reset failures
	for i := range failuresTogether - failuresEach {
		v.address = fmt.Sprintf("[2001:db8::%x]:1", i)
		fails("x", http.StatusUnauthorized)
	}
	v.address = "203.0.113.1:1"
	fails("x", http.StatusTooManyRequests)
	succeeds()
	*now = now.Add(failureSpan)
	fails("x", http.StatusUnauthorized)
}

var inlineCode = regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|\son[a-z]+=|\sstyle=|javascript:|<style`)

// TestPolicy: no page has inline code, and each page's policy forbids it.
func TestPolicy(t *testing.T) {
	desk, _ := newConsole(t, map[string]access.Role{"f": access.RoleFinance})
	v := newVisitor(t, desk)
	for _, path := range []string{"/login", "/payouts", "/nothing", "/assets/console.css"} {
		policy := v.do("GET", path, nil).Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %q", path, policy)
		}
	}
	names, err := templateFiles.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := templateFiles.ReadFile("templates/" + name.Name())
		if err != nil {
			t.Fatal(err)
		}
		if found := inlineCode.Find(text); found != nil {
			t.Errorf("%s has inline code: %s", name.Name(), found)
		}
	}
	if !inlineCode.MatchString(`<p onclick="x()">`) || !inlineCode.MatchString(`<script>x`) ||
		inlineCode.MatchString(`<script src="x" defer></script>`) {
		t.Error("the test does not know inline code")
	}
}

// fixedAPI is a staff API that gives one answer to every request.
type fixedAPI struct {
	keys
	status int
	body   string
}

func (a fixedAPI) ActAs(string) http.RoundTripper { return a }

func (a fixedAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// TestFileSaysWhyNot: a failed download shows the problem of the API.
func TestFileSaysWhyNot(t *testing.T) {
	for body, want := range map[string]string{
		`{"code":"unavailable","request_id":"req_1"}`: "Temporarily unavailable. No data is lost; try again. <small " +
			"class=\"mono\">Request req_1",
		`{"code":"forbidden"}`: "Your role does not allow this",
		`{"code":"invalid_request","errors":[{"field":"failure_code","code":"wrong_length","message":"m"}]}`: "The failure code has the wrong " +
			"length (m)",
		`bad gateway`: "Unexpected response from the platform",
	} {
		desk, err := New(Config{StaffAPI: fixedAPI{newKeys(map[string]access.Role{"f": access.RoleFinance}), http.StatusServiceUnavailable, body},
			SessionKeys: [][32]byte{{1}}})
		if err != nil {
			t.Fatal(err)
		}
		v := newVisitor(t, desk)
		v.signIn("f")
		for _, path := range []string{"/payouts/export.csv?status=failed", "/refunds/export.csv?late=true", "/charges/export.csv", "/packets/export.csv",
			"/audit/export.csv?action=retry", "/breaks/export.csv", "/closes/2026-02-17/export.csv",
			"/balances/p1/export.csv"} {
			res := v.do("GET", path, nil)
			page, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(page), want) ||
				strings.Contains(string(page), "The input is not valid") != strings.Contains(body, "invalid") {
				t.Errorf("%s of %s: %d\n%s", path, body, res.StatusCode, page)
			}
		}
	}
}

// TestCancellable: a cancellation is offered exactly for the payments that the platform permits.
func TestCancellable(t *testing.T) {
	for kind, kinds := range map[string][]payout.Kind{"payout": {payout.KindPayout, payout.KindHonour}, "refund": {payout.KindRefund}} {
		for _, status := range payout.Statuses {
			for _, k := range kinds {
				p, attempts := payout.Payment{Kind: k, Status: status}, []payout.Attempt{{Forgotten: true}}
				want := payout.CheckDecision(p, attempts, payout.DecisionCancel, time.Now()) == nil
				if got := (payment{Kind: kind, Status: wire.PayoutStatus(status)}).Cancellable(); got != want {
					t.Errorf("%v in %s: %v, want %v", k, status, got, want)
				}
			}
		}
	}
}

func TestYuan(t *testing.T) {
	for fen, want := range map[int64]string{0: "¥0.00", 1: "¥0.01", 100: "¥1.00", 99_999: "¥999.99", 100_000: "¥1,000.00",
		123_456_789: "¥1,234,567.89", 1<<53 - 1: "¥90,071,992,547,409.91", -5: "−¥0.05",
		2 * (1<<53 - 1): "¥180,143,985,094,819.82", 1<<63 - 1: "¥92,233,720,368,547,758.07+"} {
		if got := yuan(money.Fen(fen)); got != want {
			t.Errorf("%d: %s, want %s", fen, got, want)
		}
	}
	for text, want := range map[string]money.Fen{"": 0, "12": 1200, "12.3": 1230, "12.34": 1234, "¥1,000.01": 100001, "1,234,567.8": 123456780,
		"1234567": 123456700, "0.01": 1} {
		if got, ok := parseYuan(text); !ok || got != want {
			t.Errorf("%q: %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"x", "-1", "1.234", ".", "1.", "1e3", "99999999999999999999", "1,50", "1,5000", ",100", "1.2,3", "1,,000"} {
		if got, ok := parseYuan(text); ok && text != "1." {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// TestSessionKeyRotation: sessions of the old key are valid while it is configured and end
// afterwards; the new key encrypts from the start.
func TestSessionKeyRotation(t *testing.T) {
	before, after := [32]byte{1}, [32]byte{2}
	desk := func(keys ...[32]byte) *Console {
		t.Helper()
		d, err := New(Config{StaffAPI: newKeys(map[string]access.Role{"f": access.RoleFinance}), SessionKeys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	v := newVisitor(t, desk(before))
	v.signIn("f")
	old := v.cookies[sessionCookie]
	if v.desk = desk(after, before); !v.in() {
		t.Error("new,old: a sign-in of the old key is signed out")
	}
	if v.desk = desk(after); v.in() {
		t.Error("new: a sign-in of the removed key is read")
	}
	v.desk = desk(after, before)
	v.cookies[sessionCookie] = old
	v.signIn("f")
	if v.desk = desk(after); !v.in() {
		t.Error("new,old: the new key does not seal")
	}
	if _, err := New(Config{StaffAPI: newKeys(nil)}); err == nil {
		t.Error("a console without a session key")
	}
}
