package worker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	pay *wechat.Adapter
}

func newWechatRig(t *testing.T) *wechatRig {
	t.Helper()
	m := must(simulator.NewMerchant())(t)
	cfg := m.Config()
	cfg.PendingAfter, cfg.HoldTimeout, cfg.NotifyPause = 0, 3*time.Second, 100*time.Millisecond
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &wechatRig{sim: simulator.New(ctx, cfg)}
	server := httptest.NewServer(r.sim)
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

// TestWechatPayouts: a payout waits for its recipient's tap and is paid once; one that nobody confirms
// fails with a code of its own; a lost answer moves the money once, and its recipient can confirm.
func TestWechatPayouts(t *testing.T) {
	t.Parallel()
	r := newWechatRig(t)
	p := r.create(t, spec{total: 3000, count: 3, payouts: "wechat"})
	r.awaitOpen(t, p.ID)
	for user, v := range map[string]struct {
		end  func(no string) bool
		want payout.Status
		code string
	}{
		"o-taps":   {r.sim.Confirm, payout.StatusPaid, ""},
		"o-lost":   {r.sim.Confirm, payout.StatusPaid, ""},
		"o-misses": {r.sim.Expire, payout.StatusFailed, "confirmation_expired"},
	} {
		t.Run(user, func(t *testing.T) {
			r.sim.SetFaults([]simulator.Fault{{Op: "transfer", Kind: simulator.SilenceAfter, Account: "o-lost"}})
			claim := r.grab(t, p.ID, user).Claim
			waiting := r.awaitPayout(t, claim, payout.StatusAwaitingRecipient)
			r.sim.SetFaults(nil)
			no := payout.OrderNo(waiting.ID, waiting.Attempt)
			if got := r.awaitRecipientAction(t, waiting).Parameters; len(got) != 3 || got["package"] == "" { // a query has none
				t.Errorf("the recipient gets %v", got)
			}
			if !v.end(no) {
				t.Fatalf("the simulator has no waiting transfer %s", no)
			}
			ended := r.awaitPayout(t, claim, v.want)
			if code := fmt.Sprint(ended.Failure); v.code != "" && (ended.Failure == nil || ended.Failure.Code != v.code) {
				t.Errorf("failed with %s, want %s", code, v.code)
			}
			if n, want := r.sim.Moved(no), map[payout.Status]int{payout.StatusPaid: 1}[v.want]; n != want {
				t.Errorf("money moved %d times, want %d", n, want)
			}
		})
	}
}
