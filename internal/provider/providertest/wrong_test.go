package providertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
)

// wrong is the correct adapter with one defect. Nil members change nothing.
type wrong struct {
	*provider.Sandbox
	encode  func(payout.Instruction) payout.Instruction
	raw     func([]byte) []byte // changes a request in transit
	sent    func(payout.Observation) payout.Observation
	queried func(orderNo string, o payout.Observation) payout.Observation
	send    func(ctx context.Context, s *provider.Sandbox, o payout.Order) payout.Observation
	ctx     func(context.Context) context.Context
	limits  *payout.Limits
	verify  func(s *provider.Sandbox, h http.Header, body []byte) (string, string, error)
	page    func(payout.StatementPage, error) (payout.StatementPage, error)
	closed  func(error) error
}

func (w *wrong) CloseOrder(ctx context.Context, op payout.Op, orderNo string) error {
	err := w.Sandbox.CloseOrder(ctx, op, orderNo)
	if w.closed != nil {
		err = w.closed(err)
	}
	return err
}

func (w *wrong) Limits() payout.Limits {
	if w.limits != nil {
		return *w.limits
	}
	return w.Sandbox.Limits()
}

func (w *wrong) EncodeRequest(in payout.Instruction) ([]byte, error) {
	if w.encode != nil {
		in = w.encode(in)
	}
	return w.Sandbox.EncodeRequest(in)
}

func (w *wrong) Send(ctx context.Context, o payout.Order) payout.Observation {
	if w.ctx != nil {
		ctx = w.ctx(ctx)
	}
	if w.raw != nil {
		o.Request = w.raw(o.Request)
	}
	send := w.send
	if send == nil {
		send = func(ctx context.Context, s *provider.Sandbox, o payout.Order) payout.Observation {
			return s.Send(ctx, o)
		}
	}
	seen := send(ctx, w.Sandbox, o)
	if w.sent != nil {
		seen = w.sent(seen)
	}
	return seen
}

func (w *wrong) Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation {
	if w.ctx != nil {
		ctx = w.ctx(ctx)
	}
	seen := w.Sandbox.Query(ctx, op, orderNo)
	if w.queried != nil {
		seen = w.queried(orderNo, seen)
	}
	return seen
}

func (w *wrong) VerifyNotification(h http.Header, body []byte) (string, string, error) {
	if w.verify != nil {
		return w.verify(w.Sandbox, h, body)
	}
	return w.Sandbox.VerifyNotification(h, body)
}

func (w *wrong) Statement(ctx context.Context, day payout.Day, after string) (payout.StatementPage, error) {
	page, err := w.Sandbox.Statement(ctx, day, after)
	if w.page != nil {
		return w.page(page, err)
	}
	return page, err
}

// wrongHarness returns a defective adapter.
type wrongHarness struct {
	*sandboxHarness
	mistake   wrong
	transport func() http.RoundTripper // nil: the adapter's own
	own       Adapter
}

func (h *wrongHarness) make(url string) (Adapter, error) {
	var client *http.Client
	if h.transport != nil {
		client = &http.Client{Transport: h.transport()}
	}
	s, err := connect(url, client)
	if err != nil {
		return nil, err
	}
	w := h.mistake
	w.Sandbox = s
	return &w, nil
}

func (h *wrongHarness) Adapter() Adapter { return h.own }

func (h *wrongHarness) Through(url string) (Adapter, error) { return h.make(url) }

// turn changes one kind of observation into another.
func turn(from, to payout.ObservationKind) func(payout.Observation) payout.Observation {
	return func(o payout.Observation) payout.Observation {
		if o.Kind == from {
			o.Kind = to
		}
		return o
	}
}

func queriedTurn(from, to payout.ObservationKind) func(string, payout.Observation) payout.Observation {
	return func(_ string, o payout.Observation) payout.Observation { return turn(from, to)(o) }
}

// eager hides a repeat of a request, or follows a redirect.
type eager struct {
	base http.RoundTripper
	when func(*http.Response, error) bool
}

func (e eager) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := e.base.RoundTrip(r)
	if !e.when(res, err) {
		return res, err
	}
	if err == nil {
		_ = res.Body.Close()
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return e.base.RoundTrip(again)
}

func (e eager) CloseIdleConnections() { e.base.(*http.Transport).CloseIdleConnections() }

func transport(when func(*http.Response, error) bool) func() http.RoundTripper {
	return func() http.RoundTripper { return eager{&http.Transport{}, when} }
}

