package browser

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/access"
	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
)

// What people who mean harm, or who like long names, call themselves.
const (
	hostileUser     = `<script>alert("user")</script>"'&~frozen`
	hostileNickname = `"><img src=x onerror=alert("nickname")>很长的名字很长的名字很长的名字`
	hostileGreeting = `<svg onload=alert("greeting")>恭喜`
	hostileReason   = `</textarea><script>alert("reason")</script> javascript:alert(1)`
	hostileSender   = `<b onmouseover=alert("sender")>s</b>`
	hostileAccount  = `"><script>alert("account")</script>`
)

// place is a page of the desk with something on it.
type place struct {
	path   string
	status int64       // 0: it is there
	who    access.Role // who alone may read it; "": all who are signed in
}

// nobody is who is not signed in.
const nobody access.Role = "nobody"

// site is a desk with everything on it that a page can show.
type site struct {
	*house
	id, closed string // packets, the second one closed
	bad, long  string // payouts that failed; a second person is asked to cancel the second one
	run        string // a reconciliation that has found a break
	daily      string // a campaign
}

func newSite(t *testing.T) *site {
	t.Helper()
	h := newHouse(t, nil)
	s := &site{house: h}
	s.id = h.open(map[string]any{"sender_id": hostileSender, "total_amount": 9007199254740991, "share_count": 3, "split": "equal", "min_share": 1, "greeting": hostileGreeting})
	s.bad = h.grab(s.id, hostileUser, hostileNickname)
	s.long = h.grab(s.id, strings.Repeat("x", 57)+"~frozen", strings.Repeat("n", 60))
	h.decide(h.finance, s.long, "cancel", hostileReason)
	s.closed = h.open(map[string]any{"sender_id": "sender", "total_amount": 888, "share_count": 2, "greeting": "恭喜发财"})
	h.grab(s.closed, "alice", "Alice")
	h.finish(s.closed)
	s.run = h.compare(hostileReason, hostileAccount)
	s.daily = h.campaign()
	return s
}

// places lists a page of each kind: a new page joins the checks of all pages here.
func (s *site) places() []place {
	return []place{
		{path: "/"},
		{path: "/payouts?status=failed"},
		{path: "/payouts?status="},
		{path: "/payouts?status=paid&code=x&min=x", status: http.StatusUnprocessableEntity},
		{path: "/payouts/" + s.bad},
		{path: "/payouts/" + s.long},
		{path: "/refunds?status=paid"},
		{path: "/refunds/" + payout.ID(payout.KindRefund, s.closed, 0)},
		{path: "/approvals"},
		{path: "/approvals?status=waiting"},
		{path: "/approvals?status="},
		{path: "/packets"},
		{path: "/packets/" + s.id},
		{path: "/packets/" + s.closed},
		{path: "/campaigns"},
		{path: "/campaigns/" + s.daily},
		{path: "/search?q=" + url.QueryEscape(hostileUser)},
		{path: "/search?q="},
		{path: "/breaks"},
		{path: "/closes"},
		{path: "/closes/" + string(payout.DayOf(time.Now(), time.UTC))},
		{path: "/reconciliations"},
		{path: "/reconciliations/" + s.run},
		{path: "/audit", who: access.RoleAuditor},
		{path: "/audit/verify", who: access.RoleAuditor},
		{path: "/login?next=%2F", who: nobody},
		{path: "/payouts/nothing", status: http.StatusNotFound},
	}
}

// faults are what makes a page hard to use, found by looking at all of it.
const faults = `(() => {
  const out = [], seen = new Set();
  for (const el of document.querySelectorAll('input:not([type=hidden]), select, textarea'))
    if (!(el.labels && el.labels.length) && !el.getAttribute('aria-label')) out.push('no label: ' + el.outerHTML.slice(0, 90));
  const boxes = new Set(); // a page has many boxes for a reason: which one, its form says
  for (const el of document.querySelectorAll('textarea')) {
    const by = el.form && (el.form.getAttribute('aria-label') || (document.getElementById(el.form.getAttribute('aria-labelledby')) || {}).textContent) || '';
    const name = by + ' / ' + (el.labels.length ? el.labels[0].firstChild.textContent : '');
    if (boxes.has(name)) out.push('two boxes of one name: ' + name);
    boxes.add(name);
  }
  for (const el of document.querySelectorAll('[id]')) { if (seen.has(el.id)) out.push('id twice: ' + el.id); seen.add(el.id); }
  for (const el of document.querySelectorAll('a, button, summary')) if (!el.textContent.trim() && !el.getAttribute('aria-label')) out.push('says nothing: ' + el.outerHTML.slice(0, 90));
  for (const el of document.querySelectorAll('[aria-labelledby], [aria-describedby]'))
    for (const id of (el.getAttribute('aria-labelledby') || el.getAttribute('aria-describedby')).split(' ')) if (!document.getElementById(id)) out.push('names nothing: ' + id);
  if (document.querySelectorAll('h1').length !== 1) out.push('not one h1');
  if (document.querySelectorAll('main').length !== 1) out.push('not one main');
  for (const th of document.querySelectorAll('th')) if (!th.getAttribute('scope')) out.push('th without scope');
  const parse = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const ground = (el) => { for (; el; el = el.parentElement) { const c = parse(getComputedStyle(el).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
  for (const el of document.body.querySelectorAll('*')) {
    if (![...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !el.checkVisibility()) continue;
    const a = light(parse(getComputedStyle(el).color)), b = light(ground(el));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) out.push('contrast ' + ratio.toFixed(2) + ': ' + el.tagName + '.' + el.className + ' ' + el.textContent.trim().slice(0, 30));
  }
  return out;
})()`

