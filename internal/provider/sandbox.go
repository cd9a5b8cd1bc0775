// Package provider holds the adapters to payment APIs. An adapter turns a stored request into one
// call, and its answer or silence into a payout.Observation. It decides nothing: whether a payment
// failed, and what is sent again, is up to package payout. No adapter ever repeats a send by
// itself.
package provider

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.opentelemetry.io/otel/trace"

	"hongbao/internal/money"
	spans "hongbao/internal/observe"
	"hongbao/internal/payout"
)

const (
	// DefaultTimeout is how long a call to the provider may take, connecting included.
	DefaultTimeout = 5 * time.Second
	// SandboxLandingWindow is how long a send without a final answer may still take effect.
	SandboxLandingWindow = 10 * time.Second
	// SandboxRemembers is how long the sandbox guarantees to know an order number.
	SandboxRemembers = 30 * 24 * time.Hour
	// SandboxAccount is the default merchant account.
	SandboxAccount = "sandbox"
	// SandboxRefundWindow is how long the sandbox guarantees to refund a charge, as WeChat Pay
	// does.
	SandboxRefundWindow = 365 * 24 * time.Hour

	maxAnswerBytes = 64 << 10
	idlePerHost    = 128
)

// ErrConfig is wrapped by errors about an adapter's settings. They name the setting, never a secret.
var ErrConfig = errors.New("provider configuration")

// ErrAnswer is wrapped when a call that moves no money got no usable answer. It may be repeated.
var ErrAnswer = errors.New("no usable answer from the provider")

// SandboxConfig is the configuration of the adapter to the sandbox.
type SandboxConfig struct {
	// Name is the provider's name in rows, metrics and paths. Default "sandbox".
	Name string
	// BaseURL is scheme, host and port, such as "http://127.0.0.1:8090".
	BaseURL string
	// APIKey is sent as bearer key.
	APIKey string
	// Account is our merchant account at the provider. Default SandboxAccount.
	Account string
	// WebhookSecret ("whsec_" and base64) verifies notifications. Without it every notification is refused.
	WebhookSecret string
	// RefuseCoupons refunds charges in full of which a coupon paid a part. Default: the amount counts.
	RefuseCoupons bool
	// Timeout bounds one call. Default DefaultTimeout. It must be below the activity's timeout.
	Timeout time.Duration
	// HTTPClient, if set, is copied and used; redirects are never followed.
	HTTPClient *http.Client
}

// LogValue shows the settings without the secrets.
func (c SandboxConfig) LogValue() slog.Value {
	return slog.GroupValue(slog.String("base_url", c.BaseURL), slog.Duration("timeout", c.Timeout))
}

// Sandbox is the adapter to the sandbox provider. It may be used by many goroutines.
type Sandbox struct {
	name           string
	base           string
	key            string
	account        string
	refusesCoupons bool
	timeout        time.Duration
	client         http.Client
	hook           *standardwebhooks.Webhook
}

// NewSandbox checks the settings and makes no connection. Errors wrap ErrConfig.
func NewSandbox(cfg SandboxConfig) (*Sandbox, error) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" || base.RawQuery != "" ||
		base.User != nil || strings.Trim(base.Path, "/") != "" {
		return nil, fmt.Errorf("%w: BaseURL must be http(s)://host:port", ErrConfig)
	}
	if cfg.APIKey == "" {
		return nil, fmt.Errorf("%w: APIKey is required", ErrConfig)
	}
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("%w: Timeout is negative", ErrConfig)
	}
	s := &Sandbox{name: cmp.Or(cfg.Name, "sandbox"), base: base.Scheme + "://" + base.Host, key: cfg.APIKey,
		account: cmp.Or(cfg.Account, SandboxAccount), refusesCoupons: cfg.RefuseCoupons, timeout: cfg.Timeout}
	if s.timeout == 0 {
		s.timeout = DefaultTimeout
	}
	if cfg.WebhookSecret != "" {
		if s.hook, err = standardwebhooks.NewWebhook(cfg.WebhookSecret); err != nil {
			// The cause may quote the secret.
			return nil, fmt.Errorf("%w: WebhookSecret must be whsec_ and base64", ErrConfig)
		}
	}
	if cfg.HTTPClient != nil {
		s.client = *cfg.HTTPClient
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, idlePerHost
		s.client.Transport = transport
	}
	// A redirect of a send would be a second send.
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, nil
}

