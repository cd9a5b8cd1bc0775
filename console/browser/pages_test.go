package browser

import (
	"cmp"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/test/harness"
)

// Hostile and long names.
const (
	hostileUser     = `<script>alert("user")</script>"'&~frozen`
	hostileNickname = `"><img src=x onerror=alert("nickname")>很长的名字很长的名字很长的名字`
	hostileGreeting = `<svg onload=alert("greeting")>恭喜`
	hostileReason   = `</textarea><script>alert("reason")</script> javascript:alert(1)`
	hostileSender   = `<b onmouseover=alert("sender")>s</b>`
	hostileAccount  = `"><script>alert("account")</script>`
)

// place is a page of the console with content.
type place struct {
	path   string
	status int64       // 0: 200
	who    access.Role // the only role that may read it; "": every role
}

// nobody is a role without a session.
const nobody access.Role = "nobody"

// site is a testbed with data for every page.
type site struct {
	*testbed
	id, closed string // packets, the second one closed
	bad, long  string // failed payouts; cancelling the second one awaits approval
	run        string // a reconciliation that has found a break
	daily      string // a campaign
	office     string // a closed packet without hostile input
	frozen     string // a payout of it, failed
	hold       string // a hold on the payment long
	losing     *answerDropper
	server     *stacktest.Server // Redis
}

func newSite(t *testing.T) *site {
	t.Helper()
	server := stacktest.FreshRedis(t)
	h, losing := newDroppingTestbed(t, server.Addr)
	s := &site{testbed: h, losing: losing, server: server}
	s.id = h.open(map[string]any{"sender_id": hostileSender, "total_amount": 9007199254740991, "share_count": 3, "split": "equal",
		"min_share": 1, "greeting": hostileGreeting})
	s.bad = h.grab(s.id, hostileUser, hostileNickname)
	s.long = h.grab(s.id, strings.Repeat("x", 57)+"~frozen", strings.Repeat("n", 60))
	h.decide(h.finance, s.long, "cancel", hostileReason)
	s.closed = h.open(map[string]any{"sender_id": "sender", "total_amount": 888, "share_count": 2, "greeting": "恭喜发财"})
	h.grab(s.closed, "alice", "Alice")
	h.finish(s.closed)
	s.run = h.compare(hostileReason, hostileAccount)
	s.daily = h.campaign()
	s.office = h.open(map[string]any{"sender_id": "acme-hr", "total_amount": 600_000, "share_count": 3, "split": "random",
		"greeting": "Happy New Year"})
	s.frozen = h.grab(s.office, "zhou-ting~frozen", "")
	h.grab(s.office, "maria.g", "Maria")
	h.conflict(s.office, "b & c")
	h.finish(s.office)
	h.decide(h.second, s.frozen, "cancel", "left the company")
	s.hold = h.hold(payout.HoldPayment, s.long, hostileReason)
	return s
}

// places lists a page of each kind. A new page is added here and joins all checks.
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
		{path: "/charges?status=paid"},
		{path: "/charges/" + payout.ID(payout.KindCharge, s.closed, 0)},
		{path: "/approvals"},
		{path: "/approvals?status=waiting"},
		{path: "/approvals?status="},
		{path: "/packets"},
		{path: "/packets/" + s.id},
		{path: "/packets/" + s.closed},
		{path: "/packets/" + s.office},
		{path: "/payouts/" + s.frozen},
		{path: "/refunds/" + payout.ID(payout.KindRefund, s.office, 0)},
		{path: "/campaigns"},
		{path: "/campaigns/" + s.daily},
		{path: "/search?q=" + url.QueryEscape(hostileUser)},
		{path: "/search?q="},
		{path: "/search?q=" + s.frozen},
		{path: "/breaks"},
		{path: "/breaks?kind=share_conflict"},
		{path: "/holds"},
		{path: "/holds?active=&scope=payment"},
		{path: "/holds/" + s.hold},
		{path: "/share-conflicts"},
		{path: "/share-conflicts?default_decision=honour"},
		{path: "/balances"},
		{path: "/balances/" + s.app.Key.AppID},
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

