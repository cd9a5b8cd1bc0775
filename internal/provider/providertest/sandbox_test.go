package providertest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"hongbao/internal/provider"
	"hongbao/internal/provider/sandbox"
	"hongbao/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sandboxKey = "conformance-key"

var (
	sandboxSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	otherSecret   = "whsec_" + base64.StdEncoding.EncodeToString([]byte("fedcba9876543210fedcba9876543210"))
)

// callTimeout is how long a call without an answer takes in these tests.
const callTimeout = 2 * time.Second

// sandboxHarness is the real sandbox provider and its adapter.
type sandboxHarness struct {
	url     string
	adapter *provider.Sandbox
	client  http.Client

	mu        sync.Mutex
	accounts  int
	rules     map[int]string
	delivered map[string]delivery // by order number
}

type delivery struct {
	header http.Header
	body   []byte
}

func newSandboxHarness(t *testing.T) *sandboxHarness {
	t.Helper()
	h := &sandboxHarness{rules: map[int]string{}, delivered: map[string]delivery{},
		client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	hook := httptest.NewServer(http.HandlerFunc(h.receive))
	server, err := sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(t.TempDir(), "p.db"), APIKey: sandboxKey,
		WebhookURL: hook.URL, WebhookSecret: sandboxSecret, Logger: slog.New(slog.DiscardHandler),
		HoldTimeout: time.Hour, PendingAfter: 50 * time.Millisecond, ReturnAfter: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	h.url = "http://" + server.Addr().String()
	if h.adapter, err = connect(h.url, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.adapter.Close()
		cancel()
		if err := errors.Join(<-served, server.Close()); err != nil {
			t.Errorf("stop: %v", err)
		}
		hook.Close()
	})
	return h
}

func connect(url string, client *http.Client) (*provider.Sandbox, error) {
	return provider.NewSandbox(provider.SandboxConfig{BaseURL: url, APIKey: sandboxKey, WebhookSecret: sandboxSecret, Timeout: callTimeout,
		HTTPClient: client})
}

func sandboxConfig(h Harness) Config {
	return Config{Harness: h, Timeout: callTimeout, Within: wait.Limit(), Currency: "CNY"}
}

// TestSandbox: the sandbox's adapter passes, and every case can be arranged.
func TestSandbox(t *testing.T) {
	t.Parallel()
	Run(t, sandboxConfig(newSandboxHarness(t)))
}

func (h *sandboxHarness) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var n sandbox.Notification
	if err != nil || json.Unmarshal(body, &n) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.delivered[n.OrderNo] = delivery{r.Header.Clone(), body}
	h.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// Pay implements Payer.
func (h *sandboxHarness) Pay(orderNo string) error {
	return h.call(http.MethodPost, "/_pay/"+orderNo, "", nil)
}

func (h *sandboxHarness) Adapter() Adapter { return h.adapter }

func (h *sandboxHarness) Upstream() string { return h.url }

func (h *sandboxHarness) Through(baseURL string) (Adapter, error) { return connect(baseURL, nil) }

var suffixes = map[Situation]string{Succeeds: "", Declines: "~declined", StaysPending: "~pending", NeedsRecipient: "~confirm",
	Returns: "~returned"}

// faults are the situations made by a fault rule: {op, kind}.
var faults = map[Situation][2]string{
	LowBalance: {"transfer", "low_balance"}, RateLimited: {"transfer", "rate_limit"}, SilentBefore: {"transfer", "timeout_before"},
	SilentAfter: {"transfer", "timeout_after"}, ErrorBefore: {"transfer", "error_before"}, ErrorAfter: {"transfer", "error_after"},
	ErrorLate:   {"transfer", "error_late"},
	QuerySilent: {"query", "timeout_before"}, QueryError: {"query", "error_before"}, QueryLimited: {"query", "rate_limit"},
	NotFoundYet: {"query", "not_found_yet"},
}

func (h *sandboxHarness) Arrange(s Situation) (string, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.accounts++
	n := h.accounts
	account := fmt.Sprintf("case-%04d", n)
	if suffix, ok := suffixes[s]; ok {
		return account + suffix, func() {}, nil
	}
	fault, ok := faults[s]
	if !ok {
		return "", nil, ErrUnsupported
	}
	h.rules[n] = fmt.Sprintf(`{"op":%q,"kind":%q,"account_prefix":%q}`, fault[0], fault[1], account)
	end := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.rules, n)
		if err := h.putRules(); err != nil {
			panic(err) // the results after it would be meaningless
		}
	}
	return account, end, h.putRules()
}

func (h *sandboxHarness) putRules() error {
	var rules []string
	for _, r := range h.rules {
		rules = append(rules, r)
	}
	return h.call(http.MethodPut, "/_faults", `{"rules":[`+strings.Join(rules, ",")+`]}`, nil)
}

func (h *sandboxHarness) call(method, path, body string, out any) error {
	req, err := http.NewRequest(method, h.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s", method, path, res.Status)
	}
	if out != nil {
		return json.NewDecoder(res.Body).Decode(out)
	}
	return nil
}

func (h *sandboxHarness) Moved(orderNo string) (int, error) {
	moved := 0
	for after := int64(0); ; {
		var page struct {
			Items []struct {
				Seq     int64  `json:"seq"`
				Op      string `json:"op"`
				OrderNo string `json:"order_no"`
			} `json:"items"`
		}
		if err := h.call(http.MethodGet, fmt.Sprintf("/_movements?after=%d&limit=1000", after), "", &page); err != nil {
			return 0, err
		}
		for _, m := range page.Items {
			after = m.Seq
			if m.OrderNo == orderNo && m.Op != "return" {
				moved++
			}
		}
		if len(page.Items) < 1000 {
			return moved, nil
		}
	}
}

func (h *sandboxHarness) Delivered(ctx context.Context, orderNo string) (http.Header, []byte, error) {
	var d delivery
	wait.Reached(wait.Limit(), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		var ok bool
		d, ok = h.delivered[orderNo]
		return ok || ctx.Err() != nil
	})
	return d.header, d.body, ctx.Err()
}

func (h *sandboxHarness) Sign(genuine bool, eventID string, at time.Time, body []byte) (http.Header, error) {
	secret := otherSecret
	if genuine {
		secret = sandboxSecret
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	signature, err := hook.Sign(eventID, at, body)
	if err != nil {
		return nil, err
	}
	return http.Header{"Webhook-Id": {eventID}, "Webhook-Timestamp": {fmt.Sprint(at.Unix())}, "Webhook-Signature": {signature}}, nil
}
