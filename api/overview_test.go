package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// serve runs another server of the house until what it returns is called.
func (h *fixture) serve(server *api.Server) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	wait.Until(h.t, "ready", func() bool {
		return h.do(call{method: "GET", base: "http://" + server.StaffAddr().String(), path: "/readyz", loose: true}).status == http.StatusOK
	})
	return func() error { cancel(); return <-served }
}

// overviewBody is the answer about all the money.
type overviewBody struct {
	Money *struct {
		Funded, Paid, Owed, Remaining, Refunding, Refunded int64
		Ties                                               bool
	}
	Payments []struct {
		Kind, Status  string
		Count, Amount int64
		OldestAt      time.Time `json:"oldest_at"`
	}
	Breaks, Approvals struct{ Count int64 }
	Decisions         []dueBody
}

// dueBody is what waits for a decision for one reason.
type dueBody struct {
	Reason        string
	Kind          *string
	Count, Amount int64
	More          bool
}

func (h *fixture) overview() overviewBody {
	h.t.Helper()
	r := h.as(h.auditor, "GET", "/v1/staff/overview", "")
	var o overviewBody
	r.json(h.t, &o)
	if r.status != http.StatusOK {
		h.t.Fatalf("%s", r)
	}
	return o
}

// TestOverview: the money of all packets ties at every moment, and what is not at
// its end is counted.
func TestOverview(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	if o := h.overview(); o.Money == nil || o.Money.Funded != 0 || !o.Money.Ties || len(o.Payments) != 0 {
		t.Fatalf("empty: %+v", o)
	}
	id, bad := h.failed() // four shares of 250: two paid, one failed, one left
	o := h.overview()
	if m := o.Money; m.Funded != 1000 || m.Paid != 500 || m.Owed != 250 || m.Remaining != 250 || m.Refunding != 0 || m.Refunded != 0 ||
		!m.Ties {
		t.Errorf("%+v", *m)
	}
	if len(o.Payments) != 1 || o.Payments[0].Kind != "payout" || o.Payments[0].Status != "failed" || o.Payments[0].Count != 1 ||
		o.Payments[0].Amount != 250 || o.Payments[0].OldestAt.IsZero() {
		t.Errorf("%+v", o.Payments)
	}
	if failed := (dueBody{Reason: "payout_failed", Count: 1, Amount: 250}); !slices.Equal(o.Decisions, []dueBody{failed}) {
		t.Errorf("%+v", o.Decisions)
	}
	h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	if got := h.overview().Decisions; len(got) != 2 || got[1] != (dueBody{Reason: "approval", Count: 1, Amount: 250}) {
		t.Errorf("%+v", got)
	}
	h.open(h.app, with())
	h.finish(id, packet.CloseRecalled)
	o = h.overview()
	if m := o.Money; m.Funded != 2000 || m.Paid != 500 || m.Owed != 250 || m.Remaining != 1000 || m.Refunded != 250 || !m.Ties ||
		o.Approvals.Count != 1 || o.Breaks.Count != 0 {
		t.Errorf("%+v %+v", *m, o)
	}
	if r := h.as(h.ops, "GET", "/v1/staff/overview?x=1", ""); r.code() != "invalid_request" {
		t.Errorf("%s", r)
	}
}

func TestPaymentSums(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id, _ := h.failed()
	h.failed()
	for query, want := range map[string][2]int64{"": {6, 1500}, "?status=failed": {2, 500}, "?status=paid&packet_id=" + id: {2, 500},
		"?failure_code=account_frozen&status=paid": {0, 0},
		"?amount_min=251":                          {0, 0}, "?user_id=a": {2, 500}, "?order_no=x": {0, 0}, "?older_than_seconds=3600": {0, 0}} {
		var sum struct {
			Count, Amount int64
			More          bool
		}
		h.as(h.ops, "GET", "/v1/staff/payouts/sum"+query, "").json(t, &sum)
		if sum.Count != want[0] || sum.Amount != want[1] || sum.More {
			t.Errorf("%s: %+v, want %v", query, sum, want)
		}
	}
	h.finish(id, packet.CloseRecalled)
	var sum struct{ Count, Amount int64 }
	if h.as(h.ops, "GET", "/v1/staff/refunds/sum?status=paid", "").json(t, &sum); sum.Count != 1 || sum.Amount != 250 {
		t.Errorf("refunds: %+v", sum)
	}
	for _, path := range []string{"payouts/sum?limit=1", "payouts/sum?status=x", "refunds/sum?cursor=x"} {
		if r := h.as(h.ops, "GET", "/v1/staff/"+path, ""); r.code() != "invalid_request" {
			t.Errorf("%s: %s", path, r)
		}
	}
}