// tabs opens one tab per role, and one without a session.
func (s *site) tabs(language string) map[access.Role]*tab {
	s.t.Helper()
	out := map[access.Role]*tab{nobody: s.newTab(language)}
	for _, p := range []harness.Owner{s.finance, s.ops, s.auditor} {
		out[p.Key.Role] = s.newTab(language)
		out[p.Key.Role].signIn(p)
	}
	return out
}

// in is the site as a part of the test sees it.
func (s site) in(t *testing.T) *site {
	s.testbed = s.testbed.in(t)
	return &s
}

// readsHarm: hostile input is displayed unchanged wherever it is shown.
func (s *site) readsHarm(t *testing.T) {
	b := s.newReader("en")
	b.signIn(s.finance)
	for _, one := range []struct{ path, selector, want string }{
		{"/payouts/" + s.bad, "#facts", hostileUser},
		{"/payouts?status=failed", "tbody", hostileUser},
		{"/payouts/" + s.bad, "pre.request", hostileUser[len("<script>"):len("<script>alert(")]},
		{"/payouts/" + s.long, "blockquote", hostileReason},
		{"/payouts/" + s.long, ".timeline", hostileReason},
		{"/approvals?status=waiting", `.waits:has(a[href="/payouts/` + s.long + `"])`, hostileReason},
		{"/packets/" + s.id, "main", hostileUser},
		{"/packets/" + s.id, "main", hostileNickname},
		{"/packets/" + s.id, "main", hostileGreeting},
		{"/packets/" + s.id, "main", hostileSender},
		{"/packets/" + s.id, "main", "¥90,071,992,547,409.91"},
		{"/packets", "tbody", hostileGreeting},
		{"/search?q=" + url.QueryEscape(hostileSender), "main", hostileSender},
		{"/breaks", "main", "<script>alert"},
		{"/holds", "tbody", hostileReason},
		{"/holds/" + s.hold, "main", hostileReason},
		{"/payouts/" + s.long, ".held", hostileReason},
		{"/reconciliations/" + s.run, "#run", hostileReason},
	} {
		b.open(one.path)
		if text := b.raw(one.selector); !strings.Contains(text, one.want) {
			t.Errorf("%s of %s does not show %q:\n%s", one.selector, one.path, one.want, text)
		}
	}
	b.open("/search?q=" + url.QueryEscape(hostileUser))
	if got := b.value("#q"); got != hostileUser {
		t.Errorf("the search box says %q", got)
	}
	b.open("/payouts?status=failed&user=" + url.QueryEscape(hostileUser))
	if got := b.value("input[name=user]"); got != hostileUser {
		t.Errorf("the filter says %q", got)
	}
	b.open("/payouts?status=failed&code=" + url.QueryEscape(hostileReason) + "&min=" + url.QueryEscape(hostileReason))
	if got := b.value("input[name=code]"); got != hostileReason {
		t.Errorf("the filter says %q", got)
	}
	auditor := s.newReader("en")
	auditor.signIn(s.auditor)
	auditor.open("/audit")
	auditor.has("tbody", hostileReason)
}

// entersAll: every role, and a visitor without a session, gets each page, a refusal or the login
// page.
func (s *site) entersAll(t *testing.T) {
	for _, who := range []harness.Owner{{}, s.finance, s.ops, s.auditor} {
		role, r := who.Key.Role, s.newReader("en")
		if who.Token != "" {
			r.signIn(who)
		}
		for _, p := range s.places() {
			status, want := r.open(p.path), cmp.Or(p.status, http.StatusOK)
			switch {
			case p.who == nobody:
				continue
			case role == "":
				if status != http.StatusOK || r.at.Path != "/login" || strings.Contains(r.raw("main"), "¥") {
					t.Errorf("%s leads nobody to %s: %d", p.path, r.where(), status)
				}
				continue
			case p.who != "" && p.who != role:
				want = http.StatusForbidden
			}
			if status != want || r.at.Path == "/login" {
				t.Errorf("%s for %s: %d at %s, want %d", p.path, role, status, r.where(), want)
			}
			// Other roles see no decision forms; operations see holds, recall and campaign stop.
			for _, form := range all(r.doc, "main form[method=post]") {
				to := attr(form, "action")
				stops := strings.HasPrefix(to, "/providers/") || strings.HasPrefix(to, "/campaigns/") || strings.HasSuffix(to, "/recall") ||
					strings.HasSuffix(to, "/hold")
				if role != access.RoleFinance && len(all(form, "button")) > 0 && (role != access.RoleOps || !stops) {
					t.Errorf("%s offers %s to %s", p.path, to, role)
				}
			}
			if strings.Contains(p.path, s.bad) && len(all(r.doc, ".decisions form")) > 0 != (role == access.RoleFinance) {
				t.Errorf("%s: the wrong decision forms for %s", p.path, role)
			}
		}
		if role == "" {
			continue
		}
		r.open("/")
		links := r.attrs("nav.nav a", "href")
		for _, to := range links {
			if status := r.open(to); status != http.StatusOK || !slices.Equal(r.attrs("nav.nav [aria-current=page]", "href"), []string{to}) {
				t.Errorf("the navigation leads %s to %s: %d, or does not say so", role, to, status)
			}
		}
		if slices.Contains(links, "/audit") != (role == access.RoleAuditor) || !slices.Contains(links, "/payouts?status=failed") {
			t.Errorf("the navigation of %s: %q", role, links)
		}
	}
}