// TestCatches: each of these defects would lose money, and is found by the named case, which a
// correct adapter passes.
func TestCatches(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]struct {
		mistake   wrong
		transport func() http.RoundTripper
		by        string
	}{
		"a timeout is a refusal": {wrong{sent: turn(payout.ObsNoAnswer, payout.ObsDeclined)}, nil, "no answer, money moved"},
		"a timeout was never sent": {wrong{sent: turn(payout.ObsNoAnswer, payout.ObsNotSent)}, nil,
			"a connection that breaks leaves the outcome open"},
		"a server error is a refusal": {wrong{sent: turn(payout.ObsNoAnswer, payout.ObsDeclined)}, nil, "a server error, money moved"},
		"a server error that lands later is a refusal": {wrong{sent: turn(payout.ObsNoAnswer, payout.ObsDeclined)}, nil,
			"a server error, lands later"},
		"a server error may be sent again": {wrong{sent: turn(payout.ObsNoAnswer, payout.ObsRetryAfter)}, nil,
			"an answer that says nothing is an unknown outcome"},
		"any 404 is never received": {wrong{queried: notFoundIsNever}, nil, "a not found from another source is not never received"},
		"an unanswered query is not found": {wrong{queried: queriedTurn(payout.ObsNoAnswer, payout.ObsNeverReceived)}, nil,
			"a query without answer says nothing"},
		"a rate limited query is not found": {wrong{queried: queriedTurn(payout.ObsRetryAfter, payout.ObsNeverReceived)}, nil,
			"a query that is rate limited says nothing"},
		"pending is success": {wrong{sent: turn(payout.ObsPending, payout.ObsSucceeded)}, nil, "pending, then final"},
		"pending is a refusal": {wrong{queried: queriedTurn(payout.ObsPending, payout.ObsDeclined),
			sent: turn(payout.ObsPending, payout.ObsDeclined)}, nil, "pending, then final"},
		"returned is still success": {wrong{queried: queriedTurn(payout.ObsReturned, payout.ObsSucceeded)}, nil, "success, then returned"},
		"waiting for the recipient: pending": {wrong{sent: turn(payout.ObsNeedsRecipient, payout.ObsPending)}, nil,
			"the recipient has to confirm"},
		"unpaid is a refusal": {wrong{queried: queriedTurn(payout.ObsNeedsPayer, payout.ObsDeclined)}, nil,
			"a charge waits for its sender, and is paid"},
		"nothing to pay with": {wrong{sent: func(o payout.Observation) payout.Observation { o.Action = nil; return o }}, nil,
			"a charge waits for its sender, and is paid"},
		"closed is pending": {wrong{queried: queriedTurn(payout.ObsDeclined, payout.ObsPending)}, nil,
			"a charge that was closed is not paid"},
		"a close without answer is one":     {wrong{closed: func(error) error { return nil }}, nil, "a close without an answer is an error"},
		"low balance is a refusal":          {wrong{sent: lowIsDeclined}, nil, "low balance stores nothing and passes"},
		"low balance has a code of its own": {wrong{sent: codeOf("NOT_ENOUGH")}, nil, "low balance stores nothing and passes"},
		"a rate limit without a pause":      {wrong{sent: noPause}, nil, "a rate limit stores nothing and passes"},
		"a conflict is success": {wrong{sent: turn(payout.ObsDeclined, payout.ObsSucceeded)}, nil,
			"other parameters under the same number are refused"},
		"a refusal without its code": {wrong{queried: func(_ string, o payout.Observation) payout.Observation { o.Code = ""; return o }},
			nil, "a refusal is in both answers"},
		"amounts as float32":                   {wrong{encode: asFloat}, nil, "the smallest and the largest amounts"},
		"accounts in lower case":               {wrong{encode: lowerCase}, nil, "accounts are bytes"},
		"accounts are trimmed":                 {wrong{encode: trimmed}, nil, "accounts are bytes"},
		"requests are not repeatable":          {wrong{encode: random}, nil, "a request is the same bytes whenever it is encoded"},
		"the request is tidied up":             {wrong{raw: bytes.TrimSpace}, nil, "what is sent are the stored bytes"},
		"it sends twice by itself":             {wrong{send: twice}, nil, "one send is one request"},
		"its transport repeats":                {wrong{}, transport(serverError), "one send is one request"},
		"its transport follows":                {wrong{}, transport(redirected), "a redirect is not followed"},
		"the number queried for, not answered": {wrong{queried: own}, nil, "an answer about another order is not this order's"},
		"the answer's amount is left out":      {wrong{sent: noAmount}, nil, "an answer with another amount says so"},
		"its statement has no origin": {
			wrong{sent: anonymous, queried: func(_ string, o payout.Observation) payout.Observation { return anonymous(o) }}, nil,
			"charge, transfer and refund succeed and are found"},
		"one id for all": {
			wrong{sent: oneID, queried: func(_ string, o payout.Observation) payout.Observation { return oneID(o) }}, nil,
			"charge, transfer and refund succeed and are found"},
		"the context is ignored":     {wrong{ctx: context.WithoutCancel}, nil, "a context that has ended sends nothing"},
		"its end is ignored":         {wrong{ctx: context.WithoutCancel}, nil, "a context that ends in mid-call leaves the outcome open"},
		"it waits twice":             {wrong{send: twice}, nil, "no answer, money moved"},
		"a refused key is a refusal": {wrong{sent: keyIsDeclined}, nil, "a refused key is no payment's failure"},
		"no landing window": {wrong{limits: &payout.Limits{Remembers: 30 * 24 * time.Hour, RefundWindow: provider.SandboxRefundWindow}}, nil,
			"the name and the limits can be stored and used"},
		"it forgets within a day": {wrong{limits: &payout.Limits{LandingWindow: time.Second, Remembers: 24 * time.Hour,
			RefundWindow: provider.SandboxRefundWindow}}, nil,
			"the name and the limits can be stored and used"},
		"no refund window": {wrong{limits: &payout.Limits{LandingWindow: 10 * time.Second, Remembers: 30 * 24 * time.Hour}}, nil,
			"the name and the limits can be stored and used"},
		"any notification is taken": {wrong{verify: believes}, nil, "a notification that was changed, or is not the provider's, is " +
			"refused"},
		"old notifications are taken":             {wrong{verify: timeless}, nil, "a notification that is too old or too new is refused"},
		"a statement loses its last line":         {wrong{page: lastLine}, nil, "the statement lists every movement once, with its amount"},
		"a statement has no position to continue": {wrong{page: fromTheStart}, nil, "the statement of today continues where the last read ended"},
		"a broken statement is empty":             {wrong{page: emptyInstead}, nil, "a statement that breaks off is no statement"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newSandboxHarness(t)
			wh := &wrongHarness{sandboxHarness: h, mistake: m.mistake, transport: m.transport}
			own, err := wh.make(h.url)
			if err != nil {
				t.Fatal(err)
			}
			defer own.(*wrong).Close()
			wh.own = own
			i := slices.IndexFunc(cases(), func(c testCase) bool { return c.name == m.by })
			if i < 0 {
				t.Fatalf("there is no case %q", m.by)
			}
			cfg := sandboxConfig(wh)
			hasty := cfg
			hasty.Within = time.Second // the defect is permanent
			if r := examine(t.Context(), hasty, cases()[i]); r.verdict != failed {
				t.Errorf("%q %s", m.by, r.verdict)
			}
			wh.mistake = wrong{}
			wh.transport = transport(func(*http.Response, error) bool { return false })
			right, err := wh.make(h.url)
			if err != nil {
				t.Fatal(err)
			}
			defer right.(*wrong).Close()
			wh.own = right
			if r := examine(t.Context(), cfg, cases()[i]); r.verdict != passed {
				t.Errorf("without a mistake: %q %s: %q", m.by, r.verdict, r.failures)
			}
		})
	}
}

