// Package simulator is a stand-in for WeChat Pay API v3 in tests and in the local stack: it verifies
// and signs with keys of its own, moves imaginary money once under a number, and misbehaves for the
// accounts that a test names. It shares no code with the adapter: what both have in common is the
// vendor's documentation.
//
// Facts: pay.weixin.qq.com/doc/v3/merchant (4012716434 transfer, 4012525167 JSAPI order, 4012556457
// refund, 4012556654 bills) and github.com/TheNorthMemory/wechatpay-openapi for members and states.
package simulator

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config are the merchant and the behaviour of a simulator.
type Config struct {
	MerchantID string
	AppIDs     []string
	APIv3Key   string
	// MerchantKey verifies requests; MerchantSerial names it.
	MerchantKey    *rsa.PublicKey
	MerchantSerial string
	// Keys sign answers and notifications; the first is the default. A request chooses with
	// Wechatpay-Serial.
	Keys []Key
	// PendingAfter ends what is pending; ConfirmAfter confirms transfers for their recipients and
	// PayAfter pays charges for their senders (0: they wait for Confirm and Pay).
	PendingAfter, ConfirmAfter, PayAfter time.Duration
	// HoldTimeout is how long a call without answer is held. Default one minute.
	HoldTimeout time.Duration
	// NotifyPause separates repeats of a notification that was not accepted. Default a second.
	NotifyPause time.Duration
	// RefundSpacing is the pause that two refunds of a charge need. 0: none.
	RefundSpacing time.Duration
	// BillsAtOnce makes bills of the current day, too. Else a bill exists from 10:00 of the next day.
	BillsAtOnce bool
	// VoucherIsBillNo puts the vendor's number in the voucher column of the fund flow instead of ours:
	// which of both the real file has is not documented.
	VoucherIsBillNo bool
	// PackageOnce leaves the package of an agreement out of its queries: whether they have it is not documented.
	PackageOnce bool
}

// Server is a running simulator. It implements http.Handler.
type Server struct {
	cfg    Config
	mux    *http.ServeMux
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	client http.Client

	mu             sync.Mutex
	serial         int64
	transfers      map[string]*transfer
	charges        map[string]*charge
	refunds        map[string]*refund
	authorisations map[string]*authorisation // by out_authorization_no
	faults         []Fault
	flows          []flow
	files          map[string][]byte // by download token
	balance        map[string]int64  // changes, by fund
	lateBills      map[string]string // the codes of their refusals, by kind and account
}

// New returns a simulator whose background work ends with ctx or Close.
func New(ctx context.Context, cfg Config) *Server {
	if cfg.HoldTimeout == 0 {
		cfg.HoldTimeout = time.Minute
	}
	if cfg.NotifyPause == 0 {
		cfg.NotifyPause = time.Second
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), transfers: map[string]*transfer{}, charges: map[string]*charge{},
		refunds: map[string]*refund{}, authorisations: map[string]*authorisation{}, files: map[string][]byte{}, balance: map[string]int64{},
		client: http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.routes()
	return s
}

// Close ends the background work and waits for it.
func (s *Server) Close() {
	s.cancel()
	s.work.Wait()
}

