package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/test/wait"
)

// failed makes a packet of four equal shares, of which one payout fails.
func (h *fixture) failed() (id, payoutID string) {
	h.t.Helper()
	id = h.open(h.app, with("share_count", "4", "split", `"equal"`))
	for _, user := range []string{"a", "用/户~frozen", "c"} {
		if r := h.grab(h.app, id, user); r.status != http.StatusCreated {
			h.t.Fatalf("%s", r)
		}
	}
	h.record(id)
	var c claimBody
	h.as(h.app, "GET", "/v1/packets/"+id+"/grabs/"+url.PathEscape("用/户~frozen"), "").json(h.t, &c)
	if c.Payout.Status != "failed" {
		h.t.Fatalf("%+v", c)
	}
	return id, c.Payout.ID
}

func (h *fixture) payouts(query string) payoutsBody {
	h.t.Helper()
	r := h.as(h.auditor, "GET", "/v1/staff/payouts"+query, "")
	if r.status != http.StatusOK {
		h.t.Fatalf("%s: %s", query, r)
	}
	var page payoutsBody
	r.json(h.t, &page)
	return page
}

func TestPayoutList(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id, bad := h.failed()
	other, _ := h.failed()
	detail, err := h.reports().Payment(t.Context(), bad)
	h.check(err)
	for query, want := range map[string]int{
		"": 6, "?packet_id=" + id: 3, "?packet_id=x": 0, "?status=failed": 2, "?status=paid": 4, "?status=unknown": 0, "?user_id=a": 2,
		"?user_id=A": 0, "?user_id=" + url.QueryEscape("用/户~frozen"): 2, "?order_no=" + detail.OrderNo: 1, "?order_no=nonsense": 0,
		"?failure_code=account_frozen": 2, "?provider_ref=" + detail.ProviderRef: 1, "?provider_ref=x": 0, "?failure_code=x": 0,
		"?older_than_seconds=0": 6, "?older_than_seconds=60": 0, "?amount_min=250&amount_max=250": 6, "?amount_min=251": 0, "?amount_max=249": 0,
		"?amount_max=0": 0, "?packet_id=" + other + "&status=failed&user_id=a": 0, "?packet_id=" + id +
			"&status=failed&amount_min=1&older_than_seconds=0": 1,
	} {
		if page := h.payouts(query); len(page.Items) != want {
			t.Errorf("%s: %d payouts, want %d", query, len(page.Items), want)
		}
	}
	for _, query := range []string{"status=", "status=x", "status=FAILED", "status=failed&status=paid", "older_than_seconds=-1",
		"older_than_seconds=1.5", "older_than_seconds=x",
		"amount_min=-1", "amount_max=9007199254740992", "amount_min=10&amount_max=9", "user_id=", "user_id=%00", "packet_id=", "order_no=" +
			strings.Repeat("x", 129), "unknown=1", "cursor=x", "limit=500"} {
		if r := h.as(h.ops, "GET", "/v1/staff/payouts?"+query, ""); r.code() != "invalid_request" {
			t.Errorf("%s: %s", query, r)
		}
	}
}

func TestPayoutPages(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id, _ := h.failed()
	h.failed()
	all := h.payouts("?status=paid").Items
	for _, repeat := range []bool{false, true} {
		var got []string
		query := "?status=paid&older_than_seconds=0&limit=1"
		for range 10 {
			page := h.payouts(query)
			for _, p := range page.Items {
				got = append(got, p.ID)
			}
			if page.NextCursor == nil {
				break
			}
			query = "?limit=1&cursor=" + url.QueryEscape(*page.NextCursor)
			if repeat {
				query += "&status=paid&older_than_seconds=0"
			}
		}
		var want []string
		for _, p := range all {
			want = append(want, p.ID)
		}
		if !slices.Equal(got, want) || len(got) != 4 {
			t.Errorf("filters repeated %v: %v, want %v", repeat, got, want)
		}
	}
	cursor := url.QueryEscape(*h.payouts("?status=paid&limit=1").NextCursor)
	for _, query := range []string{"&status=failed", "&packet_id=" + id, "&status=paid&packet_id=" + id} {
		if r := h.as(h.ops, "GET", "/v1/staff/payouts?cursor="+cursor+query, ""); r.code() != "invalid_request" {
			t.Errorf("other filters with the cursor: %s: %s", query, r)
		}
	}
}