func notFoundIsNever(_ string, o payout.Observation) payout.Observation {
	if o.Kind == payout.ObsNoAnswer && (o.Code == "http_404" || o.Code == "not_found") {
		o.Kind = payout.ObsNeverReceived
	}
	return o
}

func lowIsDeclined(o payout.Observation) payout.Observation {
	if o.Code == payout.CodeLowBalance {
		o.Kind = payout.ObsDeclined
	}
	return o
}

func codeOf(code string) func(payout.Observation) payout.Observation {
	return func(o payout.Observation) payout.Observation {
		if o.Kind == payout.ObsRetryAfter {
			o.Code = code
		}
		return o
	}
}

func noPause(o payout.Observation) payout.Observation { o.RetryAfter = 0; return o }

func asFloat(in payout.Instruction) payout.Instruction {
	in.Amount = min(money.Fen(float32(in.Amount)), money.Max)
	return in
}

func lowerCase(in payout.Instruction) payout.Instruction {
	in.Account = strings.ToLower(in.Account)
	return in
}

func trimmed(in payout.Instruction) payout.Instruction {
	in.Account = strings.TrimSpace(in.Account)
	return in
}

func random(in payout.Instruction) payout.Instruction { in.Remark = rand.Text(); return in }

func twice(ctx context.Context, s *provider.Sandbox, o payout.Order) payout.Observation {
	seen := s.Send(ctx, o)
	if seen.Kind == payout.ObsNoAnswer {
		return s.Send(ctx, o)
	}
	return seen
}