// routes are the calls of the vendor, and behind /_ those of tests.
func (s *Server) routes() {
	for pattern, h := range map[string]handler{
		"POST /v3/fund-app/mch-transfer/transfer-bills":                                      s.createTransfer,
		"POST /v3/fund-app/mch-transfer/transfer-bills/transfer":                             s.createTransfer,
		"GET /v3/fund-app/mch-transfer/transfer-bills/out-bill-no/{no}":                      s.queryTransfer,
		"GET /v3/fund-app/mch-transfer/transfer-bills/transfer-bill-no/{id}":                 s.queryTransferByID,
		"POST /v3/fund-app/mch-transfer/transfer-bills/out-bill-no/{no}/cancel":              s.cancelTransfer,
		"POST /v3/fund-app/mch-transfer/user-confirm-authorization":                          s.createAuthorisation,
		"GET /v3/fund-app/mch-transfer/user-confirm-authorization/out-authorization-no/{no}": s.queryAuthorisation,
		"POST /v3/pay/transactions/{method}":                                                 s.createCharge,
		"GET /v3/pay/transactions/out-trade-no/{no}":                                         s.queryCharge,
		"POST /v3/pay/transactions/out-trade-no/{no}/close":                                  s.closeCharge,
		"POST /v3/refund/domestic/refunds":                                                   s.createRefund,
		"GET /v3/refund/domestic/refunds/{no}":                                               s.queryRefund,
		"GET /v3/bill/{kind}":                                                                s.bill,
		"GET /v3/merchant/fund/balance/{fund}":                                               s.fundBalance,
		"POST /v3/security/echo":                                                             s.echo,
		"GET /v3/certificates":                                                               s.certificates,
	} {
		s.mux.HandleFunc(pattern, s.signed(h))
	}
	s.mux.HandleFunc("GET /v3/billdownload/file", s.download)
	s.controlRoutes()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// call is a verified request.
type call struct {
	*http.Request
	body []byte
	key  Key // signs the answer
}

// reply is an answer before it is signed.
type reply struct {
	status int
	value  any
	fault  string // how the answer is spoiled
}

type handler func(c call) reply

// refusal is a refusal with a code of the vendor.
func refusal(status int, code, message string) reply {
	return reply{status: status, value: map[string]string{"code": code, "message": message}}
}

var systemError = refusal(http.StatusInternalServerError, "SYSTEM_ERROR", "系统异常，请用相同参数重新调用")

// signed verifies a request and signs its answer.
func (s *Server) signed(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			return
		}
		c := call{Request: r, body: body, key: s.cfg.Keys[0]}
		known := r.Header.Get("Wechatpay-Serial") == ""
		for _, k := range s.cfg.Keys {
			if k.ID == r.Header.Get("Wechatpay-Serial") {
				c.key, known = k, true
			}
		}
		var out reply
		if err := s.authenticate(r, body); err != nil {
			out = refusal(http.StatusUnauthorized, "SIGN_ERROR", err.Error())
		} else if !known && r.URL.Path != "/v3/certificates" {
			out = refusal(http.StatusBadRequest, "PARAM_ERROR", "Wechatpay-Serial 错误")
		} else {
			out = h(c)
		}
		s.answer(w, r, c, out)
	}
}

// answer signs and writes an answer, spoiled as its fault says.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, c call, out reply) {
	if out.fault == faultSilence {
		s.hold(r)
	}
	var body []byte
	if out.status != http.StatusNoContent {
		var err error
		if body, err = json.Marshal(out.value); err != nil {
			panic(err) // only maps and structs of this package
		}
	}
	at := time.Now()
	switch out.fault {
	case faultClock:
		at = at.Add(-6 * time.Minute)
	case faultLong:
		body = append(body, strings.Repeat(" ", 5<<20)...)
	}
	header := c.key.Headers(at, body)
	switch out.fault {
	case faultSignature:
		header.Set("Wechatpay-Signature", Probe+header.Get("Wechatpay-Signature"))
	case faultUnsigned:
		header = http.Header{}
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Request-Id", s.id("req"))
	w.WriteHeader(out.status)
	_, _ = w.Write(body)
}

// hold keeps a call open until its caller gives up.
func (s *Server) hold(r *http.Request) {
	timer := time.NewTimer(s.cfg.HoldTimeout)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
	case <-s.ctx.Done():
	case <-timer.C:
	}
	panic(http.ErrAbortHandler)
}

// id returns a new number with a prefix.
func (s *Server) id(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextID(prefix)
}

func (s *Server) nextID(prefix string) string {
	s.serial++
	return prefix + fmt.Sprintf("%024d", s.serial)
}

// after runs do later, unless the simulator is closed before.
func (s *Server) after(pause time.Duration, do func()) {
	s.work.Go(func() {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-s.ctx.Done():
		case <-timer.C:
			do()
		}
	})
}

// decode reads a body into out and as a map, for comparing repeats.
func decode(body []byte, out any) (map[string]any, bool) {
	var all map[string]any
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if d.Decode(&all) != nil || json.Unmarshal(body, out) != nil {
		return nil, false
	}
	return all, true
}

// stamp is a time as the vendor writes it.
func stamp(t time.Time) string { return t.In(china).Format("2006-01-02T15:04:05-07:00") }

var china = time.FixedZone("CST", 8*60*60)

func yuan(fen int64) string { return strconv.FormatInt(fen/100, 10) + fmt.Sprintf(".%02d", fen%100) }