// TestPayoutStatuses: the statuses of payouts that are named, in the order of the question.
func TestPayoutStatuses(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id, bad := h.failed()
	paid := h.payouts("?status=paid&packet_id=" + id).Items[0].ID
	ask := func(ids ...string) result {
		return h.as(h.ops, "GET", "/v1/staff/payouts/statuses?ids="+strings.Join(ids, ","), "")
	}
	var found struct {
		Items []struct{ ID, Status string }
	}
	if ask(paid, "p"+anonymous+"0000", bad).json(t, &found); fmt.Sprint(found.Items) != "[{"+paid+" paid} {"+bad+" failed}]" {
		t.Errorf("%v", found.Items)
	}
	var many []string
	for i := range 100 {
		many = append(many, payout.ID(payout.KindPayout, anonymous, i))
	}
	if r := ask(many...); r.status != http.StatusOK || !strings.Contains(string(r.body), `"items":[]`) {
		t.Errorf("a hundred that are not there: %s", r)
	}
	for ids, want := range map[string]string{"": "ids invalid_format", "x": "ids invalid_format", bad + ",": "ids invalid_format",
		"r" + bad[1:]:   "ids invalid_format",
		bad + "," + bad: "ids duplicate", strings.Join(append(many, bad), ","): "ids wrong_length"} {
		if r := ask(ids); r.status != 422 || fmt.Sprint(fieldsOf(t, r)) != "["+want+"]" {
			t.Errorf("%.60s: %s", ids, r)
		}
	}
	if r := h.as(h.ops, "GET", "/v1/staff/payouts/statuses", ""); fmt.Sprint(fieldsOf(t, r)) != "[ids required]" {
		t.Errorf("nothing named: %s", r)
	}
}

// TestRetryOfNamedPayouts: a bulk retry can name its payouts.
func TestRetryOfNamedPayouts(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id, bad := h.failed()
	_, other := h.failed()
	paid := h.payouts("?status=paid&packet_id=" + id).Items[0].ID
	named := func(ids string) string {
		return `{"reason":"r","dry_run":false,"filter":{"payout_ids":[` + ids + `]}}`
	}
	for body, want := range map[string]string{
		named(``): "filter.payout_ids wrong_length", named(`"x"`): "filter.payout_ids[0] invalid_format",
		named(`"` + bad + `","` + bad + `"`): "filter.payout_ids[1] duplicate", named(`"r` + bad[1:] + `"`): "filter.payout_ids[0] " +
			"invalid_format", named(`"` + bad + `","p` + anonymous + `0000"`): "filter.payout_ids[1] invalid_format",
		`{"reason":"r","filter":{"status":"failed","payout_ids":["` + bad + `"]}}`: "filter.payout_ids invalid_format",
	} {
		if r := h.write(h.finance, "payouts/retry", "bad", body); r.status != 422 || fmt.Sprint(fieldsOf(t, r)) != "["+want+"]" {
			t.Errorf("%s: %s", body, r)
		}
	}
	var b bulkBody
	r := h.write(h.finance, "payouts/retry", "k", named(`"`+bad+`","`+paid+`"`))
	r.json(t, &b)
	if r.status != http.StatusOK || b.Count != 1 || b.Amount != 250 || len(b.Items) != 2 || b.Items[0].Result != "retried" ||
		b.Items[1].Result != "skipped" || *b.Items[1].Code != "not_retryable" {
		t.Errorf("%s", r)
	}
	for payment, want := range map[string]payout.Status{bad: payout.StatusPending, other: payout.StatusFailed, paid: payout.StatusPaid} {
		if st, err := h.store.PaymentState(t.Context(), payment); err != nil || st.Status != want {
			t.Errorf("%s: %+v, want %s", payment, st, want)
		}
	}
}