// tabs are one of each role, signed in, and one of nobody.
func (s *site) tabs(language string) map[access.Role]*tab {
	s.t.Helper()
	out := map[access.Role]*tab{nobody: s.newTab(language)}
	for _, p := range []person{s.finance, s.ops, s.auditor} {
		out[p.key.Role] = s.newTab(language)
		out[p.key.Role].signIn(p)
	}
	return out
}

// TestEveryPage goes through all pages in both languages, on a laptop and on a
// phone, by day and by night, full of what people who mean harm have put in. None
// runs it, none is wider than its window, none is hard to read or to use. Any two of
// language, width and colours are seen together. Each role reads what is its own to
// read, and is offered what is its own to do.
func TestEveryPage(t *testing.T) {
	s := newSite(t)
	t.Run("Looks", func(t *testing.T) { s.in(t).looksAtAll(t) })
	t.Run("Roles", func(t *testing.T) { s.in(t).entersAll(t) })
	t.Run("AsItIs", func(t *testing.T) { s.in(t).readsHarm(t) })
	t.Run("NoneForgotten", func(t *testing.T) { s.in(t).missesNone(t) })
}

// in is the site as a part of the test sees it.
func (s site) in(t *testing.T) *site {
	h := *s.house
	h.t = t
	s.house = &h
	return &s
}

func (s *site) looksAtAll(t *testing.T) {
	for _, language := range []string{"en", "zh-CN"} {
		tabs := s.tabs(language)
		for i, p := range s.places() {
			b := tabs[cmp.Or(p.who, access.RoleFinance)]
			b.desk()
			if status := b.open(p.path); status != cmp.Or(p.status, http.StatusOK) {
				t.Errorf("%s: %d", p.path, status)
			}
			if lang := eval[string](b, "document.documentElement.lang"); lang != language {
				t.Errorf("%s: in %s, not %s", p.path, lang, language)
			}
			eval[int](b, `document.querySelectorAll("details").forEach((d) => { d.open = true; }), 0`)
			b.lacks("main img", "main svg:not(.chart, .whole-bar)", "main script", "main b", "[onmouseover]", "[onload]", "[onerror]")
			for n, look := range looks[language] {
				b.put(look)
				b.fits()
				found := eval[[]string](b, faults)
				if language == "en" || n == 0 { // colours and width are those of both; it takes most of the time
					found = append(found, b.axe()...)
				}
				for _, fault := range found {
					t.Errorf("%s in %s, %s: %s", p.path, language, look.name, fault)
				}
				b.picture(fmt.Sprintf("page-%02d-%s-%s", i+1, language, look.name))
			}
		}
	}
}

