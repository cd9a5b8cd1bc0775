package worker_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/worker"
)

// wechatRig is a rig with WeChat Pay, by default for payouts only.
type wechatRig struct {
	*rig
	sim *simulator.Server
	key simulator.Key // of WeChat Pay
	pay *wechat.Adapter

	mu     sync.Mutex
	coming map[wechatCaller][]string // the fault of each send that is still to come
	faulty map[wechatCaller]string   // the fault of the current send
	payers map[string]string         // openids, by the order numbers of their charges
	calls  map[string][]string       // by order number
	silent map[string]bool           // order numbers whose notifications do not arrive
}

// wechatCaller is a kind of call and its person: a recipient, or the sender of a charge or refund.
type wechatCaller struct{ op, openid string }

func newWechatRig(t *testing.T) *wechatRig {
	t.Helper()
	m := must(simulator.NewMerchant())(t)
	cfg := m.Config()
	cfg.PendingAfter, cfg.HoldTimeout, cfg.NotifyPause = 0, 3*time.Second, 100*time.Millisecond
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &wechatRig{sim: simulator.New(ctx, cfg), key: m.Public, coming: map[wechatCaller][]string{}, faulty: map[wechatCaller]string{},
		payers: map[string]string{}, calls: map[string][]string{}, silent: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(r.pass))
	hook := httptest.NewServer(http.HandlerFunc(r.hear))
	t.Cleanup(func() {
		cancel()
		r.sim.Close()
		server.CloseClientConnections()
		server.Close()
		hook.Close()
	})
	r.pay = must(wechat.New(wechat.Config{BaseURL: server.URL, MerchantID: m.ID, APIv3Key: m.APIv3Key,
		AppIDs: map[string]string{wechat.MethodJSAPI: m.AppID}, RefuseCoupons: true,
		MerchantKey: simulator.PrivatePEM(m.Private), MerchantSerial: m.Serial, PublicKeyID: m.Public.ID, PublicKey: m.Public.PublicPEM(),
		Scene: "1000", ReportInfos: []wechat.ReportInfo{{Type: "活动名称", Content: "新年"}, {Type: "奖励说明", Content: "红包"}},
		NotifyBase: hook.URL}))(t)
	t.Cleanup(r.pay.Close)
	addr, ns := stacktest.TemporalNamespace(t)
	r.rig = newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns, func(parts *rig, cfg *worker.Config) {
		cfg.Payments.Providers = must(payout.NewRegistry("sandbox", "wechat", parts.provider, r.pay))(t)
		cfg.Reconcile.Steps.Providers = cfg.Payments.Providers
		cfg.Payments.Admissions["wechat"] = activities.NewAdmission("wechat", nil, parts.logger)
	})
	return r
}

// hear takes a notification, as the API does.
func (r *wechatRig) hear(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var event, order string
	if err == nil {
		event, order, err = r.pay.VerifyNotification(req.Header, body)
	}
	if r.silenced(order) {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if err == nil {
		err = r.store.RecordNotification(req.Context(), r.pay.Adapter(), event, order, body)
	}
	w.WriteHeader(r.pay.AnswerNotification(err).Status)
}

// silence keeps notifications about an order number from arriving.
func (r *wechatRig) silence(no string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent[no] = true
}

func (r *wechatRig) silenced(no string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent[no]
}

// pass is the network before the simulator: it makes each send meet its fault and records the calls.
func (r *wechatRig) pass(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	verb, no, fault := "ask", path.Base(req.URL.Path), ""
	switch {
	case no == "close", no == "cancel":
		verb, no = no, path.Base(path.Dir(req.URL.Path))
	case req.Method == http.MethodPost:
		verb = "send"
		if no, fault, err = r.nextFault(body); err != nil {
			return
		}
	}
	r.mu.Lock()
	r.calls[no] = append(r.calls[no], verb)
	n := len(r.calls[no]) - 1
	r.mu.Unlock()
	answer := httptest.NewRecorder()
	says := "silence"
	defer func() { // the simulator ends a call without an answer by a panic
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls[no][n] = verb + " " + says
	}()
	stored, status, code := true, 0, ""
	if _, err := fmt.Sscanf(fault, "%t %d %s", &stored, &status, &code); err != nil || stored {
		r.sim.ServeHTTP(answer, req)
	}
	if code != "" {
		answer = r.refuse(status, code)
	}
	says = wechatSays(answer)
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// faults sets the faults of the next sends of a kind of call for a person.
func (r *wechatRig) faults(op, openid string, kinds []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coming[wechatCaller{op, openid}] = kinds
}

// nextFault takes the fault of a send and sets it in the simulator.
func (r *wechatRig) nextFault(body []byte) (no, fault string, err error) {
	var in struct {
		Bill   string `json:"out_bill_no"`
		Charge string `json:"out_trade_no"`
		Refund string `json:"out_refund_no"`
		OpenID string `json:"openid"`
		Payer  struct {
			OpenID string `json:"openid"`
		} `json:"payer"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return "", "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := wechatCaller{"transfer", in.OpenID}
	switch {
	case in.Refund != "":
		of = wechatCaller{"refund", r.payers[in.Charge]}
	case in.Charge != "":
		of = wechatCaller{"charge", in.Payer.OpenID}
		r.payers[in.Charge] = in.Payer.OpenID
	}
	if left := r.coming[of]; len(left) > 0 {
		fault, r.coming[of] = left[0], left[1:]
	}
	r.faulty[of] = fault
	var all []simulator.Fault
	for of, kind := range r.faulty {
		all = append(all, simulator.Fault{Op: of.op, Kind: kind, Account: of.openid})
	}
	r.sim.SetFaults(all)
	return cmp.Or(in.Bill, in.Refund, in.Charge), fault, nil
}

// refuse is a signed refusal.
func (r *wechatRig) refuse(status int, code string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	body := fmt.Appendf(nil, `{"code":%q,"message":"for the test"}`, code)
	maps.Copy(answer.Header(), r.key.Headers(time.Now(), body))
	answer.WriteHeader(status)
	_, _ = answer.Write(body)
	return answer
}

// wechatSays is the state or the code of an answer, and what is wrong with its signature.
func wechatSays(answer *httptest.ResponseRecorder) string {
	if answer.Code == http.StatusNoContent {
		return "done"
	}
	var v struct {
		State, Code, Status string
		Trade               string `json:"trade_state"`
		Prepay              string `json:"prepay_id"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &v); err != nil {
		return err.Error()
	}
	if v.Prepay != "" {
		v.State = "prepay"
	}
	says := cmp.Or(v.Code, v.State, v.Trade, v.Status)
	switch signature := answer.Header().Get("Wechatpay-Signature"); {
	case signature == "":
		return "unsigned " + says
	case strings.HasPrefix(signature, simulator.Probe):
		return "forged " + says
	}
	return says
}

// seen are the calls about an order number.
func (r *wechatRig) seen(no string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, call := range r.calls[no] {
		b.WriteString(call + "; ")
	}
	return b.String()
}