// TestRecipientAction: staff and app read the same about what the recipient can do, in the one claim and
// in lists; the recipient of a payout that is paid or under way can do nothing.
func TestRecipientAction(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id, failed := h.failed()
	var p payoutBody
	h.as(h.finance, "GET", "/v1/staff/payouts/"+failed, "").json(t, &p)
	if p.Recipient == nil || *p.Recipient != "fix_account" {
		t.Errorf("staff: %v", p.Recipient)
	}
	want := map[string]string{"a": "", "用/户~frozen": "fix_account", "c": ""}
	var page claimsBody
	h.as(h.app, "GET", "/v1/packets/"+id+"/grabs", "").json(t, &page)
	if len(page.Items) != len(want) {
		t.Fatalf("%+v", page)
	}
	for user, action := range want {
		var c claimBody
		h.as(h.app, "GET", "/v1/packets/"+id+"/grabs/"+url.PathEscape(user), "").json(t, &c)
		var of claimsBody
		h.as(h.app, "GET", "/v1/users/"+url.PathEscape(user)+"/claims", "").json(t, &of)
		in := slices.IndexFunc(page.Items, func(c claimBody) bool { return c.UserID == user })
		for where, got := range map[string]*string{"claim": c.Recipient, "of the packet": page.Items[in].Recipient, "of the user": of.Items[0].Recipient} {
			if action == "" && got != nil || action != "" && (got == nil || *got != action) {
				t.Errorf("%s, %s: %v, want %q", user, where, got, action)
			}
		}
	}
}

// TestConfirm: while the recipient has to confirm, the claim read by itself has what their app needs, and no cache
// keeps it. No list has it, nor a repeated grab, nor staff; another app does not find it.
func TestConfirm(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id, _ := h.failed()
	const user = "d~confirm"
	path := "/v1/packets/" + id + "/grabs/" + user
	waiting, _ := h.undecided(id, user)
	no := payout.OrderNo(waiting, 1)
	var c claimBody
	r := h.as(h.app, "GET", path, "")
	r.json(t, &c)
	if c.Payout.ID != waiting || c.Recipient == nil || *c.Recipient != "confirm" || c.Confirm == nil ||
		c.Confirm.Parameters["order_no"] != no || c.Confirm.Parameters["confirm_token"] == "" ||
		!c.Confirm.ValidUntil.After(time.Now()) || r.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s, %s", r, r.header)
	}
	secret := c.Confirm.Parameters["confirm_token"]
	sealed, err := h.reports().RecipientAction(t.Context(), waiting)
	if err != nil || len(sealed) == 0 || bytes.Contains(sealed, []byte(secret)) {
		t.Errorf("stored as %q, %v", sealed, err)
	}
	for what, r := range map[string]result{
		"claims of the packet": h.as(h.app, "GET", "/v1/packets/"+id+"/grabs", ""),
		"claims of the user":   h.as(h.app, "GET", "/v1/users/"+user+"/claims", ""),
		"repeated grab":        h.grab(h.app, id, user),
		"packet":               h.as(h.app, "GET", "/v1/packets/"+id, ""),
		"payout":               h.as(h.finance, "GET", "/v1/staff/payouts/"+waiting, ""),
		"payouts":              h.as(h.finance, "GET", "/v1/staff/payouts?status=awaiting_recipient", ""),
		"another app":          h.as(h.app2, "GET", path, ""),
	} {
		if strings.Contains(r.String(), secret) {
			t.Errorf("%s: %s", what, r)
		}
	}
	for what, r := range map[string]result{"a grab": h.grab(h.app, id, user), "a refused grab": h.grab(h.app, id, ""),
		"another recipient": h.as(h.app, "PUT", path+"/recipient", `{"account":"x"}`),
		"confirm again":     h.as(h.app, "POST", path+"/confirm", "")} {
		if r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s, %s", what, r, r.header)
		}
	}
	seen := h.stack.Provider.Query(t.Context(), payout.OpTransfer, no)
	seen.ID, seen.Kind, seen.ProviderRef = "paid", payout.ObsSucceeded, "ref"
	_, err = h.store.Settle(t.Context(), seen, no)
	h.check(err)
	c = claimBody{}
	if h.as(h.app, "GET", path, "").json(t, &c); c.Confirm != nil || c.Recipient != nil {
		t.Errorf("paid: %+v", c)
	}
	d, err := h.reports().Payment(t.Context(), waiting)
	if err != nil || len(d.Attempts) != 1 || d.Attempts[0].SealedAction != nil {
		t.Errorf("kept after the end: %+v, %v", d.Attempts, err)
	}
}