// readsHarm: what people who mean harm put in is shown byte by byte, wherever it is shown.
func (s *site) readsHarm(t *testing.T) {
	b := s.newTab("en")
	b.signIn(s.finance)
	for _, one := range []struct{ path, selector, want string }{
		{"/payouts/" + s.bad, "#facts", hostileUser},
		{"/payouts?status=failed", "tbody", hostileUser},
		{"/payouts/" + s.bad, "pre.request", hostileUser[len("<script>"):len("<script>alert(")]},
		{"/payouts/" + s.long, "blockquote", hostileReason},
		{"/payouts/" + s.long, ".timeline", hostileReason},
		{"/approvals?status=waiting", ".waits", hostileReason},
		{"/packets/" + s.id, "main", hostileUser},
		{"/packets/" + s.id, "main", hostileNickname},
		{"/packets/" + s.id, "main", hostileGreeting},
		{"/packets/" + s.id, "main", hostileSender},
		{"/packets/" + s.id, "main", "¥90,071,992,547,409.91"},
		{"/packets", "tbody", hostileGreeting},
		{"/search?q=" + url.QueryEscape(hostileSender), "main", hostileSender},
		{"/breaks", "main", "<script>alert"},
		{"/reconciliations/" + s.run, "#run", hostileReason},
	} {
		b.open(one.path)
		eval[int](b, `document.querySelectorAll("details").forEach((d) => { d.open = true; }), 0`)
		if text := eval[string](b, `document.querySelector("`+one.selector+`").textContent`); !strings.Contains(text, one.want) {
			t.Errorf("%s of %s does not show %q:\n%s", one.selector, one.path, one.want, text)
		}
	}
	b.open("/search?q=" + url.QueryEscape(hostileUser))
	if got := eval[string](b, `document.querySelector("#q").value`); got != hostileUser {
		t.Errorf("the search box says %q", got)
	}
	b.open("/payouts?status=failed&user=" + url.QueryEscape(hostileUser))
	if got := eval[string](b, `document.querySelector("input[name=user]").value`); got != hostileUser {
		t.Errorf("the filter says %q", got)
	}
	b.open("/payouts?status=failed&code=" + url.QueryEscape(hostileReason) + "&min=" + url.QueryEscape(hostileReason))
	if got := eval[string](b, `document.querySelector("input[name=code]").value`); got != hostileReason {
		t.Errorf("the filter says %q", got)
	}
	auditor := s.newTab("en")
	auditor.signIn(s.auditor)
	auditor.open("/audit")
	auditor.has("tbody", hostileReason)
}

// entersAll: every page for every role, and for nobody: there, refused, or the login.
func (s *site) entersAll(t *testing.T) {
	for _, who := range []person{{}, s.finance, s.ops, s.auditor} {
		role, get := who.key.Role, s.reader(who)
		for _, p := range s.places() {
			status, at, main := get(p.path)
			want := int(cmp.Or(p.status, http.StatusOK))
			switch {
			case p.who == nobody:
				continue
			case role == "":
				if status != http.StatusOK || at.Path != "/login" || strings.Contains(main, "¥") {
					t.Errorf("%s leads nobody to %s: %d", p.path, at, status)
				}
				continue
			case p.who != "" && p.who != role:
				want = http.StatusForbidden
			}
			if status != want || at.Path == "/login" {
				t.Errorf("%s for %s: %d at %s, want %d", p.path, role, status, at, want)
			}
			// Who only reads is offered nothing to send, but operations the pause switch, the recall of a packet and the stop of a campaign.
			for _, form := range sentForms.FindAllStringSubmatch(main, -1) {
				if role != access.RoleFinance && strings.Contains(form[2], "<button") && (role != access.RoleOps || !strings.HasPrefix(form[1], "/providers/") && !strings.HasPrefix(form[1], "/campaigns/") && !strings.HasSuffix(form[1], "/recall")) {
					t.Errorf("%s offers %s to %s", p.path, form[1], role)
				}
			}
			if strings.Contains(p.path, s.bad) && sentForms.MatchString(main) != (role == access.RoleFinance) {
				t.Errorf("%s: forms for %s: %v", p.path, role, sentForms.MatchString(main))
			}
		}
		if role == "" {
			continue
		}
		_, _, whole := get("/")
		links := regexp.MustCompile(`(?s)<nav class="nav".*?</nav>`).FindString(whole)
		for _, to := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(links, -1) {
			if status, _, page := get(html.UnescapeString(to[1])); status != http.StatusOK || !strings.Contains(page, `href="`+to[1]+`" aria-current="page"`) {
				t.Errorf("the navigation leads %s to %s: %d, or does not say so", role, to[1], status)
			}
		}
		if strings.Contains(links, `"/audit"`) != (role == access.RoleAuditor) || !strings.Contains(links, `"/payouts?status=failed"`) {
			t.Errorf("the navigation of %s: %s", role, links)
		}
	}
}

// sentForms finds what a page offers to send in its main part.
var sentForms = regexp.MustCompile(`(?s)<form[^>]*method="post" action="([^"]*)"(.*?)</form>`)

