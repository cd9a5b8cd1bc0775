package wechat

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/utils"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/provider/providertest"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/test/wait"
)

const (
	testMerchant = "1900000109"
	testApp      = "wxd678efh567hg6787"
	testAPIKey   = "0123456789abcdef0123456789abcdef"
	testSerial   = "5F42AD7C0A1B2C3D"
	testKeyID    = "PUB_KEY_ID_0119000001092026010100000001"
	// callTimeout is how long a call without an answer takes in these tests.
	callTimeout = 2 * time.Second
)

// testKeys are made once: RSA keys are slow to make.
var testKeys = sync.OnceValue(func() (k struct {
	merchant, stranger *rsa.PrivateKey
	public, other      simulator.Key
}) {
	var errs [4]error
	k.merchant, errs[0] = rsa.GenerateKey(rand.Reader, 2048)
	k.stranger, errs[1] = rsa.GenerateKey(rand.Reader, 2048)
	k.public, errs[2] = simulator.NewPublicKey(testKeyID)
	k.other, errs[3] = simulator.NewPublicKey(testKeyID)
	if err := errors.Join(errs[:]...); err != nil {
		panic(err)
	}
	return k
})

// rig is a simulator, what it notifies, and the settings of an adapter to it.
type rig struct {
	sim    *simulator.Server
	server *httptest.Server
	cfg    Config

	mu        sync.Mutex
	delivered map[string]delivery // by order number
}

type delivery struct {
	header http.Header
	body   []byte
}