func TestPayoutDetail(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id, bad := h.failed()
	for _, who := range []owner{h.finance, h.ops, h.auditor} {
		var p payoutBody
		r := h.as(who, "GET", "/v1/staff/payouts/"+bad, "")
		r.json(t, &p)
		if r.status != 200 || p.Status != "failed" || p.Failure == nil || p.Failure.Code != "account_frozen" || !p.Failure.Retryable ||
			p.Failure.NextAction == "" ||
			p.AttemptCount != 1 || len(p.Attempts) != 1 || p.Attempts[0].OrderNo != *p.OrderNo || *p.Attempts[0].Outcome != "declined" ||
			p.Attempts[0].EndedAt == nil || len(p.Timeline) < 3 {
			t.Errorf("%s", r)
		}
		want := "http://127.0.0.1:18233/namespaces/hongbao/workflows/payout%2F" + id + "%2F%E7%94%A8%2F%E6%88%B7~frozen"
		if p.Workflow.ID != "payout/"+id+"/用/户~frozen" || p.Workflow.URL != want {
			t.Errorf("%+v", p.Workflow)
		}
	}
	for _, path := range []string{"x", "p" + anonymous + "0000", "c" + id + "0000", "r" + id + "0000", bad + "01", strings.ToUpper(bad),
		bad + "%20", "%zz", "%00"} {
		if r := h.as(h.ops, "GET", "/v1/staff/payouts/"+path, ""); r.code() != "payout_not_found" {
			t.Errorf("%s: %s", path, r)
		}
	}
}

// decided is the answer to a retry.
type decided struct {
	Decision struct{ ID, Kind, Reason, By, Status string }
	Payout   payoutBody
	Approval *struct{ ID string }
}

func (h *fixture) retry(who owner, id, key, body string) result {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/v1/staff/payouts/" + id + "/retry", key: who.token, body: body,
		header: map[string]string{"Idempotency-Key": key}})
}