// TestRetryPreview: a payout's detail has the effect of a retry, to every role.
func TestRetryPreview(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.ApprovalAmount = 250 }})
	id, bad := h.failed()
	var p struct {
		Retry struct {
			Possible     bool
			Code         *string
			OrderNo      *string `json:"order_no"`
			SameOrderNo  bool    `json:"same_order_no"`
			SecondPerson bool    `json:"second_person"`
		}
		Attempts []struct {
			Request, Message *string
			Sends, Asks      int
		}
	}
	h.as(h.auditor, "GET", "/v1/staff/payouts/"+bad, "").json(t, &p)
	if w := p.Retry; !w.Possible || w.Code != nil || *w.OrderNo != payout.OrderNo(bad, 2) || w.SameOrderNo || !w.SecondPerson {
		t.Errorf("%+v", w)
	}
	if a := p.Attempts[0]; a.Request == nil || !strings.Contains(*a.Request, payout.OrderNo(bad, 1)) || a.Message == nil || a.Sends != 1 ||
		a.Asks != 1 {
		t.Errorf("%+v", a)
	}
	h.decided(h.write(h.finance, "payouts/"+bad+"/retry", "k", because), "waiting")
	p.Retry.Code = nil
	if h.as(h.ops, "GET", "/v1/staff/payouts/"+bad, "").json(t, &p); p.Retry.Possible || p.Retry.Code == nil ||
		*p.Retry.Code != "decision_pending" {
		t.Errorf("%+v", p.Retry)
	}
	paid := h.payouts("?status=paid&packet_id=" + id).Items[0].ID
	if h.as(h.ops, "GET", "/v1/staff/payouts/"+paid, "").json(t, &p); p.Retry.Possible || *p.Retry.Code != "not_retryable" ||
		p.Retry.OrderNo != nil {
		t.Errorf("%+v", p.Retry)
	}
}

// TestActsAs: requests from inside have the rights of the key that they act for,
// and lose them with it; what is shown besides counts for nothing.
func TestActsAs(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	server, err := api.New(h.cfg)
	h.check(err)
	h.check(server.Listen())
	served := h.serve(server)
	_, bad := h.failed()
	ask := func(who owner, method, path, body string) result {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://inside"+path, strings.NewReader(body))
		h.check(err)
		req.Header.Set("Authorization", "Bearer "+h.finance.token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "inside")
		res, err := server.ActAs(who.key.ID).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		raw, err := io.ReadAll(res.Body)
		h.check(err)
		return result{res.StatusCode, res.Header, raw}
	}
	wait.Until(h.t, "keys are known", func() bool { return ask(h.auditor, "GET", "/v1/staff/payouts", "").status == http.StatusOK })
	if r := ask(h.auditor, "GET", "/v1/staff/payouts/"+bad, ""); r.status != http.StatusOK || !strings.Contains(string(r.body), bad) {
		t.Errorf("%s", r)
	}
	if r := ask(h.ops, "POST", "/v1/staff/payouts/"+bad+"/retry", because); r.code() != "forbidden" {
		t.Errorf("ops: %s", r)
	}
	if r := ask(owner{}, "GET", "/v1/staff/payouts", ""); r.code() != "unauthenticated" {
		t.Errorf("nobody: %s", r)
	}
	if r := ask(h.app, "GET", "/v1/staff/payouts", ""); r.code() != "forbidden" {
		t.Errorf("an app: %s", r)
	}
	if r := ask(h.finance, "POST", "/v1/staff/payouts/"+bad+"/retry", `{}`); r.code() != "invalid_request" {
		t.Errorf("no reason: %s", r)
	}
	if r := ask(h.finance, "POST", "/v1/staff/payouts/"+bad+"/retry", because); r.status != http.StatusAccepted {
		t.Errorf("finance: %s", r)
	}
	if r := ask(h.finance, "POST", "/v1/staff/payouts/"+bad+"/retry", because); r.status != http.StatusAccepted ||
		r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", r)
	}
	if r := ask(h.auditor, "GET", "/v1/staff/export/payouts.csv", ""); r.status != http.StatusOK || strings.Count(string(r.body), "\n") != 4 {
		t.Errorf("export: %s", r)
	}
	if who, role, ok := server.KeyOwner(h.ops.key.ID); !ok || who != h.ops.key.Owner || role != access.RoleOps {
		t.Errorf("holder: %s %s %v", who, role, ok)
	}
	for _, token := range []string{h.app.token, tokenOf(access.RoleFinance), "x", ""} {
		if id, ok, err := server.SignIn(t.Context(), token); ok || err != nil {
			t.Errorf("signed in as %s: %v", id, err)
		}
	}
	if id, ok, err := server.SignIn(t.Context(), h.ops.token); !ok || err != nil || id != h.ops.key.ID {
		t.Errorf("%s %v %v", id, ok, err)
	}
	_, err = h.store.RevokeKey(t.Context(), h.ops.key.ID)
	h.check(err)
	wait.Until(h.t, "the revoked key opens nothing",
		func() bool { return ask(h.ops, "GET", "/v1/staff/payouts", "").code() == "unauthenticated" })
	if _, _, ok := server.KeyOwner(h.ops.key.ID); ok {
		t.Error("a revoked key has a holder")
	}
	h.check(served())
}

