package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/provider/sandbox"
	"hongbao/test/harness"
)

// front is the network between the adapter and the providers. It records every call, can lose,
// hold and alter messages, and routes each packet's calls to the provider of its row.
type front struct {
	url  string
	mu   sync.Mutex
	rows map[string]*line // by packet id
}

// line is one row's way to its provider.
type line struct {
	t       testing.TB
	sandbox string // the provider's address
	hook    string // where notifications go on to
	// between sees every call; forward hands it on to the provider. nil: only hands on.
	between func(x *exchange, forward func() reply) reply
	// notified sees every notification before deliver hands it on; nil: only hands on.
	notified func(n notice, deliver func() int) int

	mu     sync.Mutex
	calls  []*exchange
	bodies map[string][]byte // the first request of each order number
}

// exchange is one call to the provider and its answer.
type exchange struct {
	verb    string // send, ask or close
	Send    bool
	Kind    payout.Kind
	OrderNo string
	Attempt int
	N       int // of this verb and order number, from 1
	Body    []byte

	path  string
	gone  <-chan struct{} // the caller has given up
	label string          // what was answered; "" while it is under way
}

// reply is an answer on its way to the adapter.
type reply struct {
	status int
	header http.Header
	body   []byte
	silent bool   // the connection is cut without an answer
	cut    bool   // the body ends in its middle
	label  string // how the table calls it; "" after its content
}

// notice is one delivery of a notification.
type notice struct {
	EventID string `json:"event_id"`
	Type    string `json:"type"`
	OrderNo string `json:"order_no"`
	header  http.Header
	body    []byte
}

var silence = reply{silent: true}

// problemReply is a refusal as the provider would make it.
func problemReply(status int, code string) reply {
	return reply{status: status, body: fmt.Appendf(nil, `{"code":%q,"detail":"for the test"}`, code)}
}

func newFront(t testing.TB) *front {
	f := &front{rows: map[string]*line{}}
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // cut connections are the point
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	f.url = server.URL
	return f
}