func TestRetry(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id, bad := h.failed()
	for body, want := range map[string]string{
		`{}`: "reason required", `{"reason":null}`: "reason required", `{"reason":" \n"}`: "reason wrong_length",
		`{"reason":1}`: "reason wrong_type", `{"reason":"a\u0000"}`: "reason invalid_characters", `{"reason":"` + strings.Repeat("因", 501) +
			`"}`: "reason wrong_length", `{"reason":"r","proof":"e"}`: "proof unknown_field", `{"reason":"r","evidence":" "}`: "evidence wrong_length",
	} {
		if r := h.retry(h.finance, bad, "k", body); r.status != 422 || !slices.Equal(fieldsOf(t, r), []string{want}) {
			t.Errorf("%.60s: %s", body, r)
		}
	}
	first := h.retry(h.finance, bad, "k", `{"reason":"unfrozen"}`)
	var d decided
	first.json(t, &d)
	if first.status != http.StatusAccepted || d.Decision.Kind != "retry" || d.Decision.Reason != "unfrozen" ||
		d.Decision.By != h.finance.key.Owner ||
		d.Decision.Status != "carried_out" || d.Approval != nil || d.Payout.Status != "pending" || d.Payout.Failure != nil {
		t.Fatalf("%s", first)
	}
	if r := h.retry(h.finance, bad, "k", ` { "reason" : "unfrozen" } `); string(r.body) != string(first.body) || r.status != 202 ||
		r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", r)
	}
	if r := h.retry(h.finance, bad, "k", `{"reason":"other"}`); r.code() != "idempotency_key_reused" {
		t.Errorf("another body: %s", r)
	}
	refused := h.retry(h.finance, bad, "k2", `{"reason":"r"}`)
	if refused.status != 409 || refused.code() != "not_retryable" {
		t.Errorf("pending: %s", refused)
	}
	st := h.drive(bad) // still frozen: a new number, refused again
	if st.Status != payout.StatusFailed {
		t.Fatalf("%+v", st)
	}
	if r := h.retry(h.finance, bad, "k2", `{"reason":"r"}`); string(r.body) != string(refused.body) ||
		r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a refusal is remembered: %s", r)
	}
	control := h.do(call{method: "POST", base: h.provider, path: "/_unfreeze/" + url.PathEscape("用/户~frozen")})
	if control.status != http.StatusNoContent {
		t.Fatalf("unfreeze: %s", control)
	}
	if r := h.retry(h.finance, bad, "k3", `{"reason":"now really"}`); r.status != 202 {
		t.Errorf("%s", r)
	}
	if st := h.drive(bad); st.Status != payout.StatusPaid {
		t.Errorf("%+v", st)
	}
	if p := h.proof(h.app, id); !p.Balanced || p.Paid != 750 {
		t.Errorf("%+v", p)
	}
	if r := h.retry(h.finance, bad, "k4", `{"reason":"once more"}`); r.code() != "not_retryable" {
		t.Errorf("paid: %s", r)
	}
	if r := h.retry(h.finance, "p"+anonymous+"0000", "k5", `{"reason":"r"}`); r.code() != "payout_not_found" {
		t.Errorf("%s", r)
	}
	colleague := h.newOwner("finance")
	var r result
	wait.Until(h.t, "the new key is known", func() bool {
		r = h.retry(colleague, bad, "k", `{"reason":"another person, the same key"}`)
		return r.status != http.StatusUnauthorized
	})
	if r.code() != "not_retryable" || r.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the scope of a key is its owner: %s", r)
	}
}

