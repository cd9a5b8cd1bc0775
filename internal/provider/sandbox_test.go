package provider

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/provider/sandbox"
	"hongbao/test/wait"
)

const (
	testKey      = "adapter-test-key"
	testPacketID = "0123456789abcdefghij"
)

var testSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startSandbox runs the real provider and an adapter to it.
func startSandbox(t *testing.T, webhookURL string) (*Sandbox, string) {
	t.Helper()
	server, err := sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(t.TempDir(), "p.db"),
		APIKey: testKey, WebhookURL: webhookURL, WebhookSecret: testSecret, Logger: slog.New(slog.DiscardHandler),
		HoldTimeout: 2 * time.Second, PendingAfter: 50 * time.Millisecond, ReturnAfter: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	base := "http://" + server.Addr().String()
	adapter := newAdapter(t, base, 20*time.Second)
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-served, server.Close()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return adapter, base
}

func newAdapter(t *testing.T, base string, timeout time.Duration) *Sandbox {
	t.Helper()
	adapter, err := NewSandbox(SandboxConfig{BaseURL: base, APIKey: testKey, WebhookSecret: testSecret, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(adapter.Close)
	return adapter
}

func control(t *testing.T, method, url, body string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Fatalf("%s %s: %d", method, url, res.StatusCode)
	}
}

func faults(t *testing.T, base, rules string) {
	t.Helper()
	control(t, "PUT", base+"/_faults", `{"rules":[`+rules+`]}`)
}

func order(t *testing.T, s *Sandbox, in payout.Instruction) payout.Order {
	t.Helper()
	in.Currency = "CNY"
	raw, err := s.EncodeRequest(in)
	if err != nil {
		t.Fatal(err)
	}
	return payout.Order{Op: in.Op, OrderNo: in.OrderNo, Request: raw, Send: 1}
}

func transfer(t *testing.T, s *Sandbox, n int, account string) payout.Order {
	t.Helper()
	no := payout.OrderNo(payout.ID(payout.KindPayout, testPacketID, n), 1)
	return order(t, s, payout.Instruction{Op: payout.OpTransfer, OrderNo: no, Account: account, Amount: 7, Remark: "红包"})
}

func TestSendAndAsk(t *testing.T) {
	s, base := startSandbox(t, "")
	hasty := newAdapter(t, base, time.Second) // does not wait as long as the provider holds the connection
	for i, c := range []struct {
		account, rule string
		sent          payout.ObservationKind
		code          string
		queried       payout.ObservationKind // right after
		finally       payout.ObservationKind
	}{
		{"u", "", payout.ObsSucceeded, "", payout.ObsSucceeded, payout.ObsSucceeded},
		{"a/b 微信~", "", payout.ObsSucceeded, "", payout.ObsSucceeded, payout.ObsSucceeded},
		{"u~declined", "", payout.ObsDeclined, "payee_declined", payout.ObsDeclined, payout.ObsDeclined},
		{"u~frozen", "", payout.ObsDeclined, "account_frozen", payout.ObsDeclined, payout.ObsDeclined},
		{"u~flaky", "", payout.ObsNoAnswer, "internal", payout.ObsNeverReceived, payout.ObsNeverReceived},
		{"u~lost_reply", "", payout.ObsNoAnswer, "connection", payout.ObsSucceeded, payout.ObsSucceeded},
		{"u~lost_request", "", payout.ObsNoAnswer, "connection", payout.ObsNeverReceived, payout.ObsNeverReceived},
		{"u~pending", "", payout.ObsPending, "", "", payout.ObsSucceeded},
		{"u~confirm", "", payout.ObsNeedsRecipient, "", payout.ObsNeedsRecipient, payout.ObsNeedsRecipient},
		{"u~returned", "", payout.ObsSucceeded, "", "", payout.ObsReturned},
		{"u", "error_before", payout.ObsNoAnswer, "internal", payout.ObsNeverReceived, payout.ObsNeverReceived},
		{"u", "error_after", payout.ObsNoAnswer, "internal", payout.ObsSucceeded, payout.ObsSucceeded},
		{"u", "timeout_before", payout.ObsNoAnswer, "timeout", payout.ObsNeverReceived, payout.ObsNeverReceived},
		{"u", "timeout_after", payout.ObsNoAnswer, "timeout", payout.ObsSucceeded, payout.ObsSucceeded},
		{"u", "rate_limit", payout.ObsRetryAfter, "rate_limited", payout.ObsNeverReceived, payout.ObsNeverReceived},
		{"u", "low_balance", payout.ObsRetryAfter, "low_balance", payout.ObsNeverReceived, payout.ObsNeverReceived},
		{"u", "decline", payout.ObsDeclined, "declined_by_rule", payout.ObsDeclined, payout.ObsDeclined},
		{"u", "contradict", payout.ObsDeclined, "declined", payout.ObsSucceeded, payout.ObsSucceeded},
		{"u", "pending", payout.ObsPending, "", "", payout.ObsSucceeded},
	} {
		name := c.account + " " + c.rule
		rule := ""
		if c.rule != "" {
			rule = `{"op":"transfer","kind":"` + c.rule + `"}`
		}
		faults(t, base, rule)
		o := transfer(t, s, i, c.account)
		sender := s
		if c.code == "timeout" {
			sender = hasty
		}
		got := sender.Send(context.Background(), o)
		faults(t, base, "")
		check(t, name+" sent", got, payout.SourceSend, o.OrderNo, c.account, c.sent, c.code)
		if c.sent == payout.ObsRetryAfter && got.RetryAfter != time.Second {
			t.Errorf("%s: retry after %v", name, got.RetryAfter)
		}
		if a := got.Action; c.sent == payout.ObsNeedsRecipient &&
			(a == nil || a.Parameters["confirm_token"] == "" || time.Until(a.ValidUntil) < 23*time.Hour) {
			t.Errorf("%s: %+v", name, a)
		}
		if c.queried != "" {
			again := s.Query(context.Background(), payout.OpTransfer, o.OrderNo)
			check(t, name+" queried", again, payout.SourceQuery, o.OrderNo, c.account, c.queried, "")
			if waits := again.Kind == payout.ObsNeedsRecipient; waits && time.Until(again.Until) < 23*time.Hour || !waits && !again.Until.IsZero() {
				t.Errorf("%s: may be confirmed until %v", name, again.Until)
			}
		}
		wait.Until(t, name+" is "+string(c.finally), func() bool {
			return s.Query(context.Background(), payout.OpTransfer, o.OrderNo).Kind == c.finally
		})
	}
}

// check compares the members that every observation must have; code "" is not compared.
func check(t *testing.T, name string, o payout.Observation, source payout.Source, no, account string, kind payout.ObservationKind,
	code string) {
	t.Helper()
	if o.Kind != kind || o.Source != source || o.OrderNo != no || code != "" && o.Code != code {
		t.Errorf("%s: %+v, want %s %s", name, o, kind, code)
	}
	if len(o.ID) != 32 || o.StartedAt.IsZero() || o.EndedAt.Before(o.StartedAt) {
		t.Errorf("%s: id %q, times %v %v", name, o.ID, o.StartedAt, o.EndedAt)
	}
	said := kind == payout.ObsSucceeded || kind == payout.ObsDeclined || kind == payout.ObsPending || kind == payout.ObsNeedsRecipient ||
		kind == payout.ObsReturned
	if said && (o.Account != account || o.Amount != 7 || o.ProviderRef == "") || !said && (o.Account != "" || o.Amount != 0) {
		t.Errorf("%s: says account %q amount %d ref %q", name, o.Account, o.Amount, o.ProviderRef)
	}
}

func TestDocumentedRefusals(t *testing.T) {
	s, _ := startSandbox(t, "")
	ctx := context.Background()
	o := transfer(t, s, 1, "u")
	if got := s.Send(ctx, o); got.Kind != payout.ObsSucceeded {
		t.Fatalf("%+v", got)
	}
	if got := s.Send(ctx, o); got.Kind != payout.ObsSucceeded {
		t.Errorf("same bytes again: %+v", got)
	}
	other := transfer(t, s, 1, "v")
	if got := s.Send(ctx, other); got.Kind != payout.ObsDeclined || got.Code != "order_conflict" {
		t.Errorf("other parameters: %+v", got)
	}
	if got := s.Query(ctx, payout.OpRefund, o.OrderNo); got.Kind != payout.ObsNoAnswer || got.Code != codeUnexpected {
		t.Errorf("queried as another op: %+v", got)
	}
	refund := order(t, s, payout.Instruction{Op: payout.OpRefund, OrderNo: "r1", Account: "s", Amount: 1, ChargeOrderNo: "c1"})
	if got := s.Send(ctx, refund); got.Kind != payout.ObsDeclined || got.Code != "refund_exceeds_charge" {
		t.Errorf("refund without charge: %+v", got)
	}
	if got := s.Send(ctx, payout.Order{Op: payout.OpTransfer, OrderNo: "x1", Request: []byte(`{}`)}); got.Kind != payout.ObsDeclined ||
		got.Code != "invalid_request" {
		t.Errorf("bad request: %+v", got)
	}
	if got := s.Send(ctx, payout.Order{Op: "query", OrderNo: "x1"}); got.Kind != payout.ObsNotSent {
		t.Errorf("no such op: %+v", got)
	}
	s.account = "of another environment"
	if got := s.Send(ctx, transfer(t, s, 2, "u")); got.Kind != payout.ObsRetryAfter || got.RetryAfter != retryAfterKeyRefused {
		t.Errorf("another account: %+v", got)
	}
	if got := s.Query(ctx, payout.OpTransfer, o.OrderNo); got.Kind != payout.ObsNoAnswer || got.Code != "unauthenticated" {
		t.Errorf("queried for another account: %+v", got)
	}
	s.account = SandboxAccount
	s.key = "wrong"
	if got := s.Send(ctx, transfer(t, s, 2, "u")); got.Kind != payout.ObsRetryAfter || got.RetryAfter != retryAfterKeyRefused {
		t.Errorf("wrong key: %+v", got)
	}
	if got := s.Query(ctx, payout.OpTransfer, o.OrderNo); got.Kind != payout.ObsNoAnswer || got.Code != "unauthenticated" {
		t.Errorf("queried with a wrong key: %+v", got)
	}
}

// TestOddAnswers: an undocumented answer is unknown, never a success and never a failure.
func TestOddAnswers(t *testing.T) {
	good := `{"order_no":"p1","op":"transfer","account":"u","amount":7,"currency":"CNY","status":"succeeded","new_member":1}`
	for _, c := range []struct {
		name    string
		status  int
		body    string
		sent    payout.ObservationKind
		queried payout.ObservationKind
	}{
		{"good", 200, good, payout.ObsSucceeded, payout.ObsSucceeded},
		{"empty", 200, ``, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"html", 200, `<html>`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"cut", 200, good[:len(good)-9], payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"two codes", 422, `{"code":"invalid_request","code":"rate_limited"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"half a refusal", 422, `{"code":"invalid_request","detail":"th`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"a refusal in capitals", 422, `{"CODE":"invalid_request"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"a refusal and more", 422, `{"code":"invalid_request"}{"code":"invalid_request"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"too long", 200, strings.Repeat(" ", maxAnswerBytes) + good, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"a proxy's rate limit", 429, `<html>`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"a proxy's refusal", 403, `<html>`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"no content", 204, ``, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"not modified", 304, ``, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"error page", 500, `<html>`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"error", 500, `{"code":"internal"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"success as an error", 500, good, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"unavailable page", 503, `<html>`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"rate limit as 503", 503, `{"code":"rate_limited"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"refusal under a success", 200, `{"code":"invalid_request"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"refusal under a redirect", 302, `{"code":"invalid_request"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"two statuses", 200, good[:len(good)-1] + `,"status":"declined"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"new status", 200, strings.Replace(good, "succeeded", "paused", 1), payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"other currency", 200, strings.Replace(good, "CNY", "USD", 1), payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"no account", 200, strings.Replace(good, `"u"`, `""`, 1), payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"fraction", 200, strings.Replace(good, `7`, `7.5`, 1), payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"created", 201, good, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"redirect", 307, ``, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"route missing", 404, `{"code":"not_found"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"proxy's 404", 404, `<html>`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"new refusal", 422, `{"code":"moon_phase"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"refusal as 500", 500, `{"code":"invalid_request"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"not found as 500", 500, `{"code":"order_not_found"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"unavailable", 503, `{"code":"unavailable"}`, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"gateway", 502, ``, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"gateway timeout", 504, ``, payout.ObsNoAnswer, payout.ObsNoAnswer},
		{"order not found", 404, `{"code":"order_not_found"}`, payout.ObsNoAnswer, payout.ObsNeverReceived},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.status/100 == 3 {
				w.Header().Set("Location", "/v1/elsewhere")
				if r.URL.Path == "/v1/elsewhere" {
					t.Errorf("followed a redirect")
				}
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		s := newAdapter(t, server.URL, time.Second)
		if got := s.Send(context.Background(), payout.Order{Op: payout.OpTransfer, OrderNo: "p1", Request: []byte(`{}`)}); got.Kind != c.sent {
			t.Errorf("%s sent: %+v", c.name, got)
		}
		if got := s.Query(context.Background(), payout.OpTransfer, "p1"); got.Kind != c.queried {
			t.Errorf("%s queried: %+v", c.name, got)
		}
		s.Close()
		server.Close()
	}
}

// TestMismatchIsShown: the observation names the order of the answer, not of the query.
func TestMismatchIsShown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"order_no":"other","op":"transfer","account":"else","amount":8,"currency":"CNY","status":"succeeded"}`)
	}))
	defer server.Close()
	s := newAdapter(t, server.URL, time.Second)
	defer s.Close()
	got := s.Send(context.Background(), payout.Order{Op: payout.OpTransfer, OrderNo: "p1", Request: []byte(`{}`)})
	if got.OrderNo != "other" || got.Account != "else" || got.Amount != 8 {
		t.Errorf("%+v", got)
	}
}

// TestSilence: not sent only without a connection; otherwise the request may have left.
func TestSilence(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := gone.Addr().String()
	gone.Close()
	refused := newAdapter(t, "http://"+address, time.Second)
	cutting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"order_no"`)
		panic(http.ErrAbortHandler)
	}))
	defer cutting.Close()
	dropping := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer dropping.Close()
	holding := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is the end of the connection detected
		<-r.Context().Done()
	}))
	defer holding.Close()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	o := payout.Order{Op: payout.OpTransfer, OrderNo: "p1", Request: []byte(`{}`)}
	for _, c := range []struct {
		name string
		s    *Sandbox
		ctx  context.Context
		want payout.ObservationKind
	}{
		{"refused", refused, context.Background(), payout.ObsNotSent},
		{"cancelled before", newAdapter(t, dropping.URL, time.Second), cancelled, payout.ObsNotSent},
		{"dropped", newAdapter(t, dropping.URL, time.Second), context.Background(), payout.ObsNoAnswer},
		{"cut", newAdapter(t, cutting.URL, time.Second), context.Background(), payout.ObsNoAnswer},
		{"held", newAdapter(t, holding.URL, 100*time.Millisecond), context.Background(), payout.ObsNoAnswer},
	} {
		if got := c.s.Send(c.ctx, o); got.Kind != c.want || got.OrderNo != "p1" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestEncodeRequest(t *testing.T) {
	s := newAdapter(t, "http://127.0.0.1:1", time.Second)
	in := payout.Instruction{Op: payout.OpTransfer, OrderNo: "p1", Account: "u", Amount: money.Max, Currency: "CNY", Remark: "r"}
	raw, err := s.EncodeRequest(in)
	want := `{"order_no":"p1","account":"u","amount":9007199254740991,"currency":"CNY","remark":"r"}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v", raw, err)
	}
	for name, change := range map[string]func(*payout.Instruction){
		"zero":     func(i *payout.Instruction) { i.Amount = 0 },
		"negative": func(i *payout.Instruction) { i.Amount = -1 },
		"large":    func(i *payout.Instruction) { i.Amount = money.Max + 1 },
		"op":       func(i *payout.Instruction) { i.Op = "pay" },
		"not utf8": func(i *payout.Instruction) { i.Account = "\xff" },
	} {
		bad := in
		change(&bad)
		if raw, err := s.EncodeRequest(bad); err == nil {
			t.Errorf("%s: encoded as %s", name, raw)
		}
	}
}

func TestTotals(t *testing.T) {
	s, _ := startSandbox(t, "")
	ctx := context.Background()
	number := func(kind payout.Kind, n int) string { return payout.OrderNo(payout.ID(kind, testPacketID, n), 1) }
	for _, in := range []payout.Instruction{
		{Op: payout.OpCharge, OrderNo: number('c', 0), Account: "s", Amount: 100},
		{Op: payout.OpTransfer, OrderNo: number('p', 0), Account: "u", Amount: 30},
		{Op: payout.OpTransfer, OrderNo: number('p', 1), Account: "v~declined", Amount: 20},
		{Op: payout.OpRefund, OrderNo: number('r', 0), Account: "s", Amount: 50, ChargeOrderNo: number('c', 0)},
		{Op: payout.OpTransfer, OrderNo: number('h', 0), Account: "w", Amount: 9},
		{Op: payout.OpTransfer, OrderNo: payout.OrderNo(payout.ID('p', "z"+testPacketID[1:], 0), 1), Account: "u", Amount: 999},
	} {
		s.Send(ctx, order(t, s, in))
	}
	want := payout.ProviderTotals{Charged: 100, Transferred: 30, Refunded: 50}
	if got, err := s.Totals(ctx, testPacketID); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	s.key = "wrong"
	if got, err := s.Totals(ctx, testPacketID); !errors.Is(err, ErrAnswer) || got != (payout.ProviderTotals{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestReturns: returns are listed page by page in the order of their numbers, and an incomplete or
// unordered list is refused.
func TestReturns(t *testing.T) {
	s, _ := startSandbox(t, "")
	ctx := context.Background()
	number := func(n int) string { return payout.OrderNo(payout.ID(payout.KindPayout, testPacketID, n), 1) }
	for n, account := range []string{"u~returned", "v", "w~returned"} {
		s.Send(ctx, order(t, s, payout.Instruction{Op: payout.OpTransfer, OrderNo: number(n), Account: account, Amount: money.Fen(n + 1)}))
	}
	var page payout.ReturnPage
	wait.Until(t, "two payouts are returned", func() bool {
		var err error
		if page, err = s.Returns(ctx, payout.KindPayout, testPacketID, ""); err != nil {
			t.Fatal(err)
		}
		return len(page.Lines) >= 2
	})
	if l := page.Lines; l[0].OrderNo != number(0) || l[0].Amount != 1 || l[1].OrderNo != number(2) || l[1].Amount != 3 || page.Next != "" ||
		l[1].At.After(page.At) || page.At.Sub(l[0].At) > time.Minute {
		t.Errorf("%+v", page)
	}
	if page, err := s.Returns(ctx, payout.KindPayout, testPacketID, number(0)); err != nil || len(page.Lines) != 1 ||
		page.Lines[0].OrderNo != number(2) {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err := s.Returns(ctx, payout.KindRefund, testPacketID, ""); err != nil || len(page.Lines) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	prefix, at := "p"+testPacketID, time.Now().UTC()
	line := func(no string, amount money.Fen) statementItem {
		return statementItem{Seq: 1, Op: payout.OpReturn, OrderNo: no, Account: "u", Amount: amount, At: at}
	}
	end := number(2)
	for name, v := range map[string]returnsAnswer{
		"no list":     {At: at},
		"no time":     {Items: &[]statementItem{}},
		"foreign":     {At: at, Items: &[]statementItem{line("pz", 1)}},
		"no order":    {At: at, Items: &[]statementItem{line(number(2), 1), line(number(1), 1)}},
		"no amount":   {At: at, Items: &[]statementItem{line(number(2), 0)}},
		"other end":   {At: at, Items: &[]statementItem{line(number(1), 1)}, NextAfter: &end},
		"end of none": {At: at, Items: &[]statementItem{}, NextAfter: &end},
	} {
		if page, err := v.page(prefix, number(0)); err == nil {
			t.Errorf("%s: %+v", name, page)
		}
	}
}

func TestConfig(t *testing.T) {
	good := SandboxConfig{BaseURL: "http://127.0.0.1:8090/", APIKey: "k"}
	if _, err := NewSandbox(good); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("start", "provider",
		SandboxConfig{BaseURL: "http://h", APIKey: testKey, WebhookSecret: testSecret})
	if text := log.String(); strings.Contains(text, testKey) || strings.Contains(text, testSecret) || !strings.Contains(text, "http://h") {
		t.Errorf("log of the settings: %s", text)
	}
	for name, change := range map[string]func(*SandboxConfig){
		"no url":     func(c *SandboxConfig) { c.BaseURL = "" },
		"no scheme":  func(c *SandboxConfig) { c.BaseURL = "127.0.0.1:8090" },
		"path":       func(c *SandboxConfig) { c.BaseURL = "http://h/v1" },
		"password":   func(c *SandboxConfig) { c.BaseURL = "http://u:p@h" },
		"no key":     func(c *SandboxConfig) { c.APIKey = "" },
		"bad secret": func(c *SandboxConfig) { c.WebhookSecret = "whsec_!" },
		"timeout":    func(c *SandboxConfig) { c.Timeout = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := NewSandbox(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