// TestStaffGrabs: staff sees who got what of a packet of any app.
func TestStaffGrabs(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id, _ := h.failed()
	want := h.as(h.app, "GET", "/v1/packets/"+id+"/grabs?limit=2", "")
	got := h.as(h.auditor, "GET", "/v1/staff/packets/"+id+"/grabs?limit=2", "")
	if got.status != http.StatusOK || string(got.body) != string(want.body) {
		t.Errorf("%s\n%s", got, want)
	}
	var page struct {
		NextCursor string `json:"next_cursor"`
	}
	got.json(t, &page)
	if r := h.as(h.ops, "GET", "/v1/staff/packets/"+id+"/grabs?cursor="+url.QueryEscape(page.NextCursor), ""); r.status != http.StatusOK {
		t.Errorf("%s", r)
	}
	if r := h.as(h.ops, "GET", "/v1/staff/packets/"+anonymous+"/grabs", ""); r.code() != "packet_not_found" {
		t.Errorf("%s", r)
	}
}

// TestConsoleMounted: only the console's own paths go to it; everything else on
// the listener stays as it was.
func TestConsoleMounted(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	server, err := api.New(h.cfg)
	h.check(err)
	server.MountConsole(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/pages/panic" {
			panic("page")
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("X-Asked"), body)
	}), "/pages")
	h.check(server.Listen())
	served := h.serve(server)
	staff, public := "http://"+server.StaffAddr().String(), "http://"+server.PublicAddr().String()
	do := func(method, base, path, body string) result {
		return h.do(call{method: method, base: base, path: path, body: body, loose: true, header: map[string]string{"X-Asked": "yes"}})
	}
	for _, path := range []string{"/", "/?a=b", "/pages", "/pages/1?x=%2F"} {
		if r := do("GET", staff, path, ""); r.status != http.StatusTeapot || string(r.body) != "GET "+path+" yes " ||
			r.header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %s", path, r)
		}
	}
	if r := do("POST", staff, "/pages", "a=b"); string(r.body) != "POST /pages yes a=b" {
		t.Errorf("%s", r)
	}
	if r := do("POST", staff, "/pages", strings.Repeat("x", 70_000)); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d", r.status)
	}
	if r := do("GET", staff, "/pages/panic", ""); r.status != http.StatusInternalServerError || strings.Contains(string(r.body), "page") {
		t.Errorf("%s", r)
	}
	for base, paths := range map[string][]string{staff: {"/pagesx", "/other", "/v1/staff/payouts", "/v1/staff"}, public: {"/", "/pages"}} {
		for _, path := range paths {
			if r := do("GET", base, path, ""); r.code() != "unauthenticated" {
				t.Errorf("%s%s: %s", base, path, r)
			}
		}
	}
	for _, path := range []string{"/livez", "/metrics"} {
		if r := do("GET", staff, path, ""); r.status != http.StatusOK {
			t.Errorf("%s: %s", path, r)
		}
	}
	h.check(served())
}

// TestActivityOfMinutes: what is booked is counted in its minute.
func TestActivityOfMinutes(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	h.failed() // three grabs of 250, two of them paid
	var a struct {
		Minutes []struct {
			At          time.Time
			Grabs, Paid *struct{ Count, Amount int64 }
		}
	}
	wait.Until(h.t, "counted", func() bool { // in turns, where the machine takes its time
		r := h.as(h.ops, "GET", "/v1/staff/activity", "")
		r.json(t, &a)
		if r.status != http.StatusOK || len(a.Minutes) != 60 {
			t.Fatalf("%s", r)
		}
		return a.Minutes[59].Paid != nil
	})
	var grabs, paid, sum int64
	for i, m := range a.Minutes {
		if m.Grabs == nil || m.Paid == nil || !m.At.Equal(a.Minutes[0].At.Add(time.Duration(i)*time.Minute)) {
			t.Fatalf("minute %d: %+v", i, m)
		}
		grabs, paid, sum = grabs+m.Grabs.Count, paid+m.Paid.Count, sum+m.Grabs.Amount+m.Paid.Amount
	}
	if grabs != 3 || paid != 2 || sum != 5*250 {
		t.Errorf("%d grabs, %d paid, %d fen", grabs, paid, sum)
	}
	if r := h.as(h.ops, "GET", "/v1/staff/activity?x=1", ""); r.code() != "invalid_request" {
		t.Errorf("%s", r)
	}
}
