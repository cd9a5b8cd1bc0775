package sandbox

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"hongbao/test/wait"
)

const testKey = "sandbox-test-key"

var testSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

func TestMain(m *testing.M) {
	if path := os.Getenv(childDBEnv); path != "" {
		runChild(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// stand is a running sandbox and what a test needs with it.
type stand struct {
	t      *testing.T
	cfg    Config
	server *Server
	base   string
	client *http.Client
	cancel context.CancelFunc
	served chan error
	hooks  *receiver
}

// newStand starts a sandbox with short times on a new database.
func newStand(t *testing.T, change ...func(*Config)) *stand {
	t.Helper()
	st := &stand{t: t, hooks: newReceiver(t), client: &http.Client{
		// A Go client repeats a GET when a kept connection is closed.
		Transport: &http.Transport{DisableKeepAlives: true}}}
	st.cfg = Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(t.TempDir(), "sandbox.db"), APIKey: testKey,
		WebhookURL: st.hooks.server.URL + "/v1/provider-notifications/sandbox", WebhookSecret: testSecret,
		Logger: slog.New(slog.DiscardHandler), HoldTimeout: 80 * time.Millisecond, PendingAfter: 60 * time.Millisecond,
		ReturnAfter: 60 * time.Millisecond, RetryPauses: []time.Duration{20 * time.Millisecond}}
	for _, c := range change {
		c(&st.cfg)
	}
	st.start()
	t.Cleanup(func() {
		st.stop()
		st.client.CloseIdleConnections()
	})
	return st
}

func (st *stand) start() {
	st.t.Helper()
	server, err := Open(st.cfg)
	if err != nil {
		st.t.Fatalf("Open: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	st.server, st.cancel, st.served = server, cancel, make(chan error, 1)
	st.base = "http://" + server.Addr().String()
	go func() { st.served <- server.Serve(ctx) }()
}

// stop asserts that stopping is clean and does not wait for held connections.
func (st *stand) stop() {
	st.t.Helper()
	if st.cancel == nil {
		return
	}
	st.cancel()
	st.cancel = nil
	select {
	case err := <-st.served:
		if err != nil {
			st.t.Errorf("Serve: %v", err)
		}
	case <-time.After(wait.Limit()):
		st.t.Fatal("Serve did not return")
	}
	if err := st.server.Close(); err != nil {
		st.t.Errorf("Close: %v", err)
	}
}

func (st *stand) restart() {
	st.t.Helper()
	st.stop()
	st.start()
}

// result is an answer; err is set when there was none.
type result struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (r result) order(t *testing.T) orderView {
	t.Helper()
	var v orderView
	if r.err != nil || r.status != 200 {
		t.Fatalf("want an order, got %s", r)
	}
	if err := json.Unmarshal(r.body, &v, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("order %s: %v", r.body, err)
	}
	return v
}

func (r result) String() string {
	return fmt.Sprintf("status %d, error %v, body %s", r.status, r.err, r.body)
}

// code is the problem's code, "" when the answer is not a problem.
func (r result) code() string {
	var p problem
	if r.err != nil || json.Unmarshal(r.body, &p) != nil {
		return ""
	}
	return p.Code
}

func (st *stand) do(method, path, body string, change ...func(*http.Request)) result {
	st.t.Helper()
	req, err := http.NewRequest(method, st.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		st.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(req)
	}
	res, err := st.client.Do(req)
	if err != nil {
		return result{err: err}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return result{status: res.StatusCode, header: res.Header, body: raw, err: err}
}

func (st *stand) send(op, orderNo, account string, amount int64) result {
	st.t.Helper()
	return st.sendParams(params{Op: op, OrderNo: orderNo, Account: account, Amount: amount, Currency: "CNY", Remark: "test"})
}

func (st *stand) sendParams(p params) result {
	st.t.Helper()
	return st.do("POST", "/v1/"+p.Op+"s", sendJSON(p))
}

func sendJSON(p params) string {
	body := map[string]any{"order_no": p.OrderNo, "account": p.Account, "amount": p.Amount, "currency": p.Currency, "remark": p.Remark}
	if p.ChargeOrderNo != "" {
		body["charge_order_no"] = p.ChargeOrderNo
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (st *stand) query(orderNo string) result {
	st.t.Helper()
	return st.do("GET", "/v1/orders/"+orderNo, "")
}

func (st *stand) faults(rules ...Rule) {
	st.t.Helper()
	if rules == nil {
		rules = []Rule{}
	}
	raw, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		st.t.Fatal(err)
	}
	if r := st.do("PUT", "/_faults", string(raw)); r.status != 204 {
		st.t.Fatalf("PUT /_faults: %s", r)
	}
}

func (st *stand) unfreeze(account string) {
	st.t.Helper()
	if r := st.do("POST", "/_unfreeze/"+url.PathEscape(account), ""); r.status != 204 {
		st.t.Fatalf("unfreeze: %s", r)
	}
}

func (st *stand) confirm(orderNo string) result {
	st.t.Helper()
	return st.do("POST", "/_confirm/"+orderNo, "")
}

// movements reads all of them, page by page, and checks that seqs ascend without gaps.
func (st *stand) movements() []movementView {
	st.t.Helper()
	var all []movementView
	for {
		var p movementPage
		r := st.do("GET", fmt.Sprintf("/_movements?after=%d&limit=1000", len(all)), "", withoutKey)
		if r.err != nil || json.Unmarshal(r.body, &p) != nil {
			st.t.Fatalf("movements: %s", r)
		}
		if len(p.Items) == 0 {
			return all
		}
		for _, m := range p.Items {
			if m.Seq != uint64(len(all))+1 || m.Amount <= 0 {
				st.t.Fatalf("movement %+v after %d movements", m, len(all))
			}
			all = append(all, m)
		}
	}
}

// moved sums the movements of one order by op.
func (st *stand) moved(orderNo string) string {
	st.t.Helper()
	text := ""
	for _, m := range st.movements() {
		if m.OrderNo == orderNo {
			text += fmt.Sprintf("%s %d;", m.Op, m.Amount)
		}
	}
	return text
}

func withoutKey(r *http.Request) { r.Header.Del("Authorization") }

// received is a notification whose signature was right.
type received struct {
	Notification
	header string
	body   string
	at     time.Time
}

// receiver receives notifications as the platform would.
type receiver struct {
	server *httptest.Server
	mu     sync.Mutex
	got    []received
	bad    []error
	away   bool // everything is answered with 503
	tries  int
}

func newReceiver(t *testing.T) *receiver {
	hook, err := standardwebhooks.NewWebhook(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	rc := &receiver{}
	rc.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rc.mu.Lock()
		defer rc.mu.Unlock()
		rc.tries++
		n := received{header: r.Header.Get(standardwebhooks.HeaderWebhookID), body: string(body), at: time.Now()}
		err := errors.Join(hook.Verify(body, r.Header), json.Unmarshal(body, &n.Notification, json.RejectUnknownMembers(true)))
		if err != nil || n.header != n.EventID || r.URL.Path != "/v1/provider-notifications/sandbox" {
			rc.bad = append(rc.bad, fmt.Errorf("%s: %w", body, err))
		}
		if rc.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		rc.got = append(rc.got, n)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(func() {
		rc.server.Close()
		for _, err := range rc.bad {
			t.Errorf("bad notification: %v", err)
		}
	})
	return rc
}

// refuse makes the receiver answer everything with 503, or stop that.
func (rc *receiver) refuse(all bool) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.away = all
}

// of returns the notifications accepted for an order.
func (rc *receiver) of(orderNo string) []received {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	var out []received
	for _, n := range rc.got {
		if n.OrderNo == orderNo {
			out = append(out, n)
		}
	}
	return out
}

func (rc *receiver) triesSoFar() int {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return rc.tries
}