// reader signs somebody in, and returns how he reads pages without a browser: the
// status, where he was led, and the page from its navigation on.
func (h *house) reader(who person) func(path string) (int, *url.URL, string) {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	h.must(err)
	visitor := &http.Client{Jar: jar}
	if who.token != "" {
		res, err := visitor.PostForm(h.staff+"/login", url.Values{"key": {who.token}})
		h.must(err)
		_ = res.Body.Close()
		if res.Request.URL.Path != "/" {
			h.t.Fatalf("%s is not signed in, but at %s", who.key.Role, res.Request.URL)
		}
	}
	return func(path string) (int, *url.URL, string) {
		h.t.Helper()
		res, err := visitor.Get(h.staff + path)
		h.must(err)
		raw, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		h.must(err)
		_, page, _ := strings.Cut(string(raw), `id="logout"`)
		return res.StatusCode, res.Request.URL, page
	}
}

// notPages are routes that a GET reads and that are no page.
var notPages = []string{"GET /assets/{name}", "GET /live", "GET /payouts/export.csv", "GET /refunds/export.csv", "GET /packets/export.csv", "GET /audit/export.csv", "GET /breaks/export.csv", "GET /approvals/export.csv", "GET /closes/{date}/export.csv"}

// missesNone: the places lead to every route of the console.
func (s *site) missesNone(t *testing.T) {
	source, err := os.ReadFile("../console.go")
	s.must(err)
	routes := regexp.MustCompile(`"(GET /[^"]*)"`).FindAllStringSubmatch(string(source), -1)
	if len(routes) < 15 {
		t.Fatalf("only %d routes were found in console.go", len(routes))
	}
	mux, missed := http.NewServeMux(), map[string]bool{}
	for _, r := range routes {
		mux.HandleFunc(r[1], func(http.ResponseWriter, *http.Request) {})
		missed[r[1]] = !slices.Contains(notPages, r[1])
	}
	for _, p := range s.places() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.path, nil)
		s.must(err)
		_, pattern := mux.Handler(req)
		missed[pattern] = false
	}
	for pattern, is := range missed {
		if is {
			t.Errorf("no place leads to %s", pattern)
		}
	}
}

// decide makes a decision by the API, as somebody else would.
func (h *house) decide(who person, payoutID, action, reason string) {
	h.t.Helper()
	w := payout.StaffWrite{Owner: who.key.Owner, Role: string(who.key.Role), Route: "POST /test/" + payoutID, Key: action, BodyHash: "h", Reason: reason}
	_, err := h.store.Decide(h.t.Context(), w, payoutID, payout.Command{Kind: payout.DecisionKind(action), ApproveFrom: 100_000},
		func(*payout.Decision, payout.Row, error) (int, []byte) { return http.StatusAccepted, []byte("{}") })
	h.must(err)
}

// compare reconciles today with a statement that has a line too many, as a worker would.
func (h *house) compare(reason, account string) (runID string) {
	h.t.Helper()
	ctx := h.t.Context()
	w := payout.StaffWrite{Owner: h.finance.key.Owner, Role: string(access.RoleFinance), Route: "POST /test/reconciliations", Key: "k", BodyHash: "h", Reason: reason}
	_, err := h.store.RequestReconciliation(ctx, w, "sandbox", payout.DayOf(time.Now(), time.UTC), func(r payout.Reconciliation) (int, []byte) {
		runID = r.ID
		return http.StatusAccepted, []byte("{}")
	})
	h.must(err)
	r, err := h.store.BeginReconciliation(ctx, runID, time.Now().Add(time.Hour))
	h.must(err)
	h.must(h.store.SaveStatement(ctx, r.ID, r.Provider, r.Day, []payout.StatementLine{{Ref: "x", Op: payout.OpTransfer, OrderNo: "Foreign1", Account: account,
		Amount: money.Fen(1), At: time.Now().Add(-time.Hour)}}))
	h.must(h.store.SealStatement(ctx, r.ID, r.Provider, r.Day, r.StartedAt))
	_, err = h.store.CompareLines(ctx, r, 0, false, 100)
	h.must(err)
	h.must(h.store.FinishReconciliation(ctx, r.ID, nil))
	return runID
}

// finish closes a packet as its workflow would.
func (h *house) finish(id string) {
	h.t.Helper()
	ctx := h.t.Context()
	_, err := h.store.BeginClosing(ctx, id, packet.CloseRecalled)
	h.must(err)
	_, err = h.pool.ClosePool(ctx, id, packet.CloseRecalled)
	h.must(err)
	rest, err := h.store.CloseBooks(ctx, id, "sandbox")
	h.must(err)
	if rest > 0 {
		h.drive(payout.ID(payout.KindRefund, id, 0))
	}
	view, err := h.pool.View(ctx, id)
	h.must(err)
	_, err = h.store.FinishPacket(ctx, id, view.First)
	h.must(err)
	h.must(h.pool.Retire(ctx, id))
}