// notPages are GET routes that are no pages.
var notPages = []string{"GET /assets/{name}", "GET /live", "GET /payouts/export.csv", "GET /refunds/export.csv", "GET /charges/export.csv",
	"GET /packets/export.csv",
	"GET /balances/{id}/export.csv",
	"GET /audit/export.csv", "GET /breaks/export.csv", "GET /approvals/export.csv", "GET /closes/{date}/export.csv"}

// missesNone: places covers every route of the console.
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

// decide makes a decision through the API as another user.
func (h *testbed) decide(who harness.Owner, payoutID, action, reason string) {
	h.t.Helper()
	w := staff.Write{Owner: who.Key.Owner, Role: string(who.Key.Role), KeyID: who.Key.ID, Route: "POST /test/" + payoutID, Key: action,
		BodyHash: "h",
		Reason:   reason}
	_, err := h.Store.Decide(h.t.Context(), w, payoutID, payout.DecisionRequest{Kind: payout.DecisionKind(action), ApproveFrom: 100_000},
		func(*staff.Decision, staff.PaymentRow, error) (int, []byte) { return http.StatusAccepted, []byte("{}") })
	h.must(err)
}

// compare reconciles today with a statement that has an extra line, as a worker would.
func (h *testbed) compare(reason, account string) (runID string) {
	h.t.Helper()
	ctx := h.t.Context()
	w := staff.Write{Owner: h.finance.Key.Owner, Role: string(access.RoleFinance), KeyID: h.finance.Key.ID,
		Route: "POST /test/reconciliations", Key: "k",
		BodyHash: "h", Reason: reason}
	_, err := h.Store.RequestReconciliation(ctx, w, "sandbox", payout.DayOf(time.Now(), time.UTC),
		func(r staff.Reconciliation) (int, []byte) {
			runID = r.ID
			return http.StatusAccepted, []byte("{}")
		})
	h.must(err)
	r, err := h.Store.BeginReconciliation(ctx, runID, time.Now().Add(time.Hour))
	h.must(err)
	h.must(h.Store.SaveStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, r.Day,
		[]payout.StatementLine{{Ref: "x", Op: payout.OpTransfer, OrderNo: "Foreign1", Account: account,
			Amount: money.Fen(1), At: time.Now().Add(-time.Hour)}}))
	h.must(h.Store.SealStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, r.Day, r.StartedAt))
	_, err = h.Store.CompareLines(ctx, r, 0, false, 100)
	h.must(err)
	h.must(h.Store.FinishReconciliation(ctx, r.ID, nil))
	return runID
}

// finish closes a packet as its workflow would.
func (h *testbed) finish(id string) {
	h.t.Helper()
	h.must(h.Finish(h.t.Context(), id, packet.CloseRecalled))
}

// conflict records a share conflict: a claim of another user's share. It returns the payment that
// would honour it.
func (h *testbed) conflict(packetID, user string) string {
	h.t.Helper()
	claims, err := h.Pool.Claims(h.t.Context(), packetID)
	h.must(err)
	claims[0].UserID = user
	st, err := h.Store.RecordShareConflict(h.t.Context(), claims[0], "claimed by another")
	h.must(err)
	return st.PaymentID
}