// plug gives a packet a provider of its own, with these rules.
func (f *front) plug(t testing.TB, id, hook string, rules []rule) *line {
	t.Helper()
	l := &line{t: t, hook: hook, bodies: map[string][]byte{}}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.sandbox = "http://" + listener.Addr().String()
	server := must(sandbox.Open(sandbox.Config{Listener: listener, DBPath: filepath.Join(t.TempDir(), "sandbox.db"),
		APIKey:     harness.ProviderKey,
		WebhookURL: f.url + "/hook/" + id, WebhookSecret: harness.WebhookSecret,
		Logger: slog.New(slog.DiscardHandler), HoldTimeout: 2 * providerTimeout,
		PendingAfter: 1200 * time.Millisecond, ReturnAfter: 1200 * time.Millisecond,
		RetryPauses: []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done; _ = server.Close() })
	l.setRules(t, rules)
	f.mu.Lock()
	f.rows[id] = l
	f.mu.Unlock()
	return l
}

// rule is one fault of the provider.
type rule struct {
	Op            string  `json:"op"`
	Kind          string  `json:"kind"`
	Rate          float64 `json:"rate"`
	Times         *int    `json:"times"`
	AccountPrefix string  `json:"account_prefix"`
	DelayMS       int     `json:"delay_ms"`
}

// fault is a rule that fires times times; 0 is always.
func fault(op, kind string, times int) rule {
	r := rule{Op: op, Kind: kind, Rate: 1}
	if times > 0 {
		r.Times = &times
	}
	return r
}

func (r rule) String() string {
	s := r.Op + " " + r.Kind
	if r.Rate < 1 {
		s = fmt.Sprintf("%s at %.1f", s, r.Rate)
	}
	if r.Times != nil && *r.Times > 1 {
		s += " ×" + strconv.Itoa(*r.Times)
	}
	if r.Times == nil {
		s += " always"
	}
	return s
}

func (l *line) setRules(t testing.TB, rules []rule) {
	t.Helper()
	if rules == nil {
		rules = []rule{}
	}
	l.control(t, http.MethodPut, "/_faults", map[string]any{"rules": rules})
}

func (l *line) control(t testing.TB, method, path string, body any) {
	t.Helper()
	(&rig{url: l.sandbox}).call(t, method, path, body, nil)
}

func (f *front) line(packetID string) *line {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rows[packetID]
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if id, ok := strings.CutPrefix(r.URL.Path, "/hook/"); ok {
		w.WriteHeader(f.line(id).notify(r.Header, body))
		return
	}
	verb := "ask"
	orderNo, _ := strings.CutPrefix(r.URL.Path, "/v1/orders/")
	if of, ok := strings.CutPrefix(r.URL.Path, "/v1/charges/"); ok {
		orderNo, verb = strings.TrimSuffix(of, "/close"), "close"
	}
	if prefix := r.URL.Query().Get("prefix"); prefix != "" { // totals, for the proof: not a call about an order
		l := f.line(prefix[1:])
		write(w, l.forward(r.Context(), r.Method, r.URL.RequestURI(), nil))
		return
	}
	if orderNo == r.URL.Path {
		verb = "send"
		var sent struct {
			OrderNo string `json:"order_no"`
		}
		if json.Unmarshal(body, &sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		orderNo = sent.OrderNo
	}
	parts, err := payout.Parse(orderNo)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l := f.line(parts.PacketID)
	if l == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	x := &exchange{verb: verb, Send: verb == "send", Kind: parts.Kind, OrderNo: orderNo, Attempt: parts.Attempt, Body: body,
		path: r.URL.RequestURI(), gone: r.Context().Done()}
	l.begin(x)
	forward := func() reply { return l.forward(r.Context(), r.Method, x.path, body) }
	var a reply
	if l.between != nil {
		a = l.between(x, forward)
	} else {
		a = forward()
	}
	if r.Context().Err() != nil {
		a = silence // nobody hears it any more
	}
	l.end(x, a)
	write(w, a)
}

func write(w http.ResponseWriter, a reply) {
	if a.silent {
		panic(http.ErrAbortHandler)
	}
	for name, values := range a.header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	if a.cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
		a.body = a.body[:len(a.body)/2]
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// begin writes a call down; a repeated request must be the same byte for byte.
func (l *line) begin(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.OrderNo == x.OrderNo && c.verb == x.verb {
			x.N++
		}
	}
	x.N++
	l.calls = append(l.calls, x)
	if !x.Send {
		return
	}
	if first, ok := l.bodies[x.OrderNo]; ok && !bytes.Equal(first, x.Body) {
		l.t.Errorf("send %d of %s is not the first one byte for byte:\n%s\n%s", x.N, x.OrderNo, first, x.Body)
	}
	if _, ok := l.bodies[x.OrderNo]; !ok {
		l.bodies[x.OrderNo] = x.Body
	}
}

func (l *line) end(x *exchange, a reply) {
	label := a.label
	if label == "" {
		label = a.says()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x.label = label
}

// says names an answer: the order's status, the problem's code, or silence.
func (a reply) says() string {
	if a.silent {
		return "silence"
	}
	var v struct{ Status, Code any }
	if json.Unmarshal(a.body, &v) != nil {
		return fmt.Sprintf("http %d", a.status)
	}
	if status, ok := v.Status.(string); ok && a.status == http.StatusOK {
		return status
	}
	if code, ok := v.Code.(string); ok {
		return code
	}
	return fmt.Sprintf("http %d", a.status)
}

var direct = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// forward hands a call to the provider; an error on the way is silence.
func (l *line) forward(ctx context.Context, method, uri string, body []byte) reply {
	req, err := http.NewRequestWithContext(ctx, method, l.sandbox+uri, bytes.NewReader(body))
	if err != nil {
		return silence
	}
	req.Header.Set("Authorization", "Bearer "+harness.ProviderKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := direct.Do(req)
	if err != nil {
		return silence
	}
	defer func() { _ = res.Body.Close() }()
	a := reply{status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(res.Body); err != nil {
		return silence
	}
	return a
}

// land delivers a send that was held after its caller timed out.
func (l *line) land(t testing.TB, x *exchange) string {
	t.Helper()
	a := l.forward(t.Context(), http.MethodPost, x.path, x.Body)
	if a.silent {
		t.Fatalf("the held send of %s could not be delivered", x.OrderNo)
	}
	return a.says()
}

// notify hands a notification on, as the row wants it.
func (l *line) notify(header http.Header, body []byte) int {
	if l == nil {
		return http.StatusServiceUnavailable
	}
	n := notice{header: header, body: body}
	if json.Unmarshal(body, &n) != nil {
		return http.StatusBadRequest
	}
	deliver := func() int { return l.deliver(n) }
	if l.notified != nil {
		return l.notified(n, deliver)
	}
	return deliver()
}

// deliver posts a notification to the API and returns the status of its answer.
func (l *line) deliver(n notice) int {
	req, err := http.NewRequest(http.MethodPost, l.hook, bytes.NewReader(n.body))
	if err != nil {
		return http.StatusInternalServerError
	}
	for name, values := range n.header {
		if strings.HasPrefix(strings.ToLower(name), "webhook-") || name == "Content-Type" {
			req.Header[name] = values
		}
	}
	res, err := direct.Do(req)
	if err != nil {
		return http.StatusServiceUnavailable
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// seen renders the calls about one payment: verb and answer, "#n" before those
// of later order numbers.
func (l *line) seen(paymentID string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, x := range l.calls {
		if x.OrderNo[:payout.IDLen] != paymentID {
			continue
		}
		if x.Attempt > 1 {
			fmt.Fprintf(&b, "#%d ", x.Attempt)
		}
		label := x.label
		if label == "" {
			label = "under way"
		}
		fmt.Fprintf(&b, "%s %s; ", x.verb, label)
	}
	return b.String()
}

// sends counts the sends about a payment.
func (l *line) sends(paymentID string) int {
	return strings.Count("; "+l.seen(paymentID), "send ")
}

// callPattern turns a row's calls, such as "send internal; ask succeeded+", into a pattern for
// seen. A + is once or more often, * any number of times, and "..." any calls. A send may follow
// further queries that find nothing: a delayed send is queried before it leaves.
func callPattern(calls string) *regexp.Regexp {
	const early = "(?:(?:#[0-9]+ )?ask (?:order_not_found|NOT_FOUND); )*"
	var b strings.Builder
	b.WriteString("^")
	if calls != "" {
		for part := range strings.SplitSeq(calls, "; ") {
			times := ""
			if part == "..." {
				b.WriteString("(?:[^;]*; )*")
				continue
			}
			if n := len(part) - 1; part[n] == '+' || part[n] == '*' {
				part, times = part[:n], part[n:]
			}
			if strings.Contains(part, "send ") {
				b.WriteString(early)
			}
			fmt.Fprintf(&b, "(?:%s; )%s", regexp.QuoteMeta(part), times)
		}
	}
	b.WriteString("$")
	return regexp.MustCompile(b.String())
}

// moved counts the movements under a payment's order numbers.
func (l *line) moved(t testing.TB, packetID, paymentID string) (moves []movement) {
	t.Helper()
	for _, m := range (&rig{url: l.sandbox}).movements(t, packetID) {
		if m.OrderNo[:payout.IDLen] == paymentID {
			moves = append(moves, m)
		}
	}
	return moves
}
