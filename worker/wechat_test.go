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

// wechatRig is a rig whose payouts go through WeChat Pay, and whose charges do not.
type wechatRig struct {
	*rig
	sim *simulator.Server
	key simulator.Key // of WeChat Pay
	pay *wechat.Adapter

	mu     sync.Mutex
	sends  map[string][]string // by openid: the fault of each send that is still to come
	faults map[string]string   // by openid: the fault of the current send
	calls  map[string][]string // by order number
}

func newWechatRig(t *testing.T) *wechatRig {
	t.Helper()
	m := must(simulator.NewMerchant())(t)
	cfg := m.Config()
	cfg.PendingAfter, cfg.HoldTimeout, cfg.NotifyPause = 0, 3*time.Second, 100*time.Millisecond
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &wechatRig{sim: simulator.New(ctx, cfg), key: m.Public, sends: map[string][]string{}, faults: map[string]string{},
		calls: map[string][]string{}}
	server := httptest.NewServer(http.HandlerFunc(r.pass))
	hook := httptest.NewServer(http.HandlerFunc(r.hear))
	t.Cleanup(func() {
		cancel()
		r.sim.Close()
		server.CloseClientConnections()
		server.Close()
		hook.Close()
	})
	r.pay = must(wechat.New(wechat.Config{BaseURL: server.URL, MerchantID: m.ID, PayoutAppID: m.AppID, APIv3Key: m.APIv3Key,
		MerchantKey: simulator.PrivatePEM(m.Private), MerchantSerial: m.Serial, PublicKeyID: m.Public.ID, PublicKey: m.Public.PublicPEM(),
		Scene: "1000", ReportInfos: []wechat.ReportInfo{{Type: "活动名称", Content: "新年"}, {Type: "奖励说明", Content: "红包"}},
		NotifyBase: hook.URL}))(t)
	t.Cleanup(r.pay.Close)
	addr, ns := stacktest.TemporalNamespace(t)
	r.rig = newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns, func(parts *rig, cfg *worker.Config) {
		cfg.Payments.Providers = must(payout.NewRegistry("sandbox", "wechat", parts.provider, r.pay))(t)
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
	if err == nil {
		err = r.store.RecordNotification(req.Context(), r.pay.Adapter(), event, order, body)
	}
	w.WriteHeader(r.pay.AnswerNotification(err).Status)
}

// pass is the network before the simulator: it makes each send meet its fault and records the calls.
func (r *wechatRig) pass(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	verb, no, fault := "ask", path.Base(req.URL.Path), ""
	if req.Method == http.MethodPost {
		var in struct {
			No     string `json:"out_bill_no"`
			OpenID string `json:"openid"`
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return
		}
		verb, no, fault = "send", in.No, r.nextFault(in.OpenID)
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

// nextFault takes the fault of an account's next send and sets it in the simulator.
func (r *wechatRig) nextFault(openid string) (fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.sends[openid]; len(left) > 0 {
		fault, r.sends[openid] = left[0], left[1:]
	}
	r.faults[openid] = fault
	var all []simulator.Fault
	for account, kind := range r.faults {
		all = append(all, simulator.Fault{Op: "transfer", Kind: kind, Account: account})
	}
	r.sim.SetFaults(all)
	return fault
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
	var v struct{ State, Code string }
	if err := json.Unmarshal(answer.Body.Bytes(), &v); err != nil {
		return err.Error()
	}
	switch signature := answer.Header().Get("Wechatpay-Signature"); {
	case signature == "":
		return "unsigned " + cmp.Or(v.Code, v.State)
	case strings.HasPrefix(signature, simulator.Probe):
		return "forged " + cmp.Or(v.Code, v.State)
	}
	return cmp.Or(v.Code, v.State)
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