// newRig starts a simulator. change may change its settings, and wrap put something before it.
func newRig(t *testing.T, change func(*simulator.Config), wrap func(http.Handler) http.Handler) *rig {
	t.Helper()
	keys := testKeys()
	r := &rig{delivered: map[string]delivery{}}
	cfg := simulator.Config{MerchantID: testMerchant, AppIDs: []string{testApp}, APIv3Key: testAPIKey, MerchantKey: &keys.merchant.PublicKey,
		MerchantSerial: testSerial, Keys: []simulator.Key{keys.public}, PendingAfter: 50 * time.Millisecond, HoldTimeout: time.Hour,
		NotifyPause: 50 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r.sim = simulator.New(ctx, cfg)
	var handler http.Handler = r.sim
	if wrap != nil {
		handler = wrap(handler)
	}
	r.server = httptest.NewServer(handler)
	hook := httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(func() {
		cancel()
		r.sim.Close()
		r.server.CloseClientConnections()
		r.server.Close()
		hook.Close()
	})
	r.cfg = Config{BaseURL: r.server.URL, MerchantID: testMerchant,
		AppIDs:   map[string]string{MethodJSAPI: testApp, MethodAPP: testApp, MethodNative: testApp},
		APIv3Key: testAPIKey, MerchantKey: simulator.PrivatePEM(keys.merchant), MerchantSerial: testSerial, PublicKeyID: testKeyID,
		PublicKey: keys.public.PublicPEM(), Scene: "1000", Perception: "现金奖励",
		ReportInfos: []ReportInfo{{"活动名称", "新年红包"}, {"奖励说明", "抢到的红包"}}, NotifyBase: hook.URL, Timeout: callTimeout}
	return r
}

// receive is our end of the notifications. The resource is decrypted by the vendor's code.
func (r *rig) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var n struct {
		Resource struct {
			Nonce      string `json:"nonce"`
			Associated string `json:"associated_data"`
			Ciphertext string `json:"ciphertext"`
		} `json:"resource"`
	}
	if err != nil || json.Unmarshal(body, &n) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	plain, err := utils.DecryptAES256GCM(testAPIKey, n.Resource.Associated, n.Resource.Nonce, n.Resource.Ciphertext)
	var order map[string]any
	if err != nil || json.Unmarshal([]byte(plain), &order) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, member := range []string{"out_bill_no", "out_refund_no", "out_trade_no"} {
		if no, ok := order[member].(string); ok {
			r.delivered[no] = delivery{req.Header.Clone(), body}
			break
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// adapter returns an adapter; change may change its settings.
func (r *rig) adapter(t *testing.T, change func(*Config)) *Adapter {
	t.Helper()
	cfg := r.cfg
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// harness lets the suite control the simulator.
type harness struct {
	*rig
	adapter *Adapter

	mu       sync.Mutex
	accounts int
	faults   map[int]simulator.Fault
	waits    map[string]bool // accounts whose recipients have to tap
	names    map[string]string
}

// TestConformance: the adapter passes the suite of all adapters.
func TestConformance(t *testing.T) {
	t.Parallel()
	runConformance(t, nil)
}

func runConformance(t *testing.T, wrap func(http.Handler) http.Handler) {
	r := newRig(t, func(c *simulator.Config) { c.BillsAtOnce = true }, wrap)
	h := &harness{rig: r, faults: map[int]simulator.Fault{}, waits: map[string]bool{}, names: map[string]string{}}
	h.adapter = r.adapter(t, nil)
	tomorrow(h.adapter)
	providertest.Run(t, providertest.Config{Harness: h, Timeout: callTimeout, Within: wait.Limit(), Currency: "CNY",
		// A transfer that succeeded is never returned: WeChat Pay cannot take it back.
		Unsupported: []string{"success, then returned", "the statement lists returned payments"}})
}

// tomorrow lets an adapter read the bill of today, when what is missing counts as empty.
func tomorrow(a *Adapter) { a.now = func() time.Time { return time.Now().AddDate(0, 0, 3) } }

func (h *harness) Adapter() providertest.Adapter { return h.adapter }

func (h *harness) Upstream() string { return h.server.URL }

func (h *harness) Through(baseURL string) (providertest.Adapter, error) {
	cfg := h.cfg
	cfg.BaseURL = baseURL
	a, err := New(cfg)
	if err != nil {
		return nil, err
	}
	tomorrow(a)
	return a, nil
}

var suffixes = map[providertest.Situation]string{providertest.Succeeds: "", providertest.Declines: simulator.Declined,
	providertest.StaysPending: simulator.Pending, providertest.NeedsRecipient: ""}

// situations are those made by a fault: op, kind.
var situations = map[providertest.Situation][2]string{
	providertest.LowBalance: {"transfer", simulator.LowBalance}, providertest.RateLimited: {"transfer", simulator.RateLimit},
	providertest.SilentBefore: {"transfer", simulator.SilenceBefore}, providertest.SilentAfter: {"transfer", simulator.SilenceAfter},
	providertest.ErrorBefore: {"transfer", simulator.ErrorBefore}, providertest.ErrorAfter: {"transfer", simulator.ErrorAfter},
	providertest.ErrorLate: {"transfer", simulator.ErrorLate}, providertest.QuerySilent: {"query", simulator.SilenceBefore},
	providertest.QueryError: {"query", simulator.ErrorBefore}, providertest.QueryLimited: {"query", simulator.RateLimit},
	providertest.NotFoundYet: {"query", simulator.NotFoundYet},
}

func (h *harness) Arrange(s providertest.Situation) (string, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.accounts++
	n := h.accounts
	account := fmt.Sprintf("oUpF8uMuAJO_M2pxb1Q9zNjW-%04d", n)
	if suffix, ok := suffixes[s]; ok {
		account += suffix
		h.waits[account] = s == providertest.NeedsRecipient
		return account, func() {}, nil
	}
	fault, ok := situations[s]
	if !ok {
		return "", nil, providertest.ErrUnsupported
	}
	h.faults[n] = simulator.Fault{Op: fault[0], Kind: fault[1], Account: account}
	h.putFaults()
	return account, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.faults, n)
		h.putFaults()
	}, nil
}

func (h *harness) putFaults() {
	var faults []simulator.Fault
	for _, f := range h.faults {
		faults = append(faults, f)
	}
	h.sim.SetFaults(faults)
}

// Instruct implements providertest.Instructor: recipients have authorised receipts, except where the
// case is about their tap; a large payout names its recipient; a refund has a paid charge.
func (h *harness) Instruct(in *payout.Instruction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch in.Op {
	case payout.OpCharge:
		in.Payer = map[string]string{"openid": in.Account}
	case payout.OpRefund:
		if in.ChargeOrderNo == "" {
			in.ChargeOrderNo = "c" + in.OrderNo[1:]
			h.paidCharge(in.ChargeOrderNo, in.Account)
			in.ChargeTotal = money.Max
		} else {
			in.ChargeTotal = in.Amount
		}
	case payout.OpTransfer:
		if h.waits[in.Account] {
			return
		}
		if h.names[in.Account] == "" {
			h.names[in.Account] = fmt.Sprintf("auth%06d", len(h.names))
			h.sim.Authorise(h.names[in.Account], in.Account)
		}
		in.Authorization = h.names[in.Account]
		if in.Amount >= nameFrom {
			in.RecipientName = "张三"
		}
	}
}

// paidCharge makes a charge of the largest amount that is paid.
func (h *harness) paidCharge(no, openid string) {
	raw, err := h.adapter.EncodeRequest(payout.Instruction{Op: payout.OpCharge, OrderNo: no, Account: openid, Amount: money.Max,
		Currency: "CNY", Payer: map[string]string{"openid": openid}})
	if err != nil {
		panic(err)
	}
	h.adapter.Send(context.Background(), payout.Order{Op: payout.OpCharge, OrderNo: no, Request: raw})
	h.sim.Pay(no, "", 0)
}

// Pay implements providertest.Payer.
func (h *harness) Pay(orderNo string) error {
	if !h.sim.Pay(orderNo, "", 0) {
		return errors.New("the charge cannot be paid")
	}
	return nil
}

// Body implements providertest.Enveloped, without the code under test.
func (h *harness) Body(request []byte) []byte {
	_, body, _ := strings.Cut(string(request), "\n\n")
	return []byte(body)
}

func (h *harness) Moved(orderNo string) (int, error) { return h.sim.Moved(orderNo), nil }

func (h *harness) Delivered(ctx context.Context, orderNo string) (http.Header, []byte, error) {
	d := h.rig.await(ctx, orderNo)
	return d.header, d.body, ctx.Err()
}

func (r *rig) await(ctx context.Context, orderNo string) (d delivery) {
	wait.Reached(wait.Limit(), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		var ok bool
		d, ok = r.delivered[orderNo]
		return ok || ctx.Err() != nil
	})
	return d
}

func (h *harness) Sign(genuine bool, _ string, at time.Time, body []byte) (http.Header, error) {
	if genuine {
		return testKeys().public.Headers(at, body), nil
	}
	return testKeys().other.Headers(at, body), nil
}