func serverError(res *http.Response, err error) bool { return err == nil && res.StatusCode >= 500 }

func redirected(res *http.Response, err error) bool {
	return err == nil && res.StatusCode >= 300 && res.StatusCode < 400
}

func own(orderNo string, o payout.Observation) payout.Observation { o.OrderNo = orderNo; return o }

func noAmount(o payout.Observation) payout.Observation { o.Amount = 0; return o }

func anonymous(o payout.Observation) payout.Observation { o.Adapter = payout.Adapter{}; return o }

func oneID(o payout.Observation) payout.Observation { o.ID = "1"; return o }

func keyIsDeclined(o payout.Observation) payout.Observation {
	if o.Code == "unauthenticated" {
		o.Kind = payout.ObsDeclined
	}
	return o
}

func believes(_ *provider.Sandbox, h http.Header, body []byte) (string, string, error) {
	if i := bytes.Index(body, []byte(`"order_no":"`)); i >= 0 {
		return h.Get("webhook-id"), string(body[i+12 : i+12+payout.OrderNoLen]), nil
	}
	return h.Get("webhook-id"), "", nil
}

// timeless checks the signature as if the notification had been sent now.
func timeless(s *provider.Sandbox, h http.Header, body []byte) (string, string, error) {
	event, orderNo, err := s.VerifyNotification(h, body)
	if err == nil {
		return event, orderNo, nil
	}
	fresh := (&sandboxHarness{})
	again, signErr := fresh.Sign(true, h.Get("webhook-id"), time.Now(), body)
	if signErr != nil || h.Get("webhook-signature") == "" {
		return "", "", err
	}
	return s.VerifyNotification(again, body)
}

func lastLine(p payout.StatementPage, err error) (payout.StatementPage, error) {
	if n := len(p.Lines); n > 0 {
		p.Lines = p.Lines[:n-1]
	}
	return p, err
}

func fromTheStart(p payout.StatementPage, err error) (payout.StatementPage, error) {
	if p.Next == "" {
		p.Last = "0"
	}
	return p, err
}

func emptyInstead(p payout.StatementPage, _ error) (payout.StatementPage, error) { return p, nil }

// limited is a provider that supports only some situations.
type limited struct{ *sandboxHarness }

func (l limited) Arrange(s Situation) (string, func(), error) {
	if s == Returns || s == NeedsRecipient {
		return "", nil, ErrUnsupported
	}
	return l.sandboxHarness.Arrange(s)
}

func (l limited) Through(string) (Adapter, error) { return nil, ErrUnsupported }

func (l limited) Moved(string) (int, error) { return 0, ErrUnsupported }

// TestListsWhatItCannot: unsupported cases are in the table, and have to equal the agreed list.
func TestListsWhatItCannot(t *testing.T) {
	cfg := sandboxConfig(limited{newSandboxHarness(t)})
	var results []result
	var missing []string
	for _, c := range cases() {
		r := examine(t.Context(), cfg, c)
		if r.verdict == failed {
			t.Errorf("%s: %v", r.name, r.failures)
		}
		if r.verdict == unsupported {
			missing = append(missing, r.name)
		}
		results = append(results, r)
	}
	if len(missing) != len(answerCases())+1+3 { // all cases with a proxy, one of the statement, two situations in three cases
		t.Errorf("cannot: %q", missing)
	}
	for _, name := range missing {
		if !strings.Contains(table("x", results), "cannot be arranged  "+name) {
			t.Errorf("%q is not in the table", name)
		}
	}
	cfg.Unsupported = missing
	if says := disagreement(cfg, results); len(says) != 0 {
		t.Errorf("agreed, but %q", says)
	}
	cfg.Unsupported = append(slices.Clone(missing[1:]), "there is no such case", "pending, then final")
	if says := disagreement(cfg, results); len(says) != 3 {
		t.Errorf("three disagreements, found %q", says)
	}
}
