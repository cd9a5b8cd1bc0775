// Package wechat is the adapter to WeChat Pay API v3: JSAPI, APP and Native pay-in, refunds, merchant
// transfers with and without the recipient's tap, notifications, bills and balances. Signing,
// verification, platform certificates and decryption are the vendor's own code
// (github.com/wechatpay-apiv3/wechatpay-go, which has no merchant transfers); the HTTP calls and the
// stored bytes are ours. The adapter decides nothing and repeats nothing.
package wechat

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core/auth"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/credentials"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/signers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/notify"

	"hongbao/internal/payout"
)

const (
	// landingWindow is how long a send without a final answer may still take effect.
	landingWindow = time.Minute
	// remembers is how far back a transfer can be queried.
	remembers = 30 * 24 * time.Hour
	// refundWindow, refundsPerCharge and refundSpacing are the vendor's limits of refunds.
	refundWindow     = 365 * 24 * time.Hour
	refundsPerCharge = 50
	refundSpacing    = time.Minute
	// confirmWithin is how long a recipient may confirm a transfer, actionValid how long a prepay_id or
	// code_url is valid.
	confirmWithin = 24 * time.Hour
	actionValid   = 2 * time.Hour
	// redPacketMax is the largest payout of style RED_PACKET.
	redPacketMax = 20_000
)

// The vendor's limits per second.
const (
	prepaysPerSecond   = 500
	transfersPerSecond = 100
	refundsPerSecond   = 150
)

// Adapter is one merchant account at WeChat Pay. It may be used by many goroutines.
type Adapter struct {
	cfg        Config
	client     http.Client
	signer     auth.Signer
	credential auth.Credential
	keys       *keys
	notices    *notify.Handler
	now        func() time.Time
	bills      billCache
	// ctx ends with Close: for what has no context of a caller.
	ctx    context.Context
	cancel context.CancelFunc
}

// New checks the settings and makes no connection. Errors wrap ErrConfig.
func New(cfg Config) (*Adapter, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	own, _, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	a := &Adapter{cfg: cfg, now: time.Now}
	if cfg.HTTPClient != nil {
		a.client = *cfg.HTTPClient
	}
	if a.client.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, idlePerHost
		a.client.Transport = transport
	}
	// A redirect of a send would be a second send.
	a.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a.signer = &signers.SHA256WithRSASigner{MchID: cfg.MerchantID, CertificateSerialNo: cfg.MerchantSerial, PrivateKey: own}
	a.credential = &credentials.WechatPayCredentials{Signer: a.signer}
	if a.keys, err = newKeys(cfg, a.signer, &a.client); err != nil {
		return nil, err
	}
	if a.notices, err = notify.NewRSANotifyHandler(cfg.APIv3Key, a.keys.verifier); err != nil {
		return nil, bad("api_v3_key", "is exactly 32 bytes")
	}
	a.ctx, a.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // the adapter's own life, which ends with Close
	return a, nil
}

// Close ends what runs without a caller and closes idle connections.
func (a *Adapter) Close() {
	a.cancel()
	a.client.CloseIdleConnections()
}

// Name is the provider's name in rows, metrics and paths.
func (a *Adapter) Name() string { return a.cfg.Name }

// Adapter returns the provider and the merchant account.
func (a *Adapter) Adapter() payout.Adapter {
	return payout.Adapter{Provider: a.cfg.Name, Account: a.cfg.MerchantID}
}

// Zone is the time zone of the days of the bills.
func (a *Adapter) Zone() *time.Location { return china }

// Limits returns the vendor's limits and those of the account.
func (a *Adapter) Limits() payout.Limits {
	l := payout.Limits{Adapter: a.Adapter(), LandingWindow: landingWindow, Remembers: remembers, RefundWindow: refundWindow,
		RefundsPerCharge: refundsPerCharge, RefundSpacing: refundSpacing, MinPayout: minScene, MaxPayout: a.cfg.MaxPayout, NameFrom: nameFrom,
		Authorizations: true,
		SendsPerSecond: map[payout.Op]int{payout.OpCharge: prepaysPerSecond, payout.OpTransfer: transfersPerSecond,
			payout.OpRefund: refundsPerSecond}}
	for _, info := range a.cfg.ReportInfos {
		l.PayoutTexts = l.PayoutTexts || strings.Contains(info.Content, greetingPlaceholder) ||
			strings.Contains(info.Content, campaignPlaceholder)
	}
	if a.cfg.Style == "RED_PACKET" {
		l.MaxPayout = min(cmp.Or(l.MaxPayout, redPacketMax), redPacketMax)
	}
	for _, name := range methods {
		if a.cfg.AppIDs[name] == "" {
			continue
		}
		m := payout.Method{Name: name, NeedsPayer: true, MinAmount: 1}
		if name == MethodJSAPI {
			m.Payer = []string{"openid"}
		}
		l.Methods = append(l.Methods, m)
	}
	return l
}

// Send posts the stored request once and returns the observation. It returns no error: every failure
// is an observation too.
func (a *Adapter) Send(ctx context.Context, order payout.Order) payout.Observation {
	o := a.newObservation(payout.SourceSend, order.OrderNo)
	r, err := decodeRequest(order.Request)
	if err != nil {
		o.Kind, o.Code, o.EndedAt = payout.ObsNotSent, codeBadRequest, time.Now().UTC()
		return o
	}
	if r.serial != "" && !a.keys.has(ctx, r.serial) {
		// The name cannot be encrypted again under the same number: what is known of it is queried.
		o.Kind, o.Code, o.EndedAt = payout.ObsDeclined, codeKeyRetired, time.Now().UTC()
		o.Message = "The recipient's name is encrypted with a key of WeChat Pay that is no longer in use."
		return o
	}
	a.observe(&o, order.Op, a.call(ctx, r), func(body []byte) { a.observeSent(&o, order, r, body) })
	return o
}

// observeSent reads the answer to a send.
func (a *Adapter) observeSent(o *payout.Observation, order payout.Order, r request, body []byte) {
	switch order.Op {
	case payout.OpCharge:
		a.observePrepay(o, r, body)
	case payout.OpRefund:
		a.observeRefund(o, body)
	default:
		a.observeBill(o, body)
	}
}

// Query queries the outcome of an order number. It moves nothing.
func (a *Adapter) Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation {
	o := a.newObservation(payout.SourceQuery, orderNo)
	number := url.PathEscape(orderNo)
	read, path := func(body []byte) { a.observeBill(&o, body) }, pathBill+number
	switch op {
	case payout.OpCharge:
		read, path = func(body []byte) { a.observeCharge(&o, body) }, pathCharge+number+"?mchid="+a.cfg.MerchantID
	case payout.OpRefund:
		read, path = func(body []byte) { a.observeRefund(&o, body) }, pathRefunds+"/"+number
	}
	a.observe(&o, op, a.call(ctx, request{method: http.MethodGet, path: path}), read)
	return o
}

func (a *Adapter) newObservation(source payout.Source, orderNo string) payout.Observation {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return payout.Observation{ID: hex.EncodeToString(id[:]), Adapter: a.Adapter(), Source: source, OrderNo: orderNo,
		StartedAt: time.Now().UTC()}
}