// TestRetryApproval: from the approval amount on nothing moves before a second person agrees.
func TestRetryApproval(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.ApprovalAmount = 250 }})
	_, bad := h.failed()
	r := h.retry(h.finance, bad, "k", `{"reason":"r"}`)
	var d decided
	r.json(t, &d)
	if r.status != 202 || d.Decision.Status != "waiting" || d.Approval == nil || d.Approval.ID == "" || d.Payout.Status != "failed" {
		t.Fatalf("%s", r)
	}
	if again := h.retry(h.finance, bad, "k2", `{"reason":"r"}`); again.status != 409 || again.code() != "decision_pending" {
		t.Errorf("%s", again)
	}
	if st, err := h.store.PaymentState(t.Context(), bad); err != nil || st.Status != payout.StatusFailed {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestUnsignedFlood: unsigned notifications cannot flood the log.
func TestUnsignedFlood(t *testing.T) {
	log := new(logbook)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	h := newFixture(t, parts{})
	send := func() {
		t.Helper()
		if r := h.do(call{method: "POST", path: "/v1/provider-notifications/sandbox", body: "x"}); r.status != http.StatusUnauthorized {
			t.Fatalf("%s", r)
		}
	}
	lines := func() int { return strings.Count(log.String(), "notification refused") }
	const sent = 50
	began := time.Now()
	for range sent {
		send()
	}
	wait.Until(h.t, "one is logged", func() bool { send(); return lines() > 0 })
	if most := 1 + int(time.Since(began)/time.Second); lines() > most && most < sent {
		t.Errorf("%d lines, want %d at most", lines(), most)
	}
}

// ownAnswers is a provider with answers of its own to notifications.
type ownAnswers struct{ *provider.Sandbox }

func (ownAnswers) AnswerNotification(err error) *payout.NotificationAnswer {
	if err != nil {
		return &payout.NotificationAnswer{Status: http.StatusUnauthorized, Type: "application/json", Body: []byte(`{"code":"FAIL"}`)}
	}
	return &payout.NotificationAnswer{Status: http.StatusOK, Type: "text/plain", Body: []byte("success")}
}

// TestNotificationAnswer: the provider's adapter writes the answer to a notification, accepted or not.
func TestNotificationAnswer(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.Providers = payout.OnlyProvider(ownAnswers{sandboxOf(c)}) }})
	const body = `{"event_id":"evt_1","order_no":"p1"}`
	for want, header := range map[string]map[string]string{
		"200 OK text/plain success": sign(t, "evt_1", body), `401 Unauthorized application/json {"code":"FAIL"}`: nil,
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", h.public+"/v1/provider-notifications/sandbox", strings.NewReader(body))
		h.check(err)
		req.Header.Set("Content-Type", "application/json")
		for name, value := range header {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req) // h.do knows only the documented answers
		h.check(err)
		text, err := io.ReadAll(resp.Body)
		h.check(errors.Join(err, resp.Body.Close()))
		if got := resp.Status + " " + resp.Header.Get("Content-Type") + " " + string(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNotification: signed ones are stored once, all others are refused; faults of the body
// are returned only for a valid signature.
func TestNotification(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	_, bad := h.failed()
	body := fmt.Sprintf(`{"event_id":"evt_1","type":"order.succeeded","order_no":"%s01","status":"succeeded","created_at":"2026-01-01T00:00:00.000Z"}`, bad)
	send := func(header map[string]string, body string) result {
		t.Helper()
		return h.do(call{method: "POST", path: "/v1/provider-notifications/sandbox", body: body, header: header})
	}
	signed := sign(t, "evt_1", body)
	for range 2 {
		if r := send(signed, body); r.status != http.StatusNoContent || len(r.body) != 0 {
			t.Errorf("%s", r)
		}
	}
	st, err := h.store.PaymentState(t.Context(), bad)
	if err != nil || st.Step.Do != payout.ActionQuery || st.Status != payout.StatusFailed {
		t.Errorf("a notification asks and moves nothing: %+v, %v", st, err)
	}
	wrong := sign(t, "evt_1", body)
	wrong["Webhook-Signature"] = "v1,AAAA"
	for name, r := range map[string]result{
		"unsigned": send(nil, body), "wrong": send(wrong, body), "changed": send(signed, strings.Replace(body, "succeeded", "declined", 1)),
		"another id": send(map[string]string{"Webhook-Id": "evt_2", "Webhook-Timestamp": signed["Webhook-Timestamp"],
			"Webhook-Signature": signed["Webhook-Signature"]}, body),
		"empty": send(signed, ""), "not JSON, unsigned": send(nil, "x"),
	} {
		if r.status != http.StatusUnauthorized || r.code() != "unauthenticated" {
			t.Errorf("%s: %s", name, r)
		}
	}
	for body, want := range map[string]string{
		"": "malformed_json", "x": "malformed_json", `{"event_id":"evt_1"`: "malformed_json", "[]": "invalid_request", "{}": "invalid_request",
		`{"event_id":"evt_1"}`: "invalid_request", `{"event_id":1,"order_no":"p1"}`: "invalid_request",
		`{"event_id":"evt_2","order_no":"p1"}`: "invalid_request", `{"event_id":"evt_1","order_no":""}`: "invalid_request",
	} {
		if r := send(sign(t, "evt_1", body), body); r.code() != want {
			t.Errorf("signed %q: %s, want %s", body, r, want)
		}
	}
	for range 2 { // without event_id it is the event of the header, once
		short := `{"order_no":"` + bad + `01"}`
		if r := send(sign(t, "evt_2", short), short); r.status != http.StatusNoContent {
			t.Errorf("%s", r)
		}
	}
	d, err := h.reports().Payment(t.Context(), bad)
	h.check(err)
	timeline, err := h.reports().Timeline(t.Context(), d)
	h.check(err)
	var events []string
	for _, n := range timeline.Notifications {
		events = append(events, n.EventID)
	}
	if !slices.Equal(events, []string{"evt_1", "evt_2"}) {
		t.Errorf("stored: %q", events)
	}
	if r := send(signed, body+strings.Repeat(" ", 64<<10)); r.code() != "body_too_large" {
		t.Errorf("%s", r)
	}
	if r := h.do(call{method: "GET", path: "/v1/provider-notifications/sandbox"}); r.status != http.StatusMethodNotAllowed {
		t.Errorf("%s", r)
	}
	if r := h.do(call{method: "POST", path: "/v1/provider-notifications/other", body: body,
		header: signed}); r.status != http.StatusUnauthorized {
		t.Errorf("%s", r)
	}
}