// Name is the configured name.
func (s *Sandbox) Name() string { return s.name }

// Adapter returns the provider and merchant account of this adapter.
func (s *Sandbox) Adapter() payout.Adapter {
	return payout.Adapter{Provider: s.Name(), Account: s.account}
}

// sandboxMethods are the ways to pay the sandbox: at once, in an app, and with a QR code.
var sandboxMethods = []payout.Method{{Name: sandboxAtOnce}, {Name: sandboxApp, NeedsPayer: true}, {Name: sandboxQR, NeedsPayer: true}}

// Limits returns the facts about the sandbox that the payment machine needs.
func (s *Sandbox) Limits() payout.Limits {
	return payout.Limits{Adapter: s.Adapter(), LandingWindow: SandboxLandingWindow, Remembers: SandboxRemembers,
		RefundWindow: SandboxRefundWindow, Methods: slices.Clone(sandboxMethods)}
}

// Check asks for the sums of a packet that does not exist: key and account are right when the sandbox
// answers.
func (s *Sandbox) Check(ctx context.Context) error {
	_, err := s.Totals(ctx, strings.Repeat("0", 20))
	return err
}

// Close closes idle connections. The adapter can still be used.
func (s *Sandbox) Close() { s.client.CloseIdleConnections() }

// sendBody is the body of a charge, transfer or refund.
type sendBody struct {
	OrderNo       string    `json:"order_no"`
	Account       string    `json:"account"`
	Amount        money.Fen `json:"amount"`
	Currency      string    `json:"currency"`
	Remark        string    `json:"remark"`
	ChargeOrderNo string    `json:"charge_order_no,omitempty"`
	Method        string    `json:"method,omitempty"`
	PayUntil      time.Time `json:"pay_until,omitzero"`
	ReturnURL     string    `json:"return_url,omitempty"`
}

// EncodeRequest returns the exact bytes to store before the first send and to send at every repeat.
// It fails on an amount outside 1..money.Max, an unknown op and text that is not UTF-8; then
// nothing may be stored.
func (s *Sandbox) EncodeRequest(in payout.Instruction) ([]byte, error) {
	if _, err := sendPath(in.Op); err != nil {
		return nil, err
	}
	if err := in.Amount.Check(); err != nil || in.Amount == 0 {
		return nil, fmt.Errorf("encode request %s: amount %d fen: %w", in.OrderNo, int64(in.Amount), errors.Join(errAmount, err))
	}
	body := sendBody{OrderNo: in.OrderNo, Account: in.Account, Amount: in.Amount,
		Currency: in.Currency, Remark: in.Remark, ChargeOrderNo: in.ChargeOrderNo}
	if in.Method != "" && in.Method != sandboxAtOnce {
		if m, ok := s.Limits().Method(in.Method); !ok || !m.NeedsPayer || in.Op != payout.OpCharge {
			return nil, fmt.Errorf("encode request %s: method %q of %s: %w", in.OrderNo, in.Method, in.Op, errMethod)
		}
		body.Method, body.PayUntil, body.ReturnURL = in.Method, in.PayUntil.UTC(), in.ReturnURL
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request %s: %w", in.OrderNo, err)
	}
	return raw, nil
}

var errMethod = errors.New("unknown method of payment")

var errAmount = errors.New("amount must be 1 to 2^53-1 fen")

func sendPath(op payout.Op) (string, error) {
	switch op {
	case payout.OpCharge:
		return "/v1/charges", nil
	case payout.OpTransfer:
		return "/v1/transfers", nil
	case payout.OpRefund:
		return "/v1/refunds", nil
	}
	return "", fmt.Errorf("unknown operation %q", op)
}

// Send posts the stored bytes once and returns the observation. It returns no error: every failure
// is an observation too. Silence is ObsNoAnswer when the request may have left, ObsNotSent only
// when there was no connection.
func (s *Sandbox) Send(ctx context.Context, order payout.Order) payout.Observation {
	o := s.newObservation(payout.SourceSend, order.OrderNo)
	path, err := sendPath(order.Op)
	if err != nil {
		o.Kind, o.Code, o.EndedAt = payout.ObsNotSent, "unknown_op", time.Now().UTC()
		return o
	}
	observe(&o, s.call(ctx, http.MethodPost, path, order.Request), order.Op)
	return o
}

// Query queries the outcome of an order number. It moves nothing.
func (s *Sandbox) Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation {
	o := s.newObservation(payout.SourceQuery, orderNo)
	observe(&o, s.call(ctx, http.MethodGet, "/v1/orders/"+url.PathEscape(orderNo), nil), op)
	return o
}

func (s *Sandbox) newObservation(source payout.Source, orderNo string) payout.Observation {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return payout.Observation{ID: hex.EncodeToString(id[:]), Adapter: s.Adapter(), Source: source, OrderNo: orderNo,
		StartedAt: time.Now().UTC()}
}

// Totals sums the provider's movements of a packet: charges, payouts, refunds and returns. Honoured
// share conflicts are outside the packet's total and not counted. Errors wrap ErrAnswer.
func (s *Sandbox) Totals(ctx context.Context, packetID string) (payout.ProviderTotals, error) {
	query := url.Values{}
	for _, kind := range []payout.Kind{payout.KindCharge, payout.KindPayout, payout.KindRefund} {
		query.Add("prefix", string(kind)+packetID)
	}
	a := s.call(ctx, http.MethodGet, "/v1/totals?"+query.Encode(), nil)
	if a.err != nil {
		return payout.ProviderTotals{}, fmt.Errorf("totals of packet %s: %w: %w", packetID, ErrAnswer, a.err)
	}
	if a.status != http.StatusOK {
		return payout.ProviderTotals{}, fmt.Errorf("totals of packet %s: %w: status %d", packetID, ErrAnswer, a.status)
	}
	var t struct {
		Charged     *money.Fen `json:"charged"`
		Transferred *money.Fen `json:"transferred"`
		Returned    *money.Fen `json:"returned"`
		Refunded    *money.Fen `json:"refunded"`
	}
	if err := json.Unmarshal(a.body, &t); err != nil {
		return payout.ProviderTotals{}, fmt.Errorf("totals of packet %s: %w: %w", packetID, ErrAnswer, err)
	}
	// A missing sum is not a sum of zero.
	for _, sum := range []*money.Fen{t.Charged, t.Transferred, t.Returned, t.Refunded} {
		if sum == nil || sum.Check() != nil {
			return payout.ProviderTotals{}, fmt.Errorf("totals of packet %s: %w: a sum is missing or out of range", packetID, ErrAnswer)
		}
	}
	return payout.ProviderTotals{Charged: *t.Charged, Transferred: *t.Transferred, Returned: *t.Returned, Refunded: *t.Refunded}, nil
}

// answer is the result of one call, or err.
type answer struct {
	base           string // of the provider
	refusesCoupons bool
	status         int
	header         http.Header
	body           []byte
	err            error
	// mayHaveLeft is false when it is certain that no byte of the request left.
	mayHaveLeft bool
}

// call makes one HTTP call within the timeout.
func (s *Sandbox) call(ctx context.Context, method, path string, body []byte) answer {
	return s.callUpTo(ctx, method, path, body, maxAnswerBytes)
}

// callUpTo reads at most limit bytes of the answer's body.
func (s *Sandbox) callUpTo(ctx context.Context, method, path string, body []byte, limit int64) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ctx, span := spans.StartChildSpan(ctx, "provider "+method, trace.WithSpanKind(trace.SpanKindClient))
	defer func() {
		span.SetAttributes(spans.SpanMethod.String(method), spans.SpanStatus.Int(a.status)) // 0: no answer
		span.End()
	}()
	// A request can only leave over a connection: without one, nothing was sent.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: fmt.Errorf("make request: %w", err)}
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Merchant-Account", s.account) // the sandbox refuses a key of another account
	req.Header.Set("Accept", "application/json")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return answer{err: err, mayHaveLeft: connected.Load()}
	}
	defer res.Body.Close()
	a = answer{base: s.base, refusesCoupons: s.refusesCoupons, status: res.StatusCode, header: res.Header, mayHaveLeft: true}
	a.body, err = io.ReadAll(io.LimitReader(res.Body, limit))
	if err != nil {
		a.err = fmt.Errorf("read answer: %w", err)
	}
	return a
}
